// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
#include "deltaproof/number/rounded.hpp"

using namespace deltaproof;

constexpr rounded<bf16> exact_value(256);
#ifdef MUST_FAIL
constexpr rounded<bf16> between_two(257);
#endif
