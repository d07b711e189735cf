// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// Counts operations exactly: run any template of the library over `counting<S>` inside `count_operations([&] {...})` and read
// how many + - * / and fma it made. Values, comparisons and roundings are those of S. A change of sign is not counted, nor
// is a copy, a comparison or the making of a constant. The tally belongs to the thread; one count inside another adds to both.
// It exists so that the cost of a form is a number that a test holds against a polynomial, not a timing.
#pragma once

#include <cmath>
#include <compare>
#include <concepts>
#include <cstdint>
#include <string>
#include <utility>

#include "deltaproof/number/scalar.hpp"

namespace deltaproof {

struct operation_counts {
  std::uint64_t additions = 0;
  std::uint64_t subtractions = 0;
  std::uint64_t multiplications = 0;
  std::uint64_t divisions = 0;
  std::uint64_t fused = 0;  ///< fma(x, y, z), one for each

  friend constexpr bool operator==(const operation_counts&, const operation_counts&) = default;
  friend constexpr operation_counts operator+(const operation_counts& a, const operation_counts& b) {
    return {a.additions + b.additions, a.subtractions + b.subtractions, a.multiplications + b.multiplications,
            a.divisions + b.divisions, a.fused + b.fused};
  }
  friend constexpr operation_counts operator*(std::uint64_t n, const operation_counts& a) {
    return {n * a.additions, n * a.subtractions, n * a.multiplications, n * a.divisions, n * a.fused};
  }
  /// An fma is two.
  [[nodiscard]] constexpr std::uint64_t total() const {
    return additions + subtractions + multiplications + divisions + 2 * fused;
  }
};

namespace detail {
inline thread_local operation_counts tally;
}  // namespace detail

/// What f() did with numbers of any `counting<S>` on this thread. An exception passes through; what was counted until then
/// stays with the count outside.
template <std::invocable F>
operation_counts count_operations(F&& f) {
  struct scope {
    operation_counts outer = std::exchange(detail::tally, {});
    ~scope() { detail::tally = outer + detail::tally; }
  } const count;
  std::forward<F>(f)();
  return detail::tally;
}

template <Scalar S>
class counting {
 public:
  constexpr counting() = default;
  explicit constexpr counting(const S& value) : value_(value) {}

  [[nodiscard]] constexpr const S& value() const { return value_; }

  constexpr counting operator-() const { return counting(-value_); }
  friend counting operator+(const counting& a, const counting& b) {
    return counted(detail::tally.additions, a.value_ + b.value_);
  }
  friend counting operator-(const counting& a, const counting& b) {
    return counted(detail::tally.subtractions, a.value_ - b.value_);
  }
  friend counting operator*(const counting& a, const counting& b) {
    return counted(detail::tally.multiplications, a.value_ * b.value_);
  }
  friend counting operator/(const counting& a, const counting& b) {
    return counted(detail::tally.divisions, a.value_ / b.value_);
  }
  friend counting fma(const counting& a, const counting& b, const counting& c) {
    using std::fma;
    return counted(detail::tally.fused, fma(a.value_, b.value_, c.value_));
  }
  friend constexpr bool operator==(const counting& a, const counting& b) { return a.value_ == b.value_; }
  friend constexpr auto operator<=>(const counting& a, const counting& b)
    requires std::three_way_comparable<S>
  {
    return a.value_ <=> b.value_;
  }

 private:
  static counting counted(std::uint64_t& which, const S& value) {
    ++which;
    return counting(value);
  }

  S value_{};
};

template <Scalar S>
struct scalar_traits<counting<S>> {
  static constexpr bool is_exact = scalar_traits<S>::is_exact;
  static std::string name() { return "counting<" + scalar_traits<S>::name() + ">"; }
  static constexpr counting<S> from_int(int n) { return counting<S>(scalar_traits<S>::from_int(n)); }
};

}  // namespace deltaproof
