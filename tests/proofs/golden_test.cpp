// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// rounded<bf16> against the verified operators, bit for bit: tests/proofs/bf16_golden.txt holds their results, the operands
// follow from the rule stated in proofs/golden/print_vectors.ml and written a second time here.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <fstream>
#include <functional>
#include <sstream>
#include <string>
#include <vector>

#include "deltaproof/number/convert.hpp"

namespace deltaproof {
namespace {

using half = rounded<bf16>;
using pattern = std::uint16_t;

std::vector<std::uint32_t> specials() {
  std::vector<std::uint32_t> all{0x0000, 0x0001, 0x0002, 0x0003, 0x0040, 0x007f, 0x0080, 0x0081, 0x00ff, 0x0100, 0x1f80,
                                 0x3b00, 0x3b80, 0x3c00, 0x3eab, 0x3f00, 0x3f7f, 0x3f80, 0x3f81, 0x3fb5, 0x3fff, 0x4000,
                                 0x4040, 0x4300, 0x4380, 0x5f80, 0x7f00, 0x7f7f, 0x7f80, 0x7f81, 0x7fc0, 0x7fff};
  const std::size_t positive = all.size();
  for (std::size_t i = 0; i < positive; ++i) all.push_back(all[i] | 0x8000);
  return all;
}

std::uint32_t mix(std::uint32_t x) {
  x ^= x >> 16;
  x *= 0x9e3779b1;
  x ^= x >> 15;
  x *= 0x85ebca77;
  return x ^ (x >> 13);
}

struct operation {
  std::string name;
  std::uint32_t number;
  std::uint32_t hashed;
  std::function<pattern(std::uint32_t, std::uint32_t)> apply;
};

half from(std::uint32_t bits) { return half::from_bits(static_cast<pattern>(bits)); }

std::vector<operation> operations() {
  return {{"add", 0, 27000, [](std::uint32_t a, std::uint32_t b) { return (from(a) + from(b)).bits(); }},
          {"mul", 1, 25000, [](std::uint32_t a, std::uint32_t b) { return (from(a) * from(b)).bits(); }},
          {"div", 2, 22000, [](std::uint32_t a, std::uint32_t b) { return (from(a) / from(b)).bits(); }},
          {"sqrt", 3, 6000, [](std::uint32_t a, std::uint32_t) { return sqrt(from(a)).bits(); }},
          {"round", 4, 10000, [](std::uint32_t a, std::uint32_t) { return round_to<bf16>(std::bit_cast<float>(a)).bits(); }}};
}

struct operands {
  std::uint32_t a;
  std::uint32_t b;
};

operands hashed(std::uint32_t number, std::uint32_t i) {
  const std::uint32_t w0 = mix((number << 24) + 2 * i), w1 = mix((number << 24) + 2 * i + 1);
  const std::uint32_t mode = w1 >> 16 & 3;
  const int r = static_cast<int>(w1 >> 18 & 31);
  if (number == 3) return {mode == 0 ? w0 & 0xffff : w0 & 0x7fff, 0};
  if (number == 4) {
    switch (mode) {
      case 0:
        return {w0, 0};
      case 1:
        return {(w0 & 0xffff0000) | 0x8000, 0};
      case 2:
        return {(w0 & 0xffff0000) | static_cast<std::uint32_t>(0x8000 + r - 16), 0};
      default:
        return {(w0 & 0x807fffff) | (r % 2 == 0 ? 0U : 254U) << 23, 0};
    }
  }
  const std::uint32_t a = w0 & 0xffff;
  if (mode == 0) return {a, w1 & 0xffff};
  const int e = static_cast<int>(a >> 7 & 255);
  const int target = mode == 1 ? r - 16 : mode == 2 ? r + 240 : r + 111;
  const int exponent = number == 0 ? e + r - 16 : number == 1 ? target + 127 - e : e + 127 - target;
  return {a, (w1 & 0x807f) | static_cast<std::uint32_t>(std::clamp(exponent, 0, 255)) << 7};
}

std::vector<operands> cases(const operation& op) {
  std::vector<operands> all;
  for (const std::uint32_t a : specials()) {
    if (op.number == 3) {
      all.push_back({a, 0});
    } else if (op.number == 4) {
      for (const std::uint32_t low : {0x0000U, 0x0001U, 0x7fffU, 0x8000U, 0x8001U, 0xffffU}) all.push_back({a << 16 | low, 0});
    } else {
      for (const std::uint32_t b : specials()) all.push_back({a, b});
    }
  }
  for (std::uint32_t i = 0; i < op.hashed; ++i) all.push_back(hashed(op.number, i));
  return all;
}

/// Eight digits of base 64 are three results, the first one in the highest bits.
class results {
 public:
  explicit results(std::istream& in) : in_(in) {}

