// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
#include "deltaproof/number/modular.hpp"
#include "deltaproof/number/scalar.hpp"

using namespace deltaproof;

static_assert(HasExp<rounded<bf16>>);
#ifdef MUST_FAIL
static_assert(HasExp<modular>);
#endif
