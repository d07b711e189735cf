// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// The identities of (I + L)^-1: against the true inverse by dense products, between the methods, and of every matrix of
// intermediates that a method says it forms. L comes from keys or from small integers; what lies on and above its
// diagonal is filled with other integers, which nothing may read.
#pragma once

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "support/identities/dense.hpp"
#include "support/identities/identity.hpp"
#include "support/identities/wy.hpp"

namespace deltaproof::testing {

/// An L of at most C rows: b_r <k_r, D k_j> of a recipe's keys, or integers none of which is 0.
template <class S>
[[nodiscard]] matrix<S> any_lower(const sequence_recipe& r) {
  recipe_stream stream = choices(r, 4);
  if (stream.next() % 2 == 0) {
    const auto s = make_sequence<S>(r);
    return dense_overlaps(s, any_run(s, r));
  }
  auto lower = dense::zeros<S>(r.chunk, r.chunk);
  for (std::size_t i = 0; i < r.chunk; ++i) {
    for (std::size_t j = 0; j < i; ++j)
      lower(i, j) = from_int<S>(stream.next() % 2 == 0 ? stream.between(1, 3) : stream.between(-3, -1));
  }
  return lower;
}

/// The same below the diagonal, integers on and above it.
template <class S>
[[nodiscard]] matrix<S> with_unread_entries(matrix<S> lower, const sequence_recipe& r) {
  recipe_stream stream = choices(r, 5);
  for (std::size_t i = 0; i < lower.rows(); ++i) {
    for (std::size_t j = i; j < lower.cols(); ++j) lower(i, j) = from_int<S>(stream.between(5, 99));
  }
  return lower;
}

template <class S>
[[nodiscard]] matrix<S> plus_identity(const matrix<S>& lower) {
  return dense::sum(dense::unit<S>(lower.rows()), lower);
}

template <class I>
bool inverse_from_the_right(const I& impl, const sequence_recipe& r) {
  using S = typename I::scalar;
  recipe_stream stream = choices(r, 6);
  const auto lower = any_lower<S>(r);
  const auto x = impl.inverse(any_method(stream), with_unread_entries(lower, r));
  return dense::times(plus_identity(lower), x) == dense::unit<S>(lower.rows());
}

template <class I>
bool inverse_from_the_left(const I& impl, const sequence_recipe& r) {
  using S = typename I::scalar;
  recipe_stream stream = choices(r, 7);
  const auto lower = any_lower<S>(r);
  const auto x = impl.inverse(any_method(stream), with_unread_entries(lower, r));
  return dense::times(x, plus_identity(lower)) == dense::unit<S>(lower.rows());
}

template <class I>
bool inverses_are_equal(const I& impl, const sequence_recipe& r) {
  using S = typename I::scalar;
  recipe_stream stream = choices(r, 8);
  const auto lower = with_unread_entries(any_lower<S>(r), r);
  const auto first = impl.inverse(inverse_methods[0].method, lower);
  for (const named_inverse& row : inverse_methods) {
    if (!(impl.inverse(row.method, lower) == first)) return false;
  }
  return impl.inverse(any_method(stream), lower) == first && impl.inverse(any_method(stream), lower) == first;
}

/// One matrix that a method showed.
template <class S>
struct shown {
  std::string_view stage;
  matrix<S> entries;
  friend bool operator==(const shown& a, const shown& b) { return a.stage == b.stage && a.entries == b.entries; }
};

template <class I, class S>
[[nodiscard]] std::vector<shown<S>> shown_by(const I& impl, const inverse_method& method, const matrix<S>& lower) {
  std::vector<shown<S>> result;
  (void)impl.inverse(method, lower, [&result](std::string_view stage, const matrix<S>& m) { result.push_back({stage, m}); });
  return result;
}

/// sum_{n < terms} (-L)^n by Horner's rule.
template <class S>
[[nodiscard]] matrix<S> neumann_sum(const matrix<S>& lower, std::size_t terms) {
  auto result = dense::zeros<S>(lower.rows(), lower.rows());
  for (std::size_t n = 0; n < terms; ++n) result = dense::difference(dense::unit<S>(lower.rows()), dense::times(lower, result));
  return result;
}

/// (-L)^n factor by factor.
template <class S>
[[nodiscard]] matrix<S> negative_power(const matrix<S>& lower, std::size_t n) {
  auto result = dense::unit<S>(lower.rows());
  for (std::size_t i = 0; i < n; ++i) result = dense::scaled(from_int<S>(-1), dense::times(result, lower));
  return result;
}

template <class I>
bool lower_is_nilpotent(const I& impl, const sequence_recipe& r) {
  using S = typename I::scalar;
  const auto s = with_generic_values(make_sequence<S>(r), r);
  const std::size_t rows = std::min(r.chunk, dense::rows(s));
  if (rows == 0) return true;
  const auto lower = dense::block(impl.chunkwise(s, r.chunk, inverse_methods[0].method).A, 0, rows, 0, rows);
  const auto last = negative_power(lower, rows - 1);
  return dense::times(last, lower) == dense::zeros<S>(rows, rows) && !(last == dense::zeros<S>(rows, rows));
}

template <class I>
bool neumann_is_finite(const I& impl, const sequence_recipe& r) {
  using S = typename I::scalar;
  const auto lower = any_lower<S>(r);
  return impl.inverse({diagonal_kind::neumann, 0, merge_kind::block}, with_unread_entries(lower, r)) ==
         neumann_sum(lower, lower.rows());
}

/// The powers and sums that doubling shows: (-L)^(2^j) and sum_{n < 2^j} (-L)^n, until 2^j >= C.
template <class I>
bool doubling_steps(const I& impl, const sequence_recipe& r) {
  using S = typename I::scalar;
  const auto lower = any_lower<S>(r);
  const auto seen = shown_by(impl, {diagonal_kind::neumann, 0, merge_kind::block}, with_unread_entries(lower, r));
  if (lower.rows() == 0) return seen.empty();
  std::vector<shown<S>> want{{"power", negative_power(lower, 1)}};
  for (std::size_t terms = 2; terms < lower.rows(); terms *= 2) {
    want.push_back({"power", negative_power(lower, terms)});
    want.push_back({"partial sum", neumann_sum(lower, 2 * terms)});
  }
  return seen == want;
}

/// What a method of that description forms over rows first .. first + size - 1, made from L and the true inverse X.
template <class S>
void expected_stages(const inverse_method& method, const matrix<S>& lower, const matrix<S>& x, std::size_t first,
                     std::size_t size, std::vector<shown<S>>& out) {
  const std::size_t leaf = method.diagonal == diagonal_kind::split ? 1 : method.block == 0 ? lower.rows() : method.block;
  if (size <= leaf) {
    if (method.diagonal == diagonal_kind::forward) out.push_back({"substitution", dense::block(x, first, size, first, size)});
    if (method.diagonal == diagonal_kind::neumann) {
      const auto part = dense::block(lower, first, size, first, size);
      out.push_back({"power", negative_power(part, 1)});
      for (std::size_t terms = 2; terms < size; terms *= 2) {
        out.push_back({"power", negative_power(part, terms)});
        out.push_back({"partial sum", neumann_sum(part, 2 * terms)});
      }
    }
    return;
  }
  std::size_t piece = method.block;  // mixed forms: blocks of b rows, joined by the general recursion
  if (method.diagonal == diagonal_kind::split && method.merge == merge_kind::block) {
    for (piece = 1; 4 * piece < size;) piece *= 4;
  }
  if (method.merge == merge_kind::block2) {
    for (piece = 1; 2 * piece < size;) piece *= 2;
  }
  for (std::size_t at = 0; at < size; at += piece) expected_stages(method, lower, x, first + at, std::min(piece, size - at), out);
  for (std::size_t i = piece; i < size; i += piece) {
    const std::size_t height = std::min(piece, size - i);
    for (std::size_t j = 0; j < i; j += piece) {
      const auto sum = dense::times(dense::block(lower, first + i, height, first + j, i - j),
                                    dense::block(x, first + j, i - j, first + j, piece));
      out.push_back({"off-diagonal sum", dense::turned(sum)});
      out.push_back({"off-diagonal block", dense::block(x, first + i, height, first + j, piece)});
    }
  }
}

/// Every matrix a method shows is the one its description names; the order in which blocks are made is its own.
template <class I>
bool inverse_intermediates(const I& impl, const sequence_recipe& r) {
  using S = typename I::scalar;
  recipe_stream stream = choices(r, 9);
  const auto method = any_method(stream);
  const auto lower = any_lower<S>(r);
  auto seen = shown_by(impl, method, with_unread_entries(lower, r));
  std::vector<shown<S>> want;
  if (lower.rows() > 0)
    expected_stages(method, lower, dense::inverse_and_determinant(plus_identity(lower)).first, 0, lower.rows(), want);
  if (seen.size() != want.size()) return false;
  for (const auto& stage : want) {
    const auto found = std::find(seen.begin(), seen.end(), stage);
    if (found == seen.end()) return false;
    seen.erase(found);
  }
  return true;
}

/// [A 0; L D]^-1 = [A^-1 0; -D^-1 L A^-1, D^-1] at any row, both sides from inverses of the implementation.
template <class I>
bool two_by_two_blocks(const I& impl, const sequence_recipe& r) {
  using S = typename I::scalar;
  recipe_stream stream = choices(r, 10);
  const auto lower = any_lower<S>(r);
  const std::size_t n = lower.rows();
  const std::size_t cut = below(stream, n + 1);
  const auto method = any_method(stream);
  const auto whole = impl.inverse(method, lower);
  const auto above = impl.inverse(method, dense::block(lower, 0, cut, 0, cut));
  const auto beneath = impl.inverse(method, dense::block(lower, cut, n - cut, cut, n - cut));
  const auto corner = dense::times(beneath, dense::times(dense::block(lower, cut, n - cut, 0, cut), above));
  return dense::block(whole, 0, cut, 0, cut) == above && dense::block(whole, cut, n - cut, cut, n - cut) == beneath &&
         dense::block(whole, cut, n - cut, 0, cut) == dense::scaled(from_int<S>(-1), corner) &&
         dense::block(whole, 0, cut, cut, n - cut) == dense::zeros<S>(cut, n - cut);
}

/// B_ij = -A_ii^-1 sum_{j <= m < i} A_im B_mj for any partition into blocks.
template <class I>
bool general_blocks(const I& impl, const sequence_recipe& r) {
  using S = typename I::scalar;
  recipe_stream stream = choices(r, 11);
  const auto lower = any_lower<S>(r);
  const auto whole = impl.inverse(any_method(stream), lower);
  std::vector<std::size_t> cuts{0};
  while (cuts.back() < lower.rows()) cuts.push_back(std::min(lower.rows(), cuts.back() + 1 + below(stream, 7)));
  const auto part = [&cuts](const matrix<S>& m, std::size_t i, std::size_t j) {
    return dense::block(m, cuts[i], cuts[i + 1] - cuts[i], cuts[j], cuts[j + 1] - cuts[j]);
  };
  for (std::size_t i = 0; i + 1 < cuts.size(); ++i) {
    const auto diagonal = impl.inverse(inverse_methods[0].method, part(lower, i, i));
    for (std::size_t j = 0; j < i; ++j) {
      auto sum = dense::zeros<S>(cuts[i + 1] - cuts[i], cuts[j + 1] - cuts[j]);
      for (std::size_t m = j; m < i; ++m) sum = dense::sum(sum, dense::times(part(lower, i, m), part(whole, m, j)));
      if (!(part(whole, i, j) == dense::scaled(from_int<S>(-1), dense::times(diagonal, sum)))) return false;
    }
  }
  return true;
}

inline constexpr recipe_limits lower_sizes{.tokens = 40, .steps_per_token = 2, .key_dim = 5, .value_dim = 1, .chunk = 64};
inline constexpr recipe_limits small_sizes{.tokens = 20, .steps_per_token = 2, .key_dim = 5, .value_dim = 1, .chunk = 20};

template <class I>
inline constexpr identity<I> inverse_identities[] = {
    {"inverse_right", "(I + L) X = I", lower_sizes, &inverse_from_the_right<I>},
    {"inverse_left", "X (I + L) = I", lower_sizes, &inverse_from_the_left<I>},
    {"inverses_equal", "forward = neumann = block2 = block = the mixed forms", small_sizes, &inverses_are_equal<I>},
    {"nilpotent", "L^C = 0, L^(C-1) != 0 for full L", small_sizes, &lower_is_nilpotent<I>},
    {"neumann_finite", "(I + L)^-1 = sum_{n<C} (-L)^n", small_sizes, &neumann_is_finite<I>},
    {"doubling", "S_j = sum_{n<2^j} (-L)^n, S_{j+1} = S_j (I + G_j), G_j = (-L)^(2^j)", small_sizes, &doubling_steps<I>},
    {"inverse_intermediates", "every matrix a method shows is the one it names", small_sizes, &inverse_intermediates<I>},
    {"two_by_two_blocks", "[A 0; L D]^-1 = [A^-1 0; -D^-1 L A^-1, D^-1]", small_sizes, &two_by_two_blocks<I>},
    {"general_blocks", "B_ij = -A_ii^-1 sum_{j<=m<i} A_im B_mj", small_sizes, &general_blocks<I>},
};

}  // namespace deltaproof::testing
