// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// What nearly every file of a study includes: the study and its grid, keys, functions with the same bits everywhere, and the
// parts of the standard library that numbers and frames are handled with.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <numeric>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "deltaproof/number/convert.hpp"
#include "deltaproof/number/random.hpp"
#include "deltaproof/number/visit_format.hpp"
#include "deltaproof/study/grid.hpp"
#include "deltaproof/study/study.hpp"
#include "deltaproof/support/errors.hpp"
#include "studies/shared/functions.hpp"
#include "studies/shared/keys.hpp"

namespace deltaproof {

namespace shared = detail::shared;

}  // namespace deltaproof
