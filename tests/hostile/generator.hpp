// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// Hostile files from a seed: honest ones (tensors, plans, suites, verdicts, baselines) with one to four things done to them that
// an accident or an opponent does. `hostile_file(kind, seed)` gives the same bytes on every machine.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "deltaproof/number/random.hpp"
#include "deltaproof/plan/plan.hpp"
#include "deltaproof/support/read_file.hpp"
#include "files/corpus.hpp"
#include "hostile/readers.hpp"

namespace deltaproof::testing {

namespace hostile {

inline std::size_t pick(philox& random, std::size_t count) { return static_cast<std::size_t>(random.below(count)); }

/// Words that stand where a number, a name or a text is expected.
inline std::string hostile_word(philox& random) {
  static const std::vector<std::string> words{"-1",
                                              "0",
                                              "1e400",
                                              "-1e400",
                                              "NaN",
                                              "nan",
                                              "Infinity",
                                              "inf",
                                              "18446744073709551615",
                                              "18446744073709551616",
                                              "9223372036854775808",
                                              "-9223372036854775809",
                                              "1e-400",
                                              "0x10",
                                              "1.5",
                                              "null",
                                              "true",
                                              "[]",
                                              "{}",
                                              "\"\"",
                                              "\"\\u0000\"",
                                              "\"a\\u0000b\"",
                                              "\"\\u202e\"",
                                              "\"\\ud800\"",
                                              "\"/dev/zero\"",
                                              "\"../../../../etc/passwd\"",
                                              "\"nowhere.toml\"",
                                              "\"F32\"",
                                              "\"I64\"",
                                              "[1,2]",
                                              "[[[[1]]]]",
                                              "[0,18446744073709551615]",
                                              "{\"a\":{\"b\":{}}}",
                                              "\"\"\"",
                                              "'''",
                                              "\xff\xfe",
                                              "\xef\xbb\xbf",
                                              "1979-05-27",
                                              "+",
                                              "\"none\"",
                                              "\"X\""};
  if (pick(random, 40) == 0) return "\"" + std::string(100000, 'a') + "\"";
  if (pick(random, 40) == 0) return std::string(100000, '9');
  return words[pick(random, words.size())];
}

/// Nesting that a reader which goes down with it does not survive.
inline std::string deep_text(philox& random, bool toml) {
  const std::size_t depth = 65 + pick(random, 200000);
  std::string text;
  switch (pick(random, toml ? 4 : 2)) {
    case 0:
      return (toml ? "deep = " : "") + std::string(depth, '[') + std::string(depth, ']');
    case 1:
      if (toml) text = "deep = ";
      for (std::size_t i = 0; i < depth; ++i) text += toml ? "{a=" : "{\"a\":";
      return text + "1" + std::string(depth, '}');
    case 2:
      for (std::size_t i = 0; i < depth; ++i) text += "a.";
      return text + "a = 1\n";
    default:
      text = "[";
      for (std::size_t i = 0; i < depth; ++i) text += pick(random, 2) == 0 ? "a." : "'b' . ";
      return text + "a]\n";
  }
}

/// The value that begins at or after `from`: a quoted text, a number or a word.
inline std::pair<std::size_t, std::size_t> value_after(const std::string& text, std::size_t from) {
  const std::size_t begin = text.find_first_of("\"0123456789tfn[{", from);
  if (begin == std::string::npos) return {text.size(), 0};
  if (text[begin] == '"') {
    const std::size_t end = text.find('"', begin + 1);
    return {begin, end == std::string::npos ? text.size() - begin : end - begin + 1};
  }
  if (text[begin] == '[' || text[begin] == '{') return {begin, 1};
  return {begin, std::min(text.find_first_not_of("0123456789.eE+-truefalsn", begin), text.size()) - begin};
}

/// One thing done to a text. `toml`: which nesting would be deep.
inline void harm(std::string& text, philox& random, bool toml) {
  const std::size_t at = text.empty() ? 0 : pick(random, text.size());
  const std::size_t some = std::min(text.size() - at, 1 + pick(random, 40));
  switch (pick(random, 12)) {
    case 0:
      text.erase(at, some);
      break;
    case 1:
      text.insert(at, text.substr(at, some));
      break;
    case 2:
      text.resize(at);
      break;
    case 3:
      if (!text.empty()) text[at] = static_cast<char>(pick(random, 256));
      break;
    case 4:
      text.insert(at, std::string(1 + pick(random, 3), static_cast<char>(pick(random, 256))));
      break;
    case 5: {
      // A line, or a field, twice.
      const std::size_t line = text.rfind('\n', at) == std::string::npos ? 0 : text.rfind('\n', at) + 1;
      const std::size_t end = std::min(text.find('\n', at), text.size());
      text.insert(line, text.substr(line, end - line) + "\n");
      break;
    }
    case 6:
      if (pick(random, 4) == 0) text.insert(toml ? 0 : at, deep_text(random, toml));
      break;
    case 7:
      text.insert(at, std::string(1, "\"'[]{}=,.:\n#\\"[pick(random, 13)]));
      break;
    default: {
      const auto [begin, length] = value_after(text, at);
      text.replace(begin, length, hostile_word(random));
    }
  }
}

/// Tensors with a hostile header: what is changed is the JSON, and sometimes the length before it.
inline std::string tensors(philox& random) {
  static const std::vector<corpus_file> honest = corpus_files();
  std::string bytes = honest[pick(random, honest.size())].bytes;
  if (bytes.size() < 8 || pick(random, 4) == 0) {
    harm(bytes, random, false);
    return bytes;
  }
  std::size_t length = 0;
  for (int i = 7; i >= 0; --i) length = length << 8U | static_cast<unsigned char>(bytes[static_cast<std::size_t>(i)]);
  if (length > bytes.size() - 8) length = bytes.size() - 8;
  std::string header = bytes.substr(8, length);
  for (std::size_t times = 1 + pick(random, 3); times > 0; --times) harm(header, random, false);
  const std::uint64_t stated = pick(random, 8) == 0 ? random() >> pick(random, 64) : header.size();
  return raw_file::with_length(stated, header + bytes.substr(8 + length));
}

}  // namespace hostile

inline std::string hostile_file(hostile_kind kind, std::uint64_t seed) {
  philox random(seed, static_cast<std::uint64_t>(kind));
  if (kind == hostile_kind::tensors) return hostile::tensors(random);
  std::string text;
  if (kind == hostile_kind::plan) text = plan_text(plans()[hostile::pick(random, plans().size())].name);
  const std::filesystem::path seeds = std::filesystem::path(DELTAPROOF_SOURCE_DIR) / "tests/hostile/seeds";
  if (kind == hostile_kind::suite) text = read_file(seeds / "suite/two-cases.toml", suite_limit);
  if (kind == hostile_kind::verdict) text = read_file(seeds / "verdict/refuted.json", verdict_limit);
  if (kind == hostile_kind::baseline) text = read_file(seeds / "baseline/two-cases.json", verdict_limit);
  const bool toml = kind == hostile_kind::plan || kind == hostile_kind::suite;
  for (std::size_t times = 1 + hostile::pick(random, 4); times > 0; --times) hostile::harm(text, random, toml);
  return text;
}

}  // namespace deltaproof::testing
