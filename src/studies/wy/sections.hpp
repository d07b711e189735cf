// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// What the wy study says about errors and about cost.
#pragma once

#include "deltaproof/study/report.hpp"
#include "studies/wy/errors.hpp"

namespace deltaproof::detail::wy {

void add_errors(const run_options&, const settings&, const error_survey&, report&);
void add_cost(const run_options&, const settings&, report&);

}  // namespace deltaproof::detail::wy
