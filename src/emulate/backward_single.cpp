// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
#include "emulate/backward_chunk.hpp"
#include "emulate/backward_residual.hpp"
#include "emulate/backward_tokens.hpp"

namespace deltaproof::emulation_detail {

template class adjoint<float>;

}  // namespace deltaproof::emulation_detail
