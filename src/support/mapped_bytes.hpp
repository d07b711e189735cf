// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// A file's bytes where they lie on disk: pages come into memory as they are read and leave it when they are forgotten, so that
// what reads a file once, from its beginning to its end, takes no memory for it.
#pragma once

#include <cstddef>
#include <filesystem>
#include <memory>

namespace deltaproof {

using shared_bytes = std::shared_ptr<const std::byte[]>;

namespace detail {

/// The `size` bytes of a file, mapped; nothing where the system cannot. The file must not shrink while they are read.
[[nodiscard]] shared_bytes map_file(const std::filesystem::path& path, std::size_t size);

/// Whether the file that `bytes` were mapped from was written to since; false for other bytes.
[[nodiscard]] bool changed_since_mapped(const shared_bytes& bytes);

/// A hint: [first, first + count) of `bytes` will not be read for a while. Their pages leave memory where they are mapped; other
/// bytes stay as they are.
void forget(const shared_bytes& bytes, const std::byte* first, std::size_t count);

/// The file whose mapped bytes hold `address`, or nothing. Safe in a signal handler: a file that is cut short while it is mapped
/// is met as a SIGBUS.
[[nodiscard]] const char* mapped_file_at(const void* address) noexcept;

}  // namespace detail
}  // namespace deltaproof
