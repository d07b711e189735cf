// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// Small exchange files, good and hostile, that between them reach every branch of the reader. `corpus_files()` builds
// them; the same bytes lie in tests/files/corpus, where they are the fuzzer's seeds. A file's name says how it is
// read (file, problem, result of `packed_problem`, plain_result of `plain_problem`) and how that ends (ok, format, shape,
// domain): "result-shape-...". `try_file` does what the fuzzer does.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "deltaproof/files/exchange.hpp"

namespace deltaproof::testing {

inline const std::string known_sha256(64, '5');

inline tensor zeros(const format& f, const std::vector<std::size_t>& shape, const std::string& name) {
  return tensor::from_doubles(f, shape, std::vector<double>(element_count(shape), 0), name);
}

/// B = 1, T = 3 in sequences of 1 and 2 tokens, H = 1, HV = 2, K = 2, V = 3, op kda.
inline problem packed_problem() {
  problem p;
  p.op = op_kind::kda;
  p.q = zeros(fp32, {1, 3, 1, 2}, "q");
  p.k = zeros(fp32, {1, 3, 1, 2}, "k");
  p.v = zeros(fp32, {1, 3, 2, 3}, "v");
  p.beta = zeros(bf16, {1, 3, 2}, "beta");
  p.cu_seqlens = {0, 1, 3};
  return p;
}

/// B = 2, T = 3, n = 2, H = HV = K = V = 1, op gated_delta_product.
inline problem plain_problem() {
  problem p;
  p.op = op_kind::gated_delta_product;
  p.num_householder = 2;
  p.q = zeros(fp32, {2, 3, 1, 1}, "q");
  p.k = zeros(fp32, {2, 6, 1, 1}, "k");
  p.v = zeros(fp32, {2, 6, 1, 1}, "v");
  p.beta = zeros(fp32, {2, 6, 1}, "beta");
  return p;
}

/// Everything the reader can do with bytes. Throws what the reader throws.
inline void try_file(std::string_view bytes, std::string_view how, notes_list& notes) {
  static const problem packed = packed_problem();
  static const problem plain = plain_problem();
  std::shared_ptr<std::byte[]> buffer(new std::byte[bytes.size()]);
  if (!bytes.empty()) std::memcpy(buffer.get(), bytes.data(), bytes.size());
  const safetensors_file file(buffer, bytes.size(), "input");
  if (how == "problem") {
    const problem p = parse_problem(file, notes);
    if (p.sequence_count() < 1000 && p.sequences().size() != p.sequence_count()) throw std::logic_error("sequences");
    (void)p.key_head(p.value_heads() - 1);
    if (p.q.size() + p.k.size() + p.v.size() < 1000) (void)problem_bytes(p);
  } else if (how == "result" || how == "plain_result") {
    const result r = parse_result(file, how == "result" ? packed : plain, known_sha256, notes);
    (void)r.final_state_kv();
  } else {
    for (const safetensors_entry& entry : file.entries()) {
      try {
        (void)file.load(entry);
      } catch (const format_error&) {
        if (how == "file") throw;
      }
    }
  }
}

/// A safetensors file in the making, checked by nobody.
class raw_file {
 public:
  static std::string with_header(const std::string& header, std::size_t data_bytes = 0) {
    return with_length(header.size(), header) + std::string(data_bytes, '\0');
  }
  static std::string with_length(std::uint64_t length, const std::string& rest) {
    std::string bytes;
    for (int i = 0; i < 8; ++i) bytes += static_cast<char>(length >> (8 * i) & 0xFFU);
    return bytes + rest;
  }

  raw_file& key(const std::string& name, const std::string& value) {
    metadata_.emplace_back(name, value);
    return *this;
  }
  /// A tensor of `bytes` zero bytes; `shape` is JSON. A second one of the same name replaces the first.
  raw_file& add(const std::string& name, const std::string& dtype, const std::string& shape, std::size_t bytes) {
    return add(name, dtype, shape, std::string(bytes, '\0'));
  }
  raw_file& add(const std::string& name, const std::string& dtype, const std::string& shape, const std::string& data) {
    drop(name);
    tensors_.push_back({name, dtype, shape, data});
    return *this;
  }
  raw_file& drop(const std::string& name) {
    std::erase_if(tensors_, [&](const row& r) { return r.name == name; });
    std::erase_if(metadata_, [&](const auto& pair) { return pair.first == name; });
    return *this;
  }

