// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
#include "deltaproof/number/convert.hpp"

using namespace deltaproof;

const auto cut = add(rounded<bf16>(1), rounded<bf16>(2), toward_zero{});
#ifdef MUST_FAIL
const auto lost = add(rounded<bf16>(1), rounded<bf16>(2), stochastic(1));
#endif
