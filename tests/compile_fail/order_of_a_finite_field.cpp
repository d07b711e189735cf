// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
#include "deltaproof/number/modular.hpp"

using namespace deltaproof;

const bool equal = modular(1) == modular(2);
#ifdef MUST_FAIL
const bool less = modular(1) < modular(2);
#endif