  [[nodiscard]] std::string bytes() const {
    std::string header = "{\"__metadata__\":{";
    for (const auto& [name, value] : metadata_) {
      header += (header.back() == '{' ? "\"" : ",\"") + name + "\":\"" + value + "\"";
    }
    header += "}";
    std::string data;
    for (const row& r : tensors_) {
      header += ",\"" + r.name + "\":{\"dtype\":\"" + r.dtype + "\",\"shape\":" + r.shape + ",\"data_offsets\":[" +
                std::to_string(data.size()) + "," + std::to_string(data.size() + r.data.size()) + "]}";
      data += r.data;
    }
    return with_header(header + "}") + data;
  }

 private:
  struct row {
    std::string name;
    std::string dtype;
    std::string shape;
    std::string data;
  };
  std::vector<std::pair<std::string, std::string>> metadata_;
  std::vector<row> tensors_;
};

struct corpus_file {
  std::string name;  ///< "<how>-<outcome>-<subject>"
  std::string bytes;
  std::string says;  ///< part of the message, or of a note where the outcome is ok
};

namespace corpus {

inline std::string f32(float x) {
  std::string bytes(4, '\0');
  std::memcpy(bytes.data(), &x, 4);
  return bytes;
}

inline std::string i64(std::initializer_list<std::int64_t> values) {
  std::string bytes;
  for (const std::int64_t x : values) bytes += raw_file::with_length(static_cast<std::uint64_t>(x), "");
  return bytes;
}

/// The smallest honest problem: B = T = H = HV = K = V = 1.
inline raw_file problem_file() {
  raw_file f;
  f.key("format", "deltaproof.problem/1").key("op", "gated_delta_rule").key("scale", "0.5");
  f.add("q", "F32", "[1,1,1,1]", 4).add("k", "F32", "[1,1,1,1]", 4).add("v", "F32", "[1,1,1,1]", 4);
  return f.add("beta", "F32", "[1,1,1]", 4);
}

/// The smallest honest result of packed_problem.
inline raw_file result_file() {
  raw_file f;
  f.key("format", "deltaproof.result/1").key("path", "chunk").key("chunk_size", "2").key("problem_sha256", known_sha256);
  return f.add("o", "BF16", "[1,3,2,3]", 36);
}

inline void add_headers(std::vector<corpus_file>& files) {
  const auto raw = [&](const std::string& name, const std::string& bytes, const std::string& says) {
    files.push_back({"file-" + name, bytes, says});
  };
  const auto header = [&](const std::string& name, const std::string& text, const std::string& says, std::size_t data = 0) {
    raw(name, raw_file::with_header(text, data), says);
  };
  const std::string x = R"({"x":{"dtype":"F32","shape":[1],"data_offsets":[0,4]})";
  raw("format-empty", "", "it is empty");
  raw("format-truncated-length", "\1\0\0", "it is truncated");
  raw("format-huge-header", raw_file::with_length(UINT64_MAX, "{}"), "18446744073709551615");
  raw("format-header-past-end", raw_file::with_length(3, "{}"), "truncated");
  header("format-no-brace", "[]", "does not begin with");
  header("format-empty-header", "", "does not begin with");
  header("format-control-character", std::string("{}\0", 3), "control character");
  header("format-not-json", "{\"x\"", "not JSON");
  header("format-not-utf8", "{\"\xff\":{}}", "not JSON");
  header("format-after-header", "{}x", "not JSON");
  header("ok-no-tensors", "{}  ", "");
  header("ok-whitespace", "{\t\n\r}", "");
  header("ok-one-tensor", x + "}", "", 4);
  header("ok-scalar", R"({"x":{"dtype":"F64","shape":[],"data_offsets":[0,8]}})", "", 8);
  header("ok-no-elements", R"({"x":{"dtype":"F64","shape":[0,18446744073709551615],"data_offsets":[0,0]}})", "");
  header("ok-out-of-order",
         R"({"x":{"dtype":"F32","shape":[1],"data_offsets":[8,12]},"y":{"dtype":"I64","shape":[1],"data_offsets":[0,8]}})", "",
         12);
  header("ok-metadata", R"({"__metadata__":{"a":"b"}})", "");
  for (const auto& [name, value] : std::vector<std::pair<std::string, std::string>>{{"text", "\"t\""},
                                                                                    {"number", "1"},
                                                                                    {"negative", "-1"},
                                                                                    {"fraction", "1.5"},
                                                                                    {"null", "null"},
                                                                                    {"true", "true"},
                                                                                    {"array", "[]"}}) {
    header("format-tensor-is-" + name, "{\"x\":" + value + "}", "it must be an object");
  }
  header("format-metadata-is-text", R"({"__metadata__":"t"})", "it must be an object of strings");
  header("format-metadata-number", R"({"__metadata__":{"a":1}})", "metadata values are strings");
  header("format-metadata-array", R"({"__metadata__":{"a":[]}})", "metadata values are strings");
  header("format-metadata-object", R"({"__metadata__":{"a":{}}})", "metadata values are strings");
  header("format-metadata-twice", R"({"__metadata__":{},"__metadata__":{}})", "declared twice");
  header("format-metadata-key-twice", R"({"__metadata__":{"a":"b","a":"b"}})", "\"a\" twice");
  header("format-tensor-twice", x + "," + x.substr(1) + "}", "declared twice", 4);
  header("format-field-twice", R"({"x":{"dtype":"F32","dtype":"F32"}})", "\"dtype\" twice");
  header("format-field-unknown", R"({"x":{"type":"F32"}})", "the field \"type\"");
  header("format-field-missing", R"({"x":{"dtype":"F32","shape":[1]}})", "has no data_offsets");
  header("format-dtype-number", R"({"x":{"dtype":32}})", "a dtype is a string");
  header("format-dtype-array", R"({"x":{"dtype":["F32"]}})", "a dtype is a string");
  header("format-dtype-null", R"({"x":{"dtype":null}})", "null in dtype");
  header("format-dtype-unknown", R"({"x":{"dtype":"F33","shape":[1],"data_offsets":[0,4]}})", "\"F33\" cannot be read", 4);
  header("format-dtype-unread", R"({"x":{"dtype":"U8","shape":[4],"data_offsets":[0,4]}})", "\"U8\" cannot be read", 4);
  header("format-shape-text", R"({"x":{"shape":"[1]"}})", "a list of integers");
  header("format-shape-number", R"({"x":{"shape":1}})", "a list of integers");
  header("format-shape-negative", R"({"x":{"shape":[-1]}})", "the negative number -1");
  header("format-shape-fraction", R"({"x":{"shape":[1.0]}})", "the number \"1.0\"");
  header("format-shape-beyond-64-bits", R"({"x":{"shape":[18446744073709551616]}})", "the number \"18446744073709551616\"");
  header("format-shape-true", R"({"x":{"shape":[true]}})", "a truth value");
  header("format-shape-string-inside", R"({"x":{"shape":["1"]}})", "a string in shape");
  header("format-shape-nested", R"({"x":{"shape":[[1]]}})", "an array in shape");
  header("format-shape-object", R"({"x":{"shape":[{}]}})", "an object in shape");
  header("format-field-object", R"({"x":{"shape":{"a":1}}})", "an object in shape");
  header("format-deep-nesting", R"({"x":{"shape":)" + std::string(10000, '[') + std::string(10000, ']') + "}}",
         "an array in shape");
  std::string dimensions = "1";
  for (int i = 0; i < 64; ++i) dimensions += ",1";
  header("format-many-dimensions", R"({"x":{"shape":[)" + dimensions + "]}}", "more than 64 dimensions");
  header("format-offsets-one", R"({"x":{"data_offsets":[0]}})", "has 1 data_offsets");
  header("format-offsets-three", R"({"x":{"data_offsets":[0,4,8]}})", "has 3 data_offsets");
  header("format-offsets-reversed", R"({"x":{"dtype":"F32","shape":[1],"data_offsets":[4,0]}})", "end before they begin", 4);
  header("format-offsets-past-end", x + "}", "truncated", 3);
  header("format-offsets-huge", R"({"x":{"dtype":"F32","shape":[1],"data_offsets":[0,18446744073709551615]}})", "truncated", 4);
  header("format-size-wrong", R"({"x":{"dtype":"F32","shape":[2],"data_offsets":[0,4]}})", "takes 8 bytes", 4);
  header("format-size-empty", R"({"x":{"dtype":"F32","shape":[0],"data_offsets":[0,4]}})", "takes 0 bytes", 4);
  header("format-size-overflow", R"({"x":{"dtype":"F32","shape":[4294967296,4294967296,2],"data_offsets":[0,4]}})",
         "more bytes than there are addresses", 4);
  header("format-size-part-of-byte", R"({"x":{"dtype":"F4","shape":[3],"data_offsets":[0,2]}})", "no whole number of bytes", 2);
  header("format-hole", R"({"x":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}})", "belong to no tensor", 8);
  header("format-overlap", x + R"(,"y":{"dtype":"F32","shape":[1],"data_offsets":[2,6]}})", "they overlap", 6);
  header("format-trailing-bytes", x + "}", "3 bytes at the end", 7);
  header("format-strange-name", "{\"a\\u0001\\u007f" + std::string(79, 'n') + "\xc3\xa9\":1}", "a\\x01\\x7f");
  header("format-long-name", "{\"" + std::string(79, 'n') + "\xc3\xa9" + "after\":1}", "\xc3\xa9...\" (86 bytes)");
}

inline void add_problems(std::vector<corpus_file>& files) {
  const auto add = [&](const std::string& name, const raw_file& f, const std::string& says = "") {
    files.push_back({"problem-" + name, f.bytes(), says});
  };
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const float infinity = std::numeric_limits<float>::infinity();
  add("ok-smallest", problem_file());
  add("ok-every-key", problem_file()
                          .key("qk_l2norm", "true")
                          .key("rule", "exact")
                          .key("beta_activation", "two_sigmoid")
                          .key("num_householder", "1")
                          .key("note", "n"));
  add("ok-no-l2norm", problem_file().key("qk_l2norm", "false"));
  add("ok-no-scale", problem_file().drop("scale"), "scale is absent");
  add("ok-unknown-key", problem_file().key("colour", "red"), "\"colour\" is unknown");
  add("ok-unknown-tensor", problem_file().add("extra", "U8", "[3]", 3), "\"extra\" is unknown");
  add("ok-unknown-dtype", problem_file().add("extra", "X7", "[3]", 2), "\"extra\" is unknown");
  add("ok-cotangents", problem_file().add("do", "F32", "[1,1,1,1]", 4).add("dfinal_state", "F32", "[1,1,1,1]", 4));
  add("shape-do", problem_file().add("do", "F32", "[1,1,1,2]", 8), "should be [1, 1, 1, 1], [B, T, HV, V]");
  add("shape-dfinal-state", problem_file().add("dfinal_state", "F32", "[2,1,1,1]", 8), "[N, HV, K, V]");
  add("domain-nan-do", problem_file().add("do", "F32", "[1,1,1,1]", f32(nan)), "tensor do: NaN at index [0, 0, 0, 0]");
  add("domain-infinite-dfinal-state", problem_file().add("dfinal_state", "F32", "[1,1,1,1]", f32(infinity)),
      "tensor dfinal_state: +inf");
  add("ok-minus-infinite-gate", problem_file().add("g", "F32", "[1,1,1]", f32(-infinity)));
  add("ok-growing-gate", problem_file().add("g", "F32", "[1,1,1]", f32(2)));
  add("ok-kda", problem_file().drop("op").key("op", "kda").add("g", "F32", "[1,1,1,1]", 4));
  add("ok-packed",
      problem_file().add("cu_seqlens", "I64", "[4]", i64({0, 0, 1, 1})).add("initial_state", "F32", "[3,1,1,1]", 12));
  add("ok-no-tokens", problem_file()
                          .add("q", "F32", "[1,0,1,1]", 0)
                          .add("k", "F32", "[1,0,1,1]", 0)
                          .add("v", "F32", "[1,0,1,1]", 0)
                          .add("beta", "F32", "[1,0,1]", 0));
  add("format-no-format", problem_file().drop("format"), "format is absent");
  add("format-is-result", result_file(), "is a result file (metadata key format is");
  add("format-other-format", problem_file().drop("format").key("format", "deltaproof.problem/2"), "only deltaproof.problem/1");
  add("format-no-op", problem_file().drop("op"), "op is absent");
  add("format-op", problem_file().drop("op").key("op", "attention"), "unknown op \"attention\"");
  add("format-rule", problem_file().key("rule", "rk5"), "unknown rule \"rk5\"");
  add("format-activation", problem_file().key("beta_activation", "relu"), "unknown beta_activation");
  add("format-l2norm", problem_file().key("qk_l2norm", "True"), "use true or false");
  add("format-scale-text", problem_file().drop("scale").key("scale", "1/8"), "scale is \"1/8\"");
  add("format-scale-infinite", problem_file().drop("scale").key("scale", "inf"), "scale is \"inf\"");
  add("format-scale-range", problem_file().drop("scale").key("scale", "1e999"), "scale is \"1e999\"");
  add("format-steps-zero", problem_file().key("num_householder", "0"), "num_householder is \"0\"");
  add("format-steps-text", problem_file().key("num_householder", "two"), "num_householder is \"two\"");
  add("format-steps-trailing", problem_file().key("num_householder", "2x"), "num_householder is \"2x\"");
  add("shape-steps-huge", problem_file().key("num_householder", "18446744073709551615"), "tensor k");
  add("format-missing-tensor", problem_file().drop("beta"), "beta is missing");
  add("format-bad-dtype", problem_file().add("beta", "U8", "[1,1,1]", 1), "\"U8\" cannot be read");
  add("format-q-integer", problem_file().add("q", "I64", "[1,1,1,1]", 8), "not a floating-point format");
  add("format-q-fp8", problem_file().add("q", "F8_E4M3", "[1,1,1,1]", 1), "not one of BF16");
  add("format-mixed", problem_file().add("k", "BF16", "[1,1,1,1]", 2), "must share one dtype");
  add("format-mixed-v", problem_file().add("v", "F16", "[1,1,1,1]", 2), "must share one dtype");
  add("format-beta-integer", problem_file().add("beta", "I64", "[1,1,1]", 8), "not a floating-point format");
  add("format-g-integer", problem_file().add("g", "I64", "[1,1,1]", 8), "not a floating-point format");
  add("format-state-integer", problem_file().add("initial_state", "I64", "[1,1,1,1]", 8), "not a floating-point format");
  add("format-offsets-i32", problem_file().add("cu_seqlens", "F32", "[2]", 8), "where I64 is required");
  add("shape-rank", problem_file().add("q", "F32", "[1,1,1]", 4), "it needs 4");
  add("shape-no-batch", problem_file().add("q", "F32", "[0,1,1,1]", 0), "B = 0");
  add("shape-no-head", problem_file().add("q", "F32", "[1,1,0,1]", 0), "H = 0");
  add("shape-no-key", problem_file().add("q", "F32", "[1,1,1,0]", 0), "K = 0");
  add("shape-no-value-head", problem_file().add("v", "F32", "[1,1,0,1]", 0), "HV = 0");
  add("shape-no-value", problem_file().add("v", "F32", "[1,1,1,0]", 0), "V = 0");
  add("shape-heads", problem_file().add("q", "F32", "[1,1,2,1]", 8), "not a multiple of H = 2");
  add("shape-k", problem_file().add("k", "F32", "[1,2,1,1]", 8), "should be [1, 1, 1, 1]");
  add("shape-state-huge",
      problem_file()
          .add("q", "F32", "[1,0,1,4294967296]", 0)
          .add("k", "F32", "[1,0,1,4294967296]", 0)
          .add("v", "F32", "[1,0,1,4294967296]", 0)
          .add("beta", "F32", "[1,0,1]", 0),
      "more than 2^40");
  add("shape-state-beyond-2-40",
      problem_file()
          .add("q", "F32", "[1,0,1,4294967296]", 0)
          .add("k", "F32", "[1,0,1,4294967296]", 0)
          .add("v", "F32", "[1,0,1,1024]", 0)
          .add("beta", "F32", "[1,0,1]", 0),
      "more than 2^40");
  add("shape-steps-overflow", problem_file().key("num_householder", "18446744073709551615").add("q", "F32", "[1,2,1,1]", 8),
      "is too large");
  add("shape-g-delta-rule", problem_file().drop("op").key("op", "delta_rule").add("g", "F32", "[1,1,1]", 4), "has no decay");
  add("shape-g-rank-kda", problem_file().drop("op").key("op", "kda").add("g", "F32", "[1,1,1]", 4), "[B, T, HV, K]");
  add("shape-g-rank", problem_file().add("g", "F32", "[1,1,1,1]", 4), "[B, T, HV] for op gated_delta_rule");
  add("shape-state", problem_file().add("initial_state", "F32", "[2,1,1,1]", 8), "[N, HV, K, V]");
  add("shape-offsets-none", problem_file().add("cu_seqlens", "I64", "[0]", 0), "should be [N+1]");
  add("shape-offsets-rank", problem_file().add("cu_seqlens", "I64", "[1,2]", i64({0, 1})), "should be [N+1]");
  add("shape-offsets-batch",
      problem_file()
          .add("q", "F32", "[2,1,1,1]", 8)
          .add("k", "F32", "[2,1,1,1]", 8)
          .add("v", "F32", "[2,1,1,1]", 8)
          .add("beta", "F32", "[2,1,1]", 8)
          .add("cu_seqlens", "I64", "[2]", i64({0, 1})),
      "need B = 1");
  add("domain-offsets-start", problem_file().add("cu_seqlens", "I64", "[2]", i64({1, 1})), "starts at 1");
  add("domain-offsets-fall", problem_file().add("cu_seqlens", "I64", "[4]", i64({0, 1, 0, 1})), "below 1");
  add("domain-offsets-negative", problem_file().add("cu_seqlens", "I64", "[3]", i64({0, -1, 1})), "below 0");
  add("domain-offsets-end", problem_file().add("cu_seqlens", "I64", "[2]", i64({0, 2})), "ends at 2");
  add("domain-nan", problem_file().add("q", "F32", "[1,1,1,1]", f32(nan)), "NaN at index [0, 0, 0, 0]");
  add("domain-infinite", problem_file().add("k", "F32", "[1,1,1,1]", f32(infinity)), "tensor k: +inf");
  add("domain-minus-infinite", problem_file().add("v", "F32", "[1,1,1,1]", f32(-infinity)), "tensor v: -inf");
  add("domain-nan-beta", problem_file().add("beta", "F32", "[1,1,1]", f32(nan)), "tensor beta: NaN");
  add("domain-nan-gate", problem_file().add("g", "F32", "[1,1,1]", f32(nan)), "tensor g: NaN");
  add("domain-infinite-gate", problem_file().add("g", "F32", "[1,1,1]", f32(infinity)), "tensor g: +inf");
  add("domain-nan-state", problem_file().add("initial_state", "F32", "[1,1,1,1]", f32(nan)), "initial_state: NaN");
}

inline void add_results(std::vector<corpus_file>& files) {
  const auto add = [&](const std::string& name, const raw_file& f, const std::string& says = "") {
    files.push_back({name, f.bytes(), says});
  };
  const auto plain = [] { return result_file().drop("o").add("o", "F32", "[2,3,1,1]", 24); };
  const std::string nan = f32(std::numeric_limits<float>::quiet_NaN());
  add("result-ok-smallest", result_file());
  add("result-ok-every-key",
      result_file().key("kernel", "k").key("producer", "p").key("state_layout", "kv").add("final_state", "F32", "[2,2,2,3]", 96));
  add("result-ok-transposed", result_file().key("state_layout", "vk").add("final_state", "BF16", "[2,2,3,2]", 48));
  add("result-ok-no-hash", result_file().drop("problem_sha256"), "problem_sha256 is absent");
  add("result-ok-no-path", result_file().drop("path"), "path is absent; the chunk path is assumed");
  add("result-ok-no-path-no-chunk-size", result_file().drop("path").drop("chunk_size"),
      "path is absent; the recurrent path is assumed");
  add("result-ok-no-chunk-size", result_file().drop("chunk_size"), "path is chunk, but metadata key chunk_size is absent");
  add("result-ok-chunk-size-of-A", result_file().drop("chunk_size").add("A", "F32", "[1,3,2,2]", 48), "from the columns of A");
  add("result-ok-chunk-size-of-Aqk", result_file().drop("chunk_size").add("Aqk", "F32", "[1,3,2,2]", 48),
      "from the columns of Aqk");
  add("result-ok-recurrent", result_file().drop("path").drop("chunk_size").key("path", "recurrent"));
  add("result-ok-stages", result_file()
                              .add("g_cumsum_log2", "F32", "[1,3,2,2]", 48)
                              .add("A", "F32", "[1,3,2,2]", 48)
                              .add("Ai", "BF16", "[1,3,2,2]", 24)
                              .add("w", "BF16", "[1,3,2,2]", 24)
                              .add("u", "BF16", "[1,3,2,3]", 36)
                              .add("h", "BF16", "[1,2,2,2,3]", 48)
                              .add("v_new", "BF16", "[1,3,2,3]", 36)
                              .add("Aqk", "BF16", "[1,3,2,2]", 24));
  add("result-ok-gradient", result_file().add("dq", "F32", "[1,3,1,2]", 24),
      "record the do or dfinal_state of the backward pass");
  add("result-ok-backward-stages", result_file()
                                       .key("pass", "both")
                                       .add("dv_local", "BF16", "[1,3,2,3]", 36)
                                       .add("dh", "BF16", "[1,2,2,2,3]", 48)
                                       .add("dw", "BF16", "[1,3,2,2]", 24)
                                       .add("dq_hat", "F32", "[1,3,1,2]", 24));
  add("result-shape-backward-stage", result_file().add("dh", "F32", "[1]", 4),
      "should be [1, 2, 2, 2, 3] for this problem, [B, chunks, HV, K, V] with chunk_size = 2");
  add("result-format-backward-stage-chunk", result_file().drop("chunk_size").add("dh", "F32", "[1]", 4),
      "add chunk_size to the metadata");
  add("result-shape-gradient", result_file().add("dq", "F32", "[1]", 4),
      "shape [1] should be [1, 3, 1, 2] for this problem, the shape of q");
  add("result-format-gradient-integer", result_file().add("dq", "I64", "[1,3,1,2]", 48), "is not a floating-point format");
  add("result-format-pass", result_file().key("pass", "sideways"), "use forward, backward or both");
  add("result-ok-unknown", result_file().key("colour", "blue").add("o_lo", "F64", "[1]", 8), "\"colour\" is unknown");
  add("plain_result-ok-stages",
      plain().add("g_cumsum_log2", "F64", "[2,6,1]", 96).add("h", "F32", "[2,3,1,1,1]", 24).add("A", "F32", "[2,6,1,2]", 96));
  add("plain_result-ok-nan", result_file().drop("o").add("o", "F32", "[2,3,1,1]", nan + nan + nan + nan + nan + nan));
  add("result-format-is-problem", problem_file(), "is a problem file (metadata key format is");
  add("result-format-path", result_file().drop("path").key("path", "fast"), "unknown path \"fast\"");
  add("result-format-layout", result_file().key("state_layout", "KV"), "unknown state_layout");
  add("result-format-chunk-size", result_file().drop("chunk_size").key("chunk_size", "-64"), "chunk_size is \"-64\"");
  add("result-format-hash", result_file().drop("problem_sha256").key("problem_sha256", "abc"), "a result of another problem");
  add("result-format-no-output", result_file().drop("o"), "o is missing");
  add("result-format-integer", result_file().add("o", "I64", "[1,3,2,3]", 144), "not a floating-point format");
  add("result-format-h-needs-chunk-size", result_file().drop("chunk_size").add("h", "F32", "[1,2,2,2,3]", 96), "add chunk_size");
  add("result-format-A-needs-chunk-size", result_file().drop("chunk_size").add("A", "F32", "[1,3,2,0]", 0), "add chunk_size");
  add("result-format-A-rank", result_file().drop("chunk_size").add("A", "F32", "[1,3,2]", 24), "add chunk_size");
  add("result-format-cumsum-dtype", result_file().add("g_cumsum_log2", "BF16", "[1,3,2,2]", 24), "where F32 or F64");
  add("result-shape-output", result_file().add("o", "BF16", "[1,3,3,2]", 36), "should be [1, 3, 2, 3]");
  add("result-shape-state", result_file().add("final_state", "F32", "[2,2,3,2]", 96), "state_layout kv");
  add("result-shape-state-transposed", result_file().key("state_layout", "vk").add("final_state", "F32", "[2,2,2,3]", 96),
      "state_layout vk");
  add("result-shape-stage", result_file().add("u", "F32", "[1,3,2,2]", 48), "tensor u");
  add("result-shape-chunks", result_file().add("h", "F32", "[1,3,2,2,3]", 144), "tensor h");
  add("plain_result-shape-rows", plain().add("g_cumsum_log2", "F32", "[2,3,1]", 24), "[2, 6, 1]");
}

}  // namespace corpus

inline std::vector<corpus_file> corpus_files() {
  std::vector<corpus_file> files;
  corpus::add_headers(files);
  corpus::add_problems(files);
  corpus::add_results(files);
  return files;
}

}  // namespace deltaproof::testing
