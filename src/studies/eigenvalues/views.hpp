// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// Tables and figures of the study `eigenvalues`, made from its measurements. Nothing is decided here.
#pragma once

#include "deltaproof/study/report.hpp"
#include "studies/eigenvalues/parts.hpp"

namespace deltaproof::detail::eigenvalues {

void add_views(const rule_survey& survey, report& into);
void add_views(const norm_survey& survey, report& into);
void add_views(const saturation_survey& survey, report& into);
void add_views(const transition_survey& survey, report& into);
void add_views(const recording_survey& survey, report& into);

}  // namespace deltaproof::detail::eigenvalues
