// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
#include "deltaproof/number/rounded.hpp"

using namespace deltaproof;

const rounded<bf16> one(1);
#ifdef MUST_FAIL
const rounded<bf16> half = 0.5;
#endif
