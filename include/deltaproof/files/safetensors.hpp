// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// Reads and writes safetensors files: an 8-byte little-endian header length, a JSON header, raw little-endian
// data. A file is read once into one buffer, which all its tensors share; nothing is converted or copied. The
// reader trusts nothing: lengths, offsets, shapes, names and nesting are checked before a byte of data is
// touched, and what is wrong is said in a format_error that names file, tensor, reason and remedy. It exists
// because files from other people's machines are the only way tensors get in.
#pragma once

#include <cstddef>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "deltaproof/algebra/tensor.hpp"

namespace deltaproof {

/// Name-value pairs in the order they stand in the file.
using safetensors_metadata = std::vector<std::pair<std::string, std::string>>;

/// One tensor as the header declares it; `begin` and `end` count bytes from the end of the header.
struct safetensors_entry {
  std::string name;
  std::string dtype;
  std::vector<std::size_t> shape;
  std::size_t begin = 0;
  std::size_t end = 0;
};

/// A checked file: offsets cover the data without gap or overlap, sizes fit dtypes and shapes.
class safetensors_file {
 public:
  /// Parses `size` bytes in memory; `where` names them in messages. Throws: format_error.
  safetensors_file(shared_bytes bytes, std::size_t size, std::string where);

  [[nodiscard]] const std::string& where() const noexcept { return where_; }
  [[nodiscard]] std::span<const std::byte> bytes() const noexcept { return {bytes_.get(), size_}; }
  [[nodiscard]] const safetensors_metadata& metadata() const noexcept { return metadata_; }
  [[nodiscard]] std::optional<std::string_view> metadata(std::string_view key) const;
  [[nodiscard]] const std::vector<safetensors_entry>& entries() const noexcept { return entries_; }
  [[nodiscard]] const safetensors_entry* find(std::string_view name) const;

  /// sha256_hex of all bytes; of a mapped file, without keeping them in memory.
  [[nodiscard]] std::string sha256() const;
  /// Whether the mapped file was written to since map_safetensors: what was read of it may then be of two files.
  [[nodiscard]] bool changed() const;

  /// The tensor of `entry`, sharing this file's buffer.
  /// Throws: format_error if its dtype is none of BF16 F16 F8_E4M3 F8_E5M2 F32 F64 I64.
  [[nodiscard]] tensor load(const safetensors_entry& entry) const;

 private:
  std::string where_;
  shared_bytes bytes_;
  std::size_t size_ = 0;
  std::size_t data_ = 0;  // where the data begins
  safetensors_metadata metadata_;
  std::vector<safetensors_entry> entries_;
};

/// Reads and checks a file. Throws: format_error, also when it cannot be read.
[[nodiscard]] safetensors_file read_safetensors(const std::filesystem::path& path);

/// The same of a file that is left on disk and whose tensors are read there: for what reads them once in their order and
/// forgets what it has read. The file must not shrink meanwhile; ask `changed` at the end. Read as read_safetensors does where
/// the system cannot map it.
[[nodiscard]] safetensors_file map_safetensors(const std::filesystem::path& path);

/// The bytes of a file that holds `tensors`, under their names and in their order: equal input, equal bytes. The
/// header is padded with spaces so that the data begins at a multiple of 8.
/// Throws: format_error for a name twice, a reserved name, or text that is not UTF-8.
[[nodiscard]] std::string safetensors_bytes(const safetensors_metadata& metadata, std::span<const tensor> tensors);

/// What stands before the data of such a file: the length of its header, and the header, of tensors that lie one behind the
/// other in `entries` order. Throws: as safetensors_bytes.
[[nodiscard]] std::string safetensors_header(const safetensors_metadata& metadata, std::span<const safetensors_entry> entries);

/// write_file (write_file.hpp) of safetensors_bytes, without a copy of the tensors.
void write_safetensors(const std::filesystem::path& path, const safetensors_metadata& metadata, std::span<const tensor> tensors);

/// SHA-256 in lower-case hexadecimal.
[[nodiscard]] std::string sha256_hex(std::span<const std::byte> bytes);

}  // namespace deltaproof
