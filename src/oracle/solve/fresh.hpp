// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// Large tensors of which nothing is known yet, in memory that is touched for the first time.
#pragma once

#include <cstddef>

#include "deltaproof/oracle/reference.hpp"

namespace deltaproof {

/// n values of NaN with infinite radii: values and radii by a thread each. Large pages where the system has them: each page
/// costs a fault.
void fill_both(reference_tensor& t, std::size_t n, unsigned threads);

}  // namespace deltaproof
