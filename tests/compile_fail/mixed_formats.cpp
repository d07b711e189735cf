// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
#include "deltaproof/number/rounded.hpp"

using namespace deltaproof;

const auto sum = rounded<bf16>(1) + rounded<bf16>(2);
#ifdef MUST_FAIL
const auto mixed = rounded<bf16>(1) + rounded<fp16>(2);
#endif
