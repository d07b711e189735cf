// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
#include "deltaproof/number/rounded.hpp"

using namespace deltaproof;

const double one = static_cast<double>(rounded<bf16>(1));
#ifdef MUST_FAIL
const double two = rounded<bf16>(2);
#endif
