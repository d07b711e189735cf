// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// What the tests of studies share: findings by name, and the report of a study as it is committed.
#pragma once

#include <string>
#include <string_view>

#include "deltaproof/study/study.hpp"
#include "deltaproof/support/errors.hpp"
#include "deltaproof/support/read_file.hpp"

namespace deltaproof::reports {

/// Throws: domain_error naming a finding that is not there.
inline const finding& found(const report& r, std::string_view id) {
  for (const finding& f : r.findings) {
    if (f.id == id) return f;
  }
  throw domain_error("the report has no finding '" + std::string(id) + "'");
}

/// The report of a study as reports/ has it.
inline report committed(const std::string& study) {
  return report_from_json(read_file(std::string(DELTAPROOF_SOURCE_DIR) + "/reports/" + study + ".json", report_limit));
}

}  // namespace deltaproof::reports
