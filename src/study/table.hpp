// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// The table of studies that the build makes from src/studies/*.cpp (cmake/studies.cmake).
#pragma once

#include <span>

#include "deltaproof/study/study.hpp"

namespace deltaproof::detail {

[[nodiscard]] std::span<const study* const> study_table();

}  // namespace deltaproof::detail
