// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
#include "deltaproof/number/convert.hpp"

using namespace deltaproof;

const auto wide = lift<float>(rounded<bf16>(1));
#ifdef MUST_FAIL
const auto narrow = lift<rounded<bf16>>(wide);
#endif
