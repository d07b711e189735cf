// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
#include "deltaproof/number/format.hpp"

const double top = deltaproof::largest(deltaproof::bf16);
