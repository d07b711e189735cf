// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
#include "deltaproof/files/safetensors.hpp"

#include <openssl/evp.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>

#include "deltaproof/support/errors.hpp"
#include "deltaproof/support/read_file.hpp"
#include "deltaproof/support/write_file.hpp"
#include "support/mapped_bytes.hpp"
#include "support/printable.hpp"

namespace deltaproof {
namespace detail {
namespace {

constexpr std::size_t length_bytes = 8;
constexpr std::size_t largest_header = 100'000'000;  // as the reference implementation has it
constexpr std::size_t largest_rank = 64;
constexpr std::string_view metadata_name = "__metadata__";

struct dtype_width {
  std::string_view name;
  std::size_t bits;
};
// Every element type the format knows: those the project cannot read are still measured.
constexpr std::array<dtype_width, 20> dtype_widths{{{"BOOL", 8},    {"U8", 8},   {"I8", 8},      {"F8_E4M3", 8}, {"F8_E5M2", 8},
                                                    {"F8_E8M0", 8}, {"F4", 4},   {"F6_E2M3", 6}, {"F6_E3M2", 6}, {"I16", 16},
                                                    {"U16", 16},    {"F16", 16}, {"BF16", 16},   {"I32", 32},    {"U32", 32},
                                                    {"F32", 32},    {"F64", 64}, {"I64", 64},    {"U64", 64},    {"C64", 64}}};

const dtype_width* width_of(std::string_view dtype) {
  const auto* found =
      std::find_if(dtype_widths.begin(), dtype_widths.end(), [&](const dtype_width& d) { return d.name == dtype; });
  return found == dtype_widths.end() ? nullptr : found;
}

// Receives the header's JSON event by event, so that a name given twice is seen and nothing nests deeper than
// the format: { name: { field: text | [numbers] } }.
class header_reader {
 public:
  using number_integer_t = nlohmann::json::number_integer_t;
  using number_unsigned_t = nlohmann::json::number_unsigned_t;
  using number_float_t = nlohmann::json::number_float_t;
  using string_t = nlohmann::json::string_t;
  using binary_t = nlohmann::json::binary_t;

  header_reader(const std::string& where, safetensors_metadata& metadata, std::vector<safetensors_entry>& entries)
      : where_(where), metadata_(metadata), entries_(entries) {}

  bool start_object(std::size_t) {
    if (depth_ == 0) {
      depth_ = 1;
    } else if (depth_ == 1) {
      depth_ = 2;
      fields_.clear();
      if (!in_metadata()) entries_.push_back({name_, {}, {}, 0, 0});
    } else {
      fail_value("an object");
    }
    return true;
  }

  bool key(string_t& text) {
    if (depth_ == 1) {
      name_ = text;
      if (!names_.insert(text).second)
        fail(in_metadata() ? "is declared twice; keep one" : "is declared twice; give each tensor its own name");
    } else {
      field_ = text;
      if (!fields_.insert(text).second) fail("has " + in_quotes(text) + " twice; keep one");
      if (!in_metadata() && field_ != "dtype" && field_ != "shape" && field_ != "data_offsets") {
        fail("has the field " + in_quotes(text) + "; the fields of a tensor are dtype, shape and data_offsets");
      }
    }
    return true;
  }

  bool string(string_t& text) {
    if (depth_ == 2 && in_metadata()) {
      metadata_.emplace_back(field_, text);
    } else if (depth_ == 2 && !in_array_ && field_ == "dtype") {
      entries_.back().dtype = text;
    } else {
      fail_value("a string");
    }
    return true;
  }

  bool start_array(std::size_t) {
    if (depth_ != 2 || in_array_ || in_metadata() || field_ == "dtype") fail_value("an array");
    in_array_ = true;
    offsets_seen_ = 0;
    return true;
  }

  bool number_unsigned(number_unsigned_t value) {
    static_assert(std::numeric_limits<std::size_t>::max() >= std::numeric_limits<number_unsigned_t>::max());
    if (!in_array_) fail_value("a number");
    const auto number = static_cast<std::size_t>(value);
    safetensors_entry& entry = entries_.back();
    if (field_ == "shape") {
      if (entry.shape.size() == largest_rank) {
        fail("has more than " + std::to_string(largest_rank) + " dimensions; drop those of length 1");
      }
      entry.shape.push_back(number);
    } else {
      if (offsets_seen_ == 0) entry.begin = number;
      if (offsets_seen_ == 1) entry.end = number;
      ++offsets_seen_;
    }
    return true;
  }

