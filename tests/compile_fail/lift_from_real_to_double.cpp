// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
#include "deltaproof/number/real.hpp"

using namespace deltaproof;

const auto wide = lift<real<128>>(1.0);
#ifdef MUST_FAIL
const auto narrow = lift<double>(wide);
#endif
