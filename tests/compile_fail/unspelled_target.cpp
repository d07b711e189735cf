// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
#include "deltaproof/number/convert.hpp"

using namespace deltaproof;

const auto spelled = round_to<bf16>(0.1);
#ifdef MUST_FAIL
const auto unspelled = round_to(0.1);
#endif