  bool end_array() {
    in_array_ = false;
    if (field_ == "data_offsets" && offsets_seen_ != 2) {
      fail("has " + std::to_string(offsets_seen_) + " data_offsets; it takes two, [begin, end]");
    }
    return true;
  }

  bool end_object() {
    if (depth_ == 2 && !in_metadata()) {
      for (const char* field : {"dtype", "shape", "data_offsets"}) {
        if (!fields_.contains(field)) fail(std::string("has no ") + field + "; the file was not written by safetensors");
      }
    }
    --depth_;
    return true;
  }

  bool number_integer(number_integer_t value) { return fail_value("the negative number " + std::to_string(value)); }
  bool number_float(number_float_t, const string_t& text) { return fail_value("the number " + in_quotes(text)); }
  bool boolean(bool) { return fail_value("a truth value"); }
  bool null() { return fail_value("null"); }
  bool binary(binary_t&) { return fail_value("binary data"); }

  bool parse_error(std::size_t position, const std::string&, const nlohmann::json::exception&) {
    throw format_error(where_ + ": header: not JSON at byte " + std::to_string(position) +
                       " of the header; the file is damaged or not a safetensors file");
  }

 private:
  [[nodiscard]] bool in_metadata() const { return name_ == metadata_name; }

  [[noreturn]] void fail(const std::string& reason) const {
    throw format_error(where_ + (in_metadata() ? ": __metadata__ " : ": tensor " + in_quotes(name_) + " ") + reason);
  }

  // The header begins with '{', so there is always a name that the value belongs to.
  bool fail_value(const std::string& what) const {
    if (depth_ == 1) {
      throw format_error(
          where_ + ": header: " + in_quotes(name_) + " is " + what +
          (in_metadata() ? "; it must be an object of strings" : "; it must be an object, with dtype, shape and data_offsets"));
    }
    if (in_metadata()) fail("has " + what + " for " + in_quotes(field_) + "; metadata values are strings");
    fail("has " + what + " in " + field_ + "; " +
         (field_ == "dtype" ? "a dtype is a string" : field_ + " is a list of integers, each 0 or more"));
  }

