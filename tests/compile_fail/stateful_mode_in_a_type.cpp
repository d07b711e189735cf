// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
#include "deltaproof/number/rounded.hpp"

using namespace deltaproof;

const rounded<bf16, toward_zero> cut(1);
#ifdef MUST_FAIL
const rounded<bf16, stochastic> hidden;
#endif
