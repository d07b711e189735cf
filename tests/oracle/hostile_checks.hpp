// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// What must hold of every answer about a hostile problem, whichever tier gives it: no radius below the error, no radius of 0
// that is not exact, no rounding that is not the truth's, no false word about where it leaves its range.
#pragma once

#include <gtest/gtest.h>
#include <mpfr.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "deltaproof/oracle/measure.hpp"
#include "deltaproof/oracle/reference.hpp"
#include "oracle/hostile_problems.hpp"
#include "oracle/judge.hpp"
#include "oracle/solve/stream.hpp"
#include "oracle/tiers/simd.hpp"

namespace deltaproof::testing {

/// Answers that were looked at: a test that saw none would prove nothing.
struct hostile_counts {
  std::size_t problems = 0, bounded = 0, exact = 0, roundings = 0, sums = 0, divergences = 0, refused = 0;
  /// Elements whose truth is an ordinary number of fp64 and that were asked for with all the bits there are; those that were not
  /// rounded, and of these those of which no digit is known.
  std::size_t asked = 0, undecided = 0, unknown = 0;
};

template <class Real>
class hostile_check {
 public:
  hostile_check(const problem& p, std::uint64_t seed, std::uint64_t number, hostile_counts& seen)
      : p_{p}, random_{seed, number ^ (std::uint64_t{1} << 40)}, seen_{seen}, truth_{judge<Real>(p)} {}

  /// What is wrong with the answers about this problem; empty: nothing.
  std::string run() {
    ++seen_.problems;
    for (const int bits : {53, 106, 128, 256}) {
      question q;
      q.min_bits = q.max_bits = bits;
      answered(q, "tier of " + std::to_string(bits) + " bits");
    }
    question small;
    small.relative_radius = std::ldexp(1.0, -static_cast<int>(40 + random_.below(600)));
    answered(small, "small radius");
    rounding(0);
    rounding(1 + random_.below(4));
    if (p_.tokens() > 12 || random_.below(4) == 0) in_blocks(random_.below(3));
    ranged();
    return wrong_;
  }

 private:
  static constexpr double infinity = std::numeric_limits<double>::infinity();

  void answered(question q, const std::string& what) {
    q.threads = 1;
    if (q.range.output == infinity) q.always_exact = random_.below(4) == 0;
    reference ref;
    if (!solved(what, [&] { ref = solve(p_, q); })) return;
    const std::size_t known = ref.divergences.empty() ? truth_.o.size() : ref.divergences[0].token * p_.value_dim();
    enclosed(what + ": o", ref.o, truth_.o, known);
    if (ref.divergences.empty()) enclosed(what + ": final_state", ref.final_state, truth_.state, truth_.state.size());
    if (q.range.output < infinity) left_range(what, q, ref);
    if (!ref.divergences.empty()) return;
    measured(what + ": o", ref.o, truth_.o);
    measured(what + ": final_state", ref.final_state, truth_.state);
  }

  /// What `measure` says of a result: no error outside its enclosure.
  void measured(const std::string& what, const reference_tensor& ref, const std::vector<Real>& truth) {
    if (ref.value.empty() || truth.empty()) return;
    std::vector<double> got(truth.size());
    const std::size_t kind = random_.below(3);
    for (std::size_t i = 0; i < got.size() && kind > 0; ++i) {
      const double near = std::clamp(judge_detail::nearest(truth[i]), -1e300, 1e300);
      got[i] = kind == 1 ? static_cast<double>(static_cast<float>(std::clamp(near, -3e38, 3e38)))
                         : near * (1 + 1e-3 * random_.uniform());
    }
    const format of = random_.below(2) == 0 ? fp32 : bf16;
    const measurement m = measure(got, ref, of);
    tracked::precision() = std::max<mpfr_prec_t>(tracked::precision(), 4096);
    tracked most = 0.0, ulps = 0.0, error = 0.0, exact = 0.0;
    for (std::size_t i = 0; i < got.size(); ++i) {
      in_mpfr(truth[i], [&](mpfr_ptr y) {
        const tracked x = tracked::from(y), e = magnitude(tracked(got[i]) - x);
        const long binade = x.is_zero() ? of.emin : std::max<long>(mpfr_get_exp(x.get()) - 1, of.emin);
        if (most < e) most = e;
        const tracked in_ulps = e / tracked::power(binade - of.precision + 1);
        if (ulps < in_ulps) ulps = in_ulps;
        error = error + e * e;
        exact = exact + x * x;
      });
    }
    const auto inside = [&](const char* name, const enclosure& said, const tracked& is) {
      const bool above = said.lower == infinity || is < tracked(said.lower * (1 - 0x1p-50));
      const bool below = said.upper < infinity && tracked(said.upper * (1 + 0x1p-50)) < is;
      if (!above && !below) return;
      fail(what + ": " + name + " said to lie in [" + text(said.lower) + ", " + text(said.upper) + "] and is " +
           text(judge_detail::nearest(is)));
    };
    inside("max_abs", m.max_abs, most);
    inside("ulps", m.ulps, ulps);
    if (exact.is_zero()) return;
    const tracked count = static_cast<double>(got.size());
    inside("rel_fro", m.rel_fro, root(error / exact));
    inside("fla_ratio", m.fla_ratio, root(error / count) / (root(exact / count) + tracked(1e-8)));
  }