  const std::string& where_;
  safetensors_metadata& metadata_;
  std::vector<safetensors_entry>& entries_;
  int depth_ = 0;
  bool in_array_ = false;
  std::size_t offsets_seen_ = 0;
  std::string name_;
  std::string field_;
  std::set<std::string> names_;
  std::set<std::string> fields_;
};

std::uint64_t little_endian_u64(const std::byte* bytes) {
  std::uint64_t value = 0;
  for (int i = 7; i >= 0; --i) value = value << 8 | std::to_integer<std::uint64_t>(bytes[i]);
  return value;
}

[[noreturn]] void fail_header(const std::string& where, const std::string& reason) {
  throw format_error(where + ": header: " + reason);
}

// The header's length, of a file of `size` bytes that begins with `bytes`.
std::size_t header_length(std::span<const std::byte> bytes, std::size_t size, const std::string& where) {
  const auto fail = [&](const std::string& reason) { fail_header(where, reason); };
  if (size < length_bytes) {
    fail("the file has " + std::to_string(size) + " bytes and its header length alone takes 8; it is " +
         (size == 0 ? "empty" : "truncated") + ", write it again");
  }
  const std::uint64_t length = little_endian_u64(bytes.data());
  if (length > largest_header) {
    fail("its length is given as " + std::to_string(length) + " bytes, above the format's limit of " +
         std::to_string(largest_header) + "; this is not a safetensors file");
  }
  if (length > size - length_bytes) {
    fail("its length is given as " + std::to_string(length) + " bytes and the file has only " +
         std::to_string(size - length_bytes) + " after the length; the file is truncated, write it again");
  }
  return static_cast<std::size_t>(length);
}

// Checks the characters of the header.
void require_header_text(std::string_view text, const std::string& where) {
  const auto fail = [&](const std::string& reason) { fail_header(where, reason); };
  if (text.empty() || text.front() != '{') {
    fail("it does not begin with '{', as every safetensors header does; this is not a safetensors file");
  }
  const auto control = std::find_if(text.begin(), text.end(), [](char c) {
    return static_cast<unsigned char>(c) < 0x20 && c != '\t' && c != '\n' && c != '\r';
  });
  if (control != text.end()) {
    fail("control character at byte " + std::to_string(control - text.begin()) +
         "; the file is damaged, or padded with something other than spaces");
  }
}

// Throws unless shape and dtype fill [begin, end) exactly.
void require_size(const safetensors_entry& entry, std::size_t data_size, const std::string& where) {
  const auto fail = [&](const std::string& reason) {
    throw format_error(where + ": tensor " + in_quotes(entry.name) + ": " + reason);
  };
  if (entry.begin > entry.end) {
    fail("data_offsets [" + std::to_string(entry.begin) + ", " + std::to_string(entry.end) +
         "] end before they begin; the header is damaged");
  }
  if (entry.end > data_size) {
    fail("its data ends at byte " + std::to_string(entry.end) + " and the file holds " + std::to_string(data_size) +
         " bytes of data; the file is truncated or its header is damaged");
  }
  const dtype_width* width = width_of(entry.dtype);
  if (width == nullptr) return;  // nothing is known of its size; an error only for those who want to read it
  std::size_t bits = width->bits;
  bool fits = true;
  if (std::find(entry.shape.begin(), entry.shape.end(), 0U) != entry.shape.end()) {
    bits = 0;
  } else {
    for (const std::size_t n : entry.shape) {
      fits = fits && bits <= std::numeric_limits<std::size_t>::max() / n;
      bits *= n;
    }
  }
  if (!fits || bits % 8 != 0 || bits / 8 != entry.end - entry.begin) {
    fail(entry.dtype + " of shape " + shape_text(entry.shape) + " takes " +
         (!fits           ? "more bytes than there are addresses"
          : bits % 8 != 0 ? "no whole number of bytes"
                          : std::to_string(bits / 8) + " bytes") +
         ", its data_offsets span " + std::to_string(entry.end - entry.begin) + "; shape, dtype or offsets are wrong");
  }
}

// The format allows neither holes nor overlaps: sorted by offset, each tensor begins where the last one ended.
void require_cover(const std::vector<safetensors_entry>& entries, std::size_t data_size, const std::string& where) {
  std::vector<const safetensors_entry*> order;
  order.reserve(entries.size());
  for (const safetensors_entry& entry : entries) order.push_back(&entry);
  std::sort(order.begin(), order.end(), [](const safetensors_entry* a, const safetensors_entry* b) {
    return std::pair(a->begin, a->end) < std::pair(b->begin, b->end);
  });
  std::size_t covered = 0;
  const safetensors_entry* last = nullptr;
  for (const safetensors_entry* entry : order) {
    if (entry->begin != covered) {
      const std::string previous = last == nullptr ? "the data section begins" : "tensor " + in_quotes(last->name) + " ends";
      throw format_error(where + ": tensor " + in_quotes(entry->name) + ": begins at byte " + std::to_string(entry->begin) +
                         " and " + previous + " at " + std::to_string(covered) + ": " +
                         (entry->begin < covered ? "they overlap" : "the bytes between belong to no tensor") +
                         "; the header is damaged");
    }
    covered = entry->end;
    last = entry;
  }
  if (covered != data_size) {
    throw format_error(where + ": " + std::to_string(data_size - covered) +
                       " bytes at the end belong to no tensor; the file is damaged or something was appended to it");
  }
}

// All that can be wrong with the header of a file of `size` bytes.
void read_header(std::string_view text, std::size_t size, const std::string& where, safetensors_metadata& metadata,
                 std::vector<safetensors_entry>& entries) {
  require_header_text(text, where);
  const std::size_t data_size = size - length_bytes - text.size();
  header_reader reader(where, metadata, entries);
  nlohmann::json::sax_parse(text.begin(), text.end(), &reader);
  for (const safetensors_entry& entry : entries) require_size(entry, data_size, where);
  require_cover(entries, data_size, where);
}

}  // namespace
}  // namespace detail

namespace {

/// SHA-256 of bytes that come piece by piece.
class sha256_stream {
 public:
  sha256_stream() : context_(EVP_MD_CTX_new(), EVP_MD_CTX_free) {
    require(context_ && EVP_DigestInit_ex(context_.get(), EVP_sha256(), nullptr) == 1);
  }
  void add(std::span<const std::byte> bytes) { require(EVP_DigestUpdate(context_.get(), bytes.data(), bytes.size()) == 1); }
  [[nodiscard]] std::string hex() {
    std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
    unsigned int length = 0;
    require(EVP_DigestFinal_ex(context_.get(), digest.data(), &length) == 1);
    std::string text;
    for (unsigned int i = 0; i < length; ++i) {
      constexpr std::string_view digits = "0123456789abcdef";
      text += digits[digest[i] >> 4U];
      text += digits[digest[i] & 15U];
    }
    return text;
  }

