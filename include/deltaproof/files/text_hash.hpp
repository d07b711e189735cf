// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// After including this you can ask for the SHA-256 of a text as of bytes: sha256_hex("...").
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "deltaproof/files/safetensors.hpp"

namespace deltaproof {

[[nodiscard]] inline std::string sha256_hex(std::string_view text) {
  return sha256_hex(std::as_bytes(std::span(text.data(), text.size())));
}

}  // namespace deltaproof
