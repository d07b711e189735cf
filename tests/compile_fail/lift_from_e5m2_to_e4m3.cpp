// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
#include "deltaproof/number/convert.hpp"

using namespace deltaproof;

const auto wide = lift<rounded<fp16>>(rounded<e5m2>(1));
#ifdef MUST_FAIL
const auto other = lift<rounded<e4m3>>(rounded<e5m2>(1));
#endif
