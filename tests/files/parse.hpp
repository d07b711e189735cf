// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstring>
#include <memory>
#include <string>

#include "deltaproof/files/safetensors.hpp"

namespace deltaproof::testing {

inline safetensors_file parse(const std::string& bytes) {
  std::shared_ptr<std::byte[]> buffer(new std::byte[bytes.size()]);
  std::memcpy(buffer.get(), bytes.data(), bytes.size());
  return safetensors_file(buffer, bytes.size(), "bytes");
}

}  // namespace deltaproof::testing
