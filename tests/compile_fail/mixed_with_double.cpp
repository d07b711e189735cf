// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
#include "deltaproof/number/rounded.hpp"

using namespace deltaproof;

const double sum = rounded<bf16>(1).value() + 2.0;
#ifdef MUST_FAIL
const auto mixed = rounded<bf16>(1) + 2.0;
#endif
