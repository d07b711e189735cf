// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// All that a program needs to judge a kernel: problems (generate, read_problem), results (copied, read_result), the verdict
// (answer), plans, and the certified reference (solve). Matchers for GoogleTest and generators for RapidCheck stand apart, in
// deltaproof/testing.
#pragma once

#include "deltaproof/check/request.hpp"
#include "deltaproof/files/exchange.hpp"
#include "deltaproof/files/view.hpp"
#include "deltaproof/inputs/regimes.hpp"
#include "deltaproof/oracle/reference.hpp"
#include "deltaproof/plan/plan.hpp"