 private:
  static void require(bool good) {
    if (!good) throw format_error("OpenSSL cannot compute SHA-256, by which files are identified: activate its default provider");
  }
  std::unique_ptr<EVP_MD_CTX, decltype(&EVP_MD_CTX_free)> context_;
};

}  // namespace

std::string sha256_hex(std::span<const std::byte> bytes) {
  sha256_stream hash;
  hash.add(bytes);
  return hash.hex();
}

std::string safetensors_file::sha256() const {
  constexpr std::size_t piece = std::size_t{1} << 20;
  sha256_stream hash;
  for (std::size_t first = 0; first < size_; first += piece) {
    const auto part = bytes().subspan(first, std::min(piece, size_ - first));
    hash.add(part);
    detail::forget(bytes_, part.data(), part.size());
  }
  return hash.hex();
}

bool safetensors_file::changed() const { return detail::changed_since_mapped(bytes_); }

safetensors_file::safetensors_file(shared_bytes bytes, std::size_t size, std::string where)
    : where_(std::move(where)), bytes_(std::move(bytes)), size_(size) {
  const std::size_t length = detail::header_length(this->bytes(), size_, where_);
  data_ = detail::length_bytes + length;
  detail::read_header({reinterpret_cast<const char*>(bytes_.get()) + detail::length_bytes, length}, size_, where_, metadata_,
                      entries_);
}

std::optional<std::string_view> safetensors_file::metadata(std::string_view key) const {
  for (const auto& [name, value] : metadata_) {
    if (name == key) return value;
  }
  return std::nullopt;
}

const safetensors_entry* safetensors_file::find(std::string_view name) const {
  const auto found =
      std::find_if(entries_.begin(), entries_.end(), [&](const safetensors_entry& entry) { return entry.name == name; });
  return found == entries_.end() ? nullptr : &*found;
}

tensor safetensors_file::load(const safetensors_entry& entry) const {
  const shared_bytes data(bytes_, bytes_.get() + data_ + entry.begin);
  const std::size_t count = entry.end - entry.begin;
  if (entry.dtype == "I64") return tensor::integers(entry.shape, data, count, entry.name);
  for (const named_format& candidate : formats) {
    if (!candidate.dtype.empty() && candidate.dtype == entry.dtype) {
      return tensor(candidate.value, entry.shape, data, count, entry.name);
    }
  }
  throw format_error(where_ + ": tensor " + in_quotes(entry.name) + ": dtype " + in_quotes(entry.dtype) +
                     " cannot be read; use BF16, F16, F32 or F64");
}

namespace {

/// Where more data than this follows, the header is read by itself before the data is.
constexpr std::size_t header_pays = std::size_t{1} << 24;

/// Memory for `size` bytes of the file. Throws: format_error.
std::unique_ptr<std::byte[]> room_for(std::size_t size, const std::string& where) {
  try {
    return std::unique_ptr<std::byte[]>(new std::byte[size]);
  } catch (const std::bad_alloc&) {
    throw format_error(where + ": its " + std::to_string(size) + " bytes do not fit in memory; split the problem");
  }
}

}  // namespace

safetensors_file map_safetensors(const std::filesystem::path& path) {
  const std::size_t size = input_file(path).size();
  shared_bytes bytes = detail::map_file(path, size);
  return bytes ? safetensors_file(std::move(bytes), size, path.string()) : read_safetensors(path);
}

safetensors_file read_safetensors(const std::filesystem::path& path) {
  const std::string where = path.string();
  const input_file in(path);
  const std::size_t size = in.size();
  // The header first: what it refuses is not read, however large it is.
  std::array<std::byte, detail::length_bytes> first{};
  in.read(0, std::span(first).first(std::min(size, first.size())));
  const std::size_t begin = detail::length_bytes + detail::header_length(first, size, where);
  std::unique_ptr<std::byte[]> buffer = room_for(begin, where);
  in.read(0, {buffer.get(), begin});
  if (size > begin + header_pays) {
    safetensors_metadata metadata;
    std::vector<safetensors_entry> entries;
    const std::string_view text(reinterpret_cast<const char*>(buffer.get()) + detail::length_bytes, begin - detail::length_bytes);
    detail::read_header(text, size, where, metadata, entries);
  }
  std::unique_ptr<std::byte[]> whole = room_for(size, where);
  std::copy_n(buffer.get(), begin, whole.get());
  in.read(begin, {whole.get() + begin, size - begin});
  return safetensors_file(shared_bytes(std::move(whole)), size, where);
}

std::string safetensors_header(const safetensors_metadata& metadata, std::span<const safetensors_entry> entries) {
  nlohmann::ordered_json header = nlohmann::ordered_json::object();
  if (!metadata.empty()) {
    nlohmann::ordered_json& target = header[std::string(detail::metadata_name)] = nlohmann::ordered_json::object();
    for (const auto& [key, value] : metadata) {
      if (target.contains(key)) throw format_error("metadata key " + in_quotes(key) + " is given twice");
      target[key] = value;
    }
  }
  for (const safetensors_entry& t : entries) {
    if (t.name.empty())
      throw format_error("a tensor to be written, of shape " + shape_text(t.shape) + ", has no name; give it one");
    if (header.contains(t.name) || t.name == detail::metadata_name) {
      throw format_error("tensor " + in_quotes(t.name) +
                         (t.name == detail::metadata_name ? " has a reserved name; give it another name"
                                                          : " is given twice; give each tensor its own name"));
    }
    header[t.name] = {{"dtype", t.dtype}, {"shape", t.shape}, {"data_offsets", {t.begin, t.end}}};
  }
  std::string text;
  try {
    text = header.dump();
  } catch (const nlohmann::json::type_error&) {
    throw format_error(
        "the name of a tensor, or a key or value of the metadata, is not UTF-8; safetensors files hold UTF-8 alone");
  }
  text.append((detail::length_bytes - text.size() % detail::length_bytes) % detail::length_bytes, ' ');
  if (text.size() > detail::largest_header) {
    throw format_error("the header has " + std::to_string(text.size()) + " bytes, above the format's limit of " +
                       std::to_string(detail::largest_header) + "; shorten the metadata");
  }
  std::string bytes;
  for (std::size_t i = 0; i < detail::length_bytes; ++i) bytes += static_cast<char>(text.size() >> (8 * i) & 0xFFU);
  bytes += text;
  return bytes;
}

namespace {

std::string header_of(const safetensors_metadata& metadata, std::span<const tensor> tensors) {
  std::vector<safetensors_entry> entries;
  std::size_t offset = 0;
  for (const tensor& t : tensors) {
    const std::size_t end = offset + t.bytes().size();
    entries.push_back({t.name(), t.dtype(), t.shape(), offset, end});
    offset = end;
  }
  return safetensors_header(metadata, entries);
}

std::string_view characters(const tensor& t) { return {reinterpret_cast<const char*>(t.bytes().data()), t.bytes().size()}; }

}  // namespace

std::string safetensors_bytes(const safetensors_metadata& metadata, std::span<const tensor> tensors) {
  std::string bytes = header_of(metadata, tensors);
  std::size_t size = bytes.size();
  for (const tensor& t : tensors) size += t.bytes().size();
  bytes.reserve(size);
  for (const tensor& t : tensors) bytes += characters(t);
  return bytes;
}

void write_safetensors(const std::filesystem::path& path, const safetensors_metadata& metadata, std::span<const tensor> tensors) {
  const std::string header = header_of(metadata, tensors);
  std::vector<std::string_view> pieces{header};
  for (const tensor& t : tensors) pieces.push_back(characters(t));
  write_file(path, pieces);
}

}  // namespace deltaproof