  void rounding(std::size_t parts) {
    question q;
    const int starts[] = {53, 53, 106, 128, 256}, ends[] = {1024, 1024, 1024, 256, 106};
    const format formats[] = {bf16, fp16, fp32, fp64};
    q.min_bits = starts[random_.below(5)];
    q.max_bits = std::max(q.min_bits, ends[random_.below(5)]);
    q.parts = parts;
    q.round_output = parts > 0 ? fp64 : formats[random_.below(4)];
    q.round_state = parts > 0 ? fp64 : formats[random_.below(4)];
    q.threads = 1;
    const std::string kind = parts > 0 ? "sum of " + std::to_string(parts) : "rounding";
    const std::string what = kind + " from " + std::to_string(q.min_bits);
    solved(what, [&] {
      static_cast<void>(solve_by_head(p_, q, [&](const solved_head& head) {
        enclosed(what + ": o", head.o, truth_.o, truth_.o.size());
        enclosed(what + ": final_state", head.final_state, truth_.state, truth_.state.size());
        if (parts == 0 && q.max_bits == 1024) {
          count_undecided(head.o, head.rounded_o, truth_.o);
          count_undecided(head.final_state, head.rounded_state, truth_.state);
        }
        rounded(what + ": o", head.rounded_o, head.rounded_o_low, head.o_left, truth_.o, *q.round_output);
        rounded(what + ": final_state", head.rounded_state, head.rounded_state_low, head.state_left, truth_.state,
                *q.round_state);
        for (const format& to : formats) {
          decided(what + ": o", head.o, truth_.o, to);
          decided(what + ": final_state", head.final_state, truth_.state, to);
        }
      }));
    });
  }

  void count_undecided(const reference_tensor& got, const std::vector<double>& rounded, const std::vector<Real>& want) {
    for (std::size_t i = 0; i < want.size(); ++i) {
      const double truth = std::fabs(judge_detail::nearest(want[i]));
      if (!(truth >= 0x1p-1000 && truth <= 0x1p1000)) continue;
      ++seen_.asked;
      if (i < rounded.size() && !std::isnan(rounded[i])) continue;
      ++seen_.undecided;
      if (i >= rounded.size() || !(got.radius[i] < truth)) ++seen_.unknown;
    }
  }

  /// The same, handed over block by block and forgotten.
  void in_blocks(std::size_t parts) {
    question q;
    q.threads = 1;
    q.parts = parts;
    q.round_output = q.round_state = parts > 0 || random_.below(2) == 0 ? fp64 : bf16;
    const std::size_t V = p_.value_dim(), all = truth_.o.size();
    const double nan = std::numeric_limits<double>::quiet_NaN();
    std::vector<double> value(all, nan);
    std::vector<std::vector<double>> low(parts > 1 ? parts - 1 : 0, value);
    double left = 0, state_left = 0;
    rounded_part state;
    stream_sinks sinks;
    sinks.chunk = [&](const decided_chunk& c) {
      for (std::size_t i = 0; i < c.count * V; ++i) {
        if (c.were_open && (c.were_open->empty() || ((*c.were_open)[i / 64] >> (i % 64) & 1) == 0)) continue;
        const auto put = [&](double& to, double x) { to = c.anew || !std::isnan(x) ? x : to; };
        put(value[c.first * V + i], c.rounded.value[c.base + i]);
        for (std::size_t l = 0; l < low.size(); ++l) put(low[l][c.first * V + i], c.rounded.low[l][c.base + i]);
      }
    };
    sinks.head = [&](const decided_head& h) {
      state = h.state;
      left = h.o_left;
      state_left = h.state_left;
    };
    if (!solved("in blocks", [&] { static_cast<void>(solve_by_block(p_, q, sinks, chunk_tokens)); })) return;
    rounded("in blocks: o", value, low, left, truth_.o, *q.round_output);
    rounded("in blocks: final_state", state.value, state.low, state_left, truth_.state, *q.round_state);
  }

