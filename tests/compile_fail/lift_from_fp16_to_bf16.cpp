// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
#include "deltaproof/number/convert.hpp"

using namespace deltaproof;

const auto wide = lift<rounded<tf32>>(rounded<fp16>(1));
#ifdef MUST_FAIL
const auto other = lift<rounded<bf16>>(rounded<fp16>(1));
#endif
