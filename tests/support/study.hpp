// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// What the tests of studies include and share: findings by name, the report of a study as it is committed, and more bits than
// double.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <limits>
#include <numeric>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "deltaproof/algebra/matrix.hpp"
#include "deltaproof/number/convert.hpp"
#include "deltaproof/number/random.hpp"
#include "deltaproof/number/real.hpp"
#include "deltaproof/study/study.hpp"
#include "deltaproof/support/errors.hpp"
#include "deltaproof/support/read_file.hpp"
#include "support/thrown.hpp"

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

template <class Wide>
std::vector<Wide> lifted(std::span<const double> x) {
  std::vector<Wide> out;
  for (const double one : x) out.push_back(lift<Wide>(one));
  return out;
}

/// In the Frobenius norm.
template <class Wide>
double distance_of(const matrix<Wide>& exact, const matrix<double>& found) {
  Wide square = 0;
  for (std::size_t i = 0; i < exact.size(); ++i) {
    const Wide d = exact.data()[i] - lift<Wide>(found.data()[i]);
    square += d * d;
  }
  return round_to<double>(Wide(sqrt(square)));
}

}  // namespace deltaproof::reports