  void ranged() {
    question q;
    const double limits[] = {65504, 3.4028234663852886e38, 1e300, 1};
    q.range.output = limits[random_.below(4)];
    q.range.state = limits[random_.below(4)];
    q.max_bits = random_.below(2) == 0 ? 1024 : 53;
    q.min_bits = q.max_bits == 53 || random_.below(2) == 0 ? 53 : 128;
    answered(q, "with a range");
  }

  /// Runs `f`; a problem that states no question may be refused, another may not.
  template <class F>
  bool solved(const std::string& what, const F& f) {
    try {
      f();
    } catch (const error& e) {
      ++seen_.refused;
      if (!truth_.pole && !beyond_all()) fail(what + ": refused: " + e.what());
      return false;
    }
    if (truth_.pole) fail(what + ": a rule has a pole here, and nothing was said");
    return !truth_.pole;
  }
  /// e^-x of the exact flow beyond 2^(2^30), the exponents that MPFR has.
  [[nodiscard]] bool beyond_all() const {
    if (p_.rule != rule_kind::exact) return false;
    for (std::size_t i = 0; i < p_.beta.size(); ++i) {
      double square = 0;
      for (std::size_t j = 0; j < p_.key_dim(); ++j) square += std::pow(p_.k.at(i * p_.key_dim() + j), 2);
      if (p_.qk_l2norm) square = 1;
      if (p_.beta.at(i) * square < -7e8 || std::isinf(square)) return true;
    }
    return false;
  }

  void fail(const std::string& what) {
    if (wrong_.empty()) wrong_ = what;
  }

  // ---- distance from the truth

  /// |truth - sum of the parts| <= radius.
  static bool within(const tracked& truth, const std::vector<double>& parts, double radius) {
    mpfr_t rest;
    mpfr_init2(rest, tracked::precision() + 4400);
    mpfr_set(rest, truth.get(), MPFR_RNDN);
    for (const double x : parts) mpfr_sub_d(rest, rest, x, MPFR_RNDN);
    const bool inside = mpfr_cmp_d(rest, radius) <= 0 && mpfr_cmp_d(rest, -radius) >= 0;
    mpfr_clear(rest);
    return inside;
  }
  static bool within(const fraction& truth, const std::vector<double>& parts, double radius) {
    fraction rest = truth;
    for (const double x : parts) rest -= fraction(x);
    return abs(rest) <= fraction(radius);
  }
  static bool is_exact(const tracked& x) { return x.exact; }
  static bool is_exact(const fraction&) { return true; }

  void enclosed(const std::string& what, const reference_tensor& got, const std::vector<Real>& want, std::size_t count) {
    if (got.value.empty()) return;
    std::vector<double> parts;
    for (std::size_t i = 0; i < count; ++i) {
      const double radius = got.radius[i];
      if (!(radius < infinity)) continue;
      parts.assign(1, got.value[i]);
      for (const auto& low : got.low) parts.push_back(low[i]);
      ++seen_.bounded;
      if (radius == 0) ++seen_.exact;
      const std::string which = what + " element " + std::to_string(i);
      if (!within(want[i], parts, radius)) {
        const std::string truth = text(judge_detail::nearest(want[i]));
        fail(which + ": outside its radius of " + text(radius) + ": value " + text(got.value[i]) + ", truth " + truth);
      }
      if (radius == 0 && !is_exact(want[i])) fail(which + ": a radius of 0 about what is not exact");
      if (radius < 0) fail(which + ": a negative radius");
    }
  }

  // ---- roundings

  /// To nearest even, by scaling to integers; a zero is +0.
  static double rounded_once(mpfr_srcptr x, const format& to) {
    if (mpfr_zero_p(x) != 0) return 0;
    const long quantum = std::max<long>(mpfr_get_exp(x) - to.precision, to.emin - to.precision + 1);
    mpfr_t y;
    mpfr_init2(y, std::max<mpfr_prec_t>(mpfr_get_prec(x), 64));
    mpfr_mul_2si(y, x, -quantum, MPFR_RNDN);
    mpfr_rint(y, y, MPFR_RNDN);
    mpfr_mul_2si(y, y, quantum, MPFR_RNDN);
    const double largest = std::ldexp(2 - std::ldexp(1.0, 1 - to.precision), to.emax);
    const int sign = mpfr_sgn(y);
    const double out = mpfr_cmpabs_d(y, largest) > 0 ? sign * infinity : mpfr_get_d(y, MPFR_RNDN);
    mpfr_clear(y);
    return out == 0 ? 0 : out;
  }
  static int mpfr_cmpabs_d(mpfr_srcptr x, double d) { return mpfr_sgn(x) < 0 ? -mpfr_cmp_d(x, -d) : mpfr_cmp_d(x, d); }

