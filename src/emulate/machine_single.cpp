// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
#include "emulate/machine_chunk.hpp"

namespace deltaproof::emulation_detail {

template class machine<float>;

}  // namespace deltaproof::emulation_detail