  void section(std::string& name, std::size_t& count) {
    held_.clear();
    in_ >> name >> count;
  }
  pattern next() {
    if (held_.empty()) refill();
    const pattern value = held_.back();
    held_.pop_back();
    return value;
  }

 private:
  void refill() {
    static const std::string digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    std::uint64_t bits = 0;
    for (int i = 0; i < 8; ++i) {
      char c = 0;
      in_ >> c;
      const std::size_t digit = in_ ? digits.find(c) : std::string::npos;
      if (digit == std::string::npos) throw format_error("bf16_golden.txt ends or is not in base 64");
      bits = bits << 6 | digit;
    }
    for (int shift : {0, 16, 32}) held_.push_back(static_cast<pattern>(bits >> shift));
  }

  std::istream& in_;
  std::vector<pattern> held_;
};

std::string hex(std::uint32_t x) {
  std::ostringstream text;
  text << "0x" << std::hex << x;
  return text.str();
}

TEST(golden, bf16_agrees_with_the_verified_operators_bit_for_bit) {
  std::ifstream file(DELTAPROOF_SOURCE_DIR "/tests/proofs/bf16_golden.txt");
  ASSERT_TRUE(file);
  std::string comment;
  std::getline(file, comment);
  results stored(file);
  std::size_t total = 0;
  for (const operation& op : operations()) {
    std::string name;
    std::size_t count = 0;
    stored.section(name, count);
    const std::vector<operands> all = cases(op);
    ASSERT_EQ(name, op.name);
    ASSERT_EQ(count, all.size());
    std::size_t different = 0;
    for (const auto& [a, b] : all) {
      const pattern want = stored.next(), got = op.apply(a, b);
      if (got == want) continue;
      if (++different > 5) continue;
      ADD_FAILURE() << op.name << ' ' << hex(a) << ' ' << hex(b) << ": got " << hex(got) << ", verified " << hex(want);
    }
    EXPECT_EQ(different, 0U) << op.name;
    total += all.size();
  }
  EXPECT_GE(total, 100000U);
  std::string rest;
  EXPECT_FALSE(file >> rest) << "more in the file than was compared: " << rest;
}

/// The comparison can fail: each operation gives many different results, NaN, infinities, zeros and subnormals among them.
TEST(golden, the_cases_reach_every_kind_of_result) {
  for (const operation& op : operations()) {
    std::array<std::size_t, 5> kinds{};
    for (const auto& [a, b] : cases(op)) {
      const std::uint32_t magnitude = op.apply(a, b) & 0x7fffU;
      ++kinds[magnitude == 0 ? 0 : magnitude < 0x80 ? 1 : magnitude < 0x7f80 ? 2 : magnitude == 0x7f80 ? 3 : 4];
    }
    for (std::size_t kind = 0; kind < kinds.size(); ++kind) {
      if (op.number == 3 && kind == 1) continue;  // no root is subnormal
      EXPECT_GT(kinds[kind], 0U) << op.name << ", kind " << kind;
    }
    EXPECT_GT(kinds[2], op.hashed / 4) << op.name;
  }
}

}  // namespace
}  // namespace deltaproof