  /// f(number that rounds to every format as `x` does).
  template <class F>
  static void in_mpfr(const tracked& x, const F& f) {
    mpfr_t y;
    mpfr_init2(y, tracked::precision() + 4400);
    mpfr_set(y, x.get(), MPFR_RNDN);
    f(y);
    mpfr_clear(y);
  }
  template <class F>
  static void in_mpfr(const fraction& x, const F& f) {
    // Cut at more digits than any rounding looks at and a sum of doubles has; what is cut off becomes one bit more.
    mpfr_t cut, y;
    mpfr_init2(cut, 9000);
    mpfr_init2(y, 9001);
    const bool inexact = mpfr_set_q(cut, x.backend().data(), MPFR_RNDZ) != 0;
    mpfr_set(y, cut, MPFR_RNDN);
    if (inexact && mpfr_sgn(y) > 0) mpfr_nextabove(y);
    if (inexact && mpfr_sgn(y) < 0) mpfr_nextbelow(y);
    f(y);
    mpfr_clear(cut);
    mpfr_clear(y);
  }

  void rounded(const std::string& what, const std::vector<double>& got, const std::vector<std::vector<double>>& low, double left,
               const std::vector<Real>& want, const format& to) {
    for (std::size_t i = 0; i < got.size(); ++i) {
      if (std::isnan(got[i])) continue;
      const std::string which = what + " element " + std::to_string(i);
      in_mpfr(want[i], [&](mpfr_ptr x) {
        double sum_left = 0;
        for (std::size_t c = 0; c <= low.size(); ++c) {
          const double part = c == 0 ? got[i] : low[c - 1][i];
          if (std::isnan(part)) return;
          ++(c == 0 ? seen_.roundings : seen_.sums);
          const double truth = rounded_once(x, to);
          if (part != truth) {
            fail(which + " part " + std::to_string(c) + " is " + text(part) + ", the truth rounds to " + text(truth));
            return;
          }
          if (!std::isfinite(part)) return;
          mpfr_sub_d(x, x, part, MPFR_RNDN);
          sum_left = std::fabs(mpfr_get_d(x, MPFR_RNDA));
        }
        // `left` of roundings is the radius before them; of sums it bounds what they leave out.
        if (low.empty() || sum_left <= left) return;
        fail(which + ": leaves out " + text(sum_left) + ", more than the " + text(left) + " it says");
      });
    }
  }

  void decided(const std::string& what, const reference_tensor& t, const std::vector<Real>& want, const format& to) {
    for (std::size_t i = 0; i < t.value.size(); ++i) {
      const auto got = decided_rounding(t, i, to);
      if (!got) continue;
      in_mpfr(want[i], [&](mpfr_ptr x) {
        ++seen_.roundings;
        const double truth = rounded_once(x, to);
        if (*got == truth) return;
        fail(what + " element " + std::to_string(i) + " is decided as " + text(*got) + ", the truth rounds to " + text(truth));
      });
    }
  }

  // ---- ranges

  void left_range(const std::string& what, const question& q, const reference& ref) {
    std::optional<std::size_t> first;
    for (std::size_t t = 0; t < truth_.most_output.size() && !first; ++t) {
      if (truth_.most_output[t] > q.range.output || truth_.most_state[t] > q.range.state) first = t;
    }
    if (!ref.divergences.empty()) {
      ++seen_.divergences;
      const std::size_t said = ref.divergences[0].token;
      if (!first || (ref.unanswered == 0 && *first != said) || *first > said) {
        const std::string truth = first ? "at " + std::to_string(*first) : "never";
        fail(what + ": said to leave its range at token " + std::to_string(said) + ", in truth " + truth);
      }
    } else if (first && ref.unanswered == 0) {
      // A limit that is reached to the last bit of fp64 is not told apart here.
      const std::size_t t = *first;
      if (truth_.most_output[t] > q.range.output * (1 + 0x1p-50) || truth_.most_state[t] > q.range.state * (1 + 0x1p-50)) {
        fail(what + ": leaves its range at token " + std::to_string(t) + ", and nothing was said");
      }
    }
  }

  static std::string text(double x) {
    char room[40];
    std::snprintf(room, sizeof room, "%.17g", x);
    return room;
  }

