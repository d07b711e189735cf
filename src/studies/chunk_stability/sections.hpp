// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// What the chunk-stability study says: each function turns numbers of survey.hpp into findings, tables and figures.
#pragma once

#include <span>

#include "deltaproof/study/report.hpp"
#include "studies/chunk_stability/survey.hpp"

namespace deltaproof::detail::chunk_stability {

void add_single_chunks(const run_options&, const settings&, const chunk_survey&, report&);
void add_ranges(const run_options&, const chunk_survey&, std::span<const range_row>, const agreement&, report&);
void add_origins(const run_options&, const settings&, std::span<const origin_row>, std::span<const arithmetic_row>, report&);
void add_horizon(const run_options&, const settings&, const control_result&, std::span<const horizon_case>, report&);

}  // namespace deltaproof::detail::chunk_stability
