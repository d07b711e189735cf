// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// The thresholds of the code against proofs/constants.txt, whose values proofs/check.sh finds in the statements of the theorems:
// every line is compared with what the code has, and a line that nothing compares fails.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <fstream>
#include <map>
#include <set>
#include <sstream>
#include <string>

#include "deltaproof/number/elementary.hpp"
#include "deltaproof/number/rational.hpp"
#include "deltaproof/oracle/certify.hpp"
#include "deltaproof/rule/rules.hpp"

namespace deltaproof {
namespace {

/// name -> value, from `name = value = path`.
std::map<std::string, double> constants() {
  std::ifstream file(DELTAPROOF_SOURCE_DIR "/proofs/constants.txt");
  std::map<std::string, double> found;
  for (std::string line; std::getline(file, line);) {
    if (line.empty() || line.front() == '#') continue;
    std::istringstream words(line);
    std::string name, equals, value, also, path, more;
    words >> name >> equals >> value >> also >> path;
    EXPECT_TRUE(words && equals == "=" && also == "=" && path.starts_with("deltaproof.") && !(words >> more)) << line;
    char* end = nullptr;
    found[name] = std::strtod(value.c_str(), &end);
    EXPECT_EQ(*end, '\0') << line;
  }
  return found;
}

class thresholds : public ::testing::Test {
 protected:
  double at(const std::string& name) {
    used_.insert(name);
    const auto line = all_.find(name);
    EXPECT_NE(line, all_.end()) << "proofs/constants.txt has no line " << name;
    return line == all_.end() ? 0 : line->second;
  }
  /// The number of the format after x, x > 0.
  template <format F>
  static double after(double x) {
    const rounded<F> at = rounded<F>::from_exact(x);
    return rounded<F>::from_bits(static_cast<typename rounded<F>::bits_type>(at.bits() + 1)).value();
  }
  template <format F>
  void check_safe_step(const std::string& name) {
    const double safe = at("safe_beta_" + name), unsafe = at("unsafe_beta_" + name);
    EXPECT_EQ(safe, 2 * (1 - 2 * unit_roundoff(F))) << name;  // what study eigenvalues reports as proved
    EXPECT_EQ(unsafe, 2 * (1 - unit_roundoff(F))) << name;
    EXPECT_EQ(round_to<F>(safe).value(), safe) << name;
    EXPECT_EQ(after<F>(safe), unsafe) << name;
    EXPECT_EQ(after<F>(unsafe), 2) << name;
  }
  template <format In, format Out>
  void check_sigmoid(const std::string& name) {
    const double one = at("sigmoid_one_" + name), below = at("sigmoid_below_one_" + name);
    EXPECT_EQ(after<In>(below), one) << name;
    EXPECT_EQ(sigmoid(rounded<Out>::from_exact(one)).value(), 1) << name;
    EXPECT_LT(sigmoid(rounded<Out>::from_exact(below)).value(), 1) << name;
  }
  /// |R| <= 1 at the limit and > 1 at the next double, R in exact rationals.
  template <class Rule>
  void check_limit() {
    const double limit = at("limit_" + std::string(Rule::name));
    EXPECT_EQ(limit, Rule::limit) << Rule::name;
    const double next = std::nextafter(limit, 3);
    EXPECT_LE(abs(Rule::stability(exact(limit))), 1) << Rule::name;
    EXPECT_GT(abs(Rule::stability(exact(next))), 1) << Rule::name;
  }
  [[nodiscard]] const std::map<std::string, double>& all() const { return all_; }
  [[nodiscard]] const std::set<std::string>& used() const { return used_; }

 private:
  std::map<std::string, double> all_ = constants();
  std::set<std::string> used_;
};

TEST_F(thresholds, are_those_of_the_theorems) {
  EXPECT_EQ(unit_roundoff(bf16), at("unit_roundoff_bf16"));
  EXPECT_EQ(unit_roundoff(fp16), at("unit_roundoff_fp16"));
  EXPECT_EQ(unit_roundoff(tf32), at("unit_roundoff_tf32"));
  EXPECT_EQ(unit_roundoff(fp32), at("unit_roundoff_fp32"));
  EXPECT_EQ(unit_roundoff(fp64), at("unit_roundoff_fp64"));
  EXPECT_EQ(fp64_field::unit_roundoff, at("unit_roundoff_fp64"));
  EXPECT_EQ(detail::radius_slack, at("radius_slack"));
  check_safe_step<bf16>("bf16");
  check_safe_step<fp16>("fp16");
  check_safe_step<fp32>("fp32");
  check_sigmoid<bf16, bf16>("bf16");
  check_sigmoid<fp16, fp16>("fp16");
  check_sigmoid<fp32, fp32>("fp32");
  check_sigmoid<bf16, fp32>("bf16_to_fp32");
  check_limit<euler>();
  check_limit<rk2>();
  check_limit<rk3>();
  check_limit<rk4>();
  for (const auto& [name, value] : all()) EXPECT_EQ(used().count(name), 1U) << name << " is compared with nothing";
}

/// The formats of the theorems are those of the table: precision, and 2^emin of the smallest subnormal.
TEST(formats_of_the_theorems, are_those_of_the_table) {
  EXPECT_EQ(smallest_subnormal(bf16), 0x1p-133);
  EXPECT_EQ(smallest_subnormal(fp16), 0x1p-24);
  EXPECT_EQ(smallest_subnormal(tf32), 0x1p-136);
  EXPECT_EQ(smallest_subnormal(fp32), 0x1p-149);
  EXPECT_EQ(smallest_subnormal(fp64), 0x1p-1074);
}

}  // namespace
}  // namespace deltaproof