  const problem& p_;
  philox random_;
  hostile_counts& seen_;
  judged<Real> truth_;
  std::string wrong_;
};

inline std::string describe(const problem& p) {
  const auto list = [](const char* name, const tensor& t) {
    std::string out = std::string("\n  ") + name + " " + t.dtype() + " =";
    for (std::size_t i = 0; i < std::min<std::size_t>(t.size(), 40); ++i) {
      char room[40];
      std::snprintf(room, sizeof room, " %.17g", t.at(i));
      out += room;
    }
    return out + (t.size() > 40 ? " ..." : "");
  };
  const auto size = [](const char* name, std::size_t n) { return std::string(", ") + name + " = " + std::to_string(n); };
  std::string out = "rule " + std::string(name_of(p.rule)) + ", " + std::string(name_of(p.beta_activation)) +
                    size("K", p.key_dim()) + size("V", p.value_dim()) + size("T", p.tokens()) + size("n", p.num_householder) +
                    (p.qk_l2norm ? ", l2norm" : "");
  char room[40];
  std::snprintf(room, sizeof room, "%.17g", p.scale);
  out += std::string(", scale ") + room + list("q", p.q) + list("k", p.k) + list("v", p.v) + list("beta", p.beta);
  if (p.g) out += list("g", *p.g);
  if (p.initial_state) out += list("initial_state", *p.initial_state);
  return out;
}

/// What is wrong with the answers about a problem of one head, on one of the machine's instruction sets; empty: nothing.
/// `seed` and `number` choose the questions.
inline std::string hostile_failure(const problem& p, std::uint64_t seed, std::uint64_t number, hostile_counts& seen) {
  std::vector<long long> targets;
  for (long long rest = tiers::available_targets(); rest != 0; rest &= rest - 1) targets.push_back(rest & -rest);
  tiers::restrict_targets(targets[number % targets.size()]);
  const auto by_mpfr = [&](mpfr_prec_t bits) {
    tracked::precision() = bits;
    return hostile_check<tracked>(p, seed, number, seen).run();
  };
  std::string wrong;
  if (is_rational(p) && p.tokens() * p.num_householder <= 8) {
    wrong = hostile_check<fraction>(p, seed, number, seen).run();
  } else {
    wrong = by_mpfr(4096);
    // The judge itself may have lost its digits: only what a far better one says too counts.
    if (!wrong.empty()) wrong = by_mpfr(60000);
  }
  tiers::restrict_targets(0);
  return wrong.empty() ? wrong : wrong + "\n" + describe(p);
}
inline std::string hostile_failure(const problem& p, std::uint64_t seed, std::uint64_t number) {
  hostile_counts seen;
  return hostile_failure(p, seed, number, seen);
}

/// Problems [first, last) of `seed`; DELTAPROOF_HOSTILE=NUMBER runs that one alone. `again`: the test that runs it then.
inline void run_hostile(std::uint64_t seed, std::uint64_t first, std::uint64_t last, const std::string& again) {
  if (const char* one = std::getenv("DELTAPROOF_HOSTILE")) {
    first = std::strtoull(one, nullptr, 10);
    last = first + 1;
  }
  constexpr std::size_t most_failures = 20;
  hostile_counts seen;
  std::size_t failures = 0;
  for (std::uint64_t number = first; number < last && failures < most_failures; ++number) {
    const problem p = hostile_problem(seed, number);
    validate(p, "hostile problem");
    const std::string wrong = hostile_failure(p, seed, number, seen);
    if (wrong.empty()) continue;
    ++failures;
    ADD_FAILURE() << "seed " << seed << ", problem " << number << ": " << wrong << "\nagain: DELTAPROOF_HOSTILE=" << number
                  << " build/release/" << again;
  }
  std::printf(
      "%zu problems: %zu radii, %zu of them 0; %zu roundings, %zu parts of sums; %zu divergences; %zu refused\n"
      "of %zu elements that are ordinary numbers %zu were not rounded, of %zu of them no digit is known\n",
      seen.problems, seen.bounded, seen.exact, seen.roundings, seen.sums, seen.divergences, seen.refused, seen.asked,
      seen.undecided, seen.unknown);
  if (last - first < 100) return;
  EXPECT_GT(seen.bounded, 20 * seen.problems);
  EXPECT_GT(seen.exact, seen.problems);
  EXPECT_GT(seen.roundings, 10 * seen.problems);
  EXPECT_GT(seen.sums, seen.problems);
  EXPECT_GT(seen.divergences, 0U);
  // Ties but for what lies below every digit, and rows that grow and shrink beyond the widest: about one in a thousand.
  EXPECT_GT(seen.asked, 5 * seen.problems);
  EXPECT_LE(seen.undecided, 2 + seen.asked / 500);
  EXPECT_LE(seen.unknown, 2 + seen.asked / 800);
}

}  // namespace deltaproof::testing
