// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// Inverts I + L for strictly lower triangular L (solve_tril, in kernels): `invert_unit_lower<A>(method, L)`, where
// `method` is one of forward, neumann, block2, block, or a mixed form such as neumann16+block, and A the arithmetic
// of every product. Shapes: L is C x C, any C; only its strict lower triangle is read. Rounds: operands to A's
// storage before each product, products and sums as A says; the result is in A's accumulator, and whoever stores it
// rounds it. An observer sees every matrix of intermediates, because bounding the result bounds none of them:
// growth.hpp asks what they may reach before anything runs.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "deltaproof/algebra/arithmetic.hpp"
#include "deltaproof/algebra/dot.hpp"
#include "deltaproof/algebra/matrix.hpp"
#include "deltaproof/number/convert.hpp"
#include "deltaproof/number/scalar.hpp"
#include "deltaproof/support/errors.hpp"

namespace deltaproof {

/// How a diagonal block is inverted: split to 1 x 1, row after row, or as a sum of powers.
enum class diagonal_kind { split, forward, neumann };
/// How diagonal blocks are joined: two halves at a time, or all blocks of a level by the general recursion.
enum class merge_kind { block2, block };

/// An algorithm for (I + L)^-1. With b = `block` (0: the whole matrix):
///   forward    X_ij = -(L_ij + sum_{j<m<i} L_im X_mj)
///   neumann    S_{j+1} = S_j + S_j G_j, G_{j+1} = G_j^2, S_0 = I, G_0 = -L, until 2^j >= b
///   block2     [A 0; L D]^-1 = [A^-1 0; -D^-1 (L A^-1), D^-1], down to blocks of b rows or 1
///   block      B_ij = -B_ii (sum_{j<=m<i} L_im B_mj) over blocks of b rows, or 4 blocks a level down to 1.
struct inverse_method {
  diagonal_kind diagonal = diagonal_kind::forward;
  std::size_t block = 0;
  merge_kind merge = merge_kind::block;

  friend constexpr bool operator==(const inverse_method&, const inverse_method&) = default;
};

/// A way to invert diagonal blocks: its word in the names of methods, and what it forms.
struct diagonal_row {
  diagonal_kind kind;
  std::string_view word;  ///< empty: no block is longer than a row
  std::string_view forms;
};
inline constexpr auto diagonal_table = std::to_array<diagonal_row>({
    {diagonal_kind::split, "", "sums of products of L with entries of the inverse itself"},
    {diagonal_kind::forward, "forward", "sums of products of L with entries of the inverse itself"},
    {diagonal_kind::neumann, "neumann",
     "powers L^p of a diagonal block of b rows, p = 1, 2, 4, ...: entries up to c^p binomial(b-2, p-1) where every |L_ij| is c"},
});
/// The row of that kind.
[[nodiscard]] constexpr const diagonal_row& row_of(diagonal_kind kind) {
  return *std::find_if(diagonal_table.begin(), diagonal_table.end(),
                       [kind](const diagonal_row& row) { return row.kind == kind; });
}

struct named_inverse {
  std::string_view name;
  inverse_method method;
  std::string_view what;
};

/// The algorithms by name; any block length may stand in the mixed ones (forward8+block2, ...).
inline constexpr auto inverse_methods = std::to_array<named_inverse>({
    {"forward", {diagonal_kind::forward, 0, merge_kind::block}, "forward substitution, row after row"},
    {"neumann",
     {diagonal_kind::neumann, 0, merge_kind::block},
     "sum of the powers of -L by repeated squaring; these powers can be as large as binomial coefficients"},
    {"block2", {diagonal_kind::split, 1, merge_kind::block2}, "2 x 2 block inversion, recursive down to single rows"},
    {"block",
     {diagonal_kind::split, 1, merge_kind::block},
     "block inversion with up to four diagonal blocks on each level, recursive down to single rows"},
    {"forward16+block",
     {diagonal_kind::forward, 16, merge_kind::block},
     "substitution on 16 x 16 diagonal blocks, then block merges (the algorithm of fla)"},
    {"forward16+block2",
     {diagonal_kind::forward, 16, merge_kind::block2},
     "substitution on 16 x 16 diagonal blocks, then block merges, two halves at a time"},
    {"neumann16+block",
     {diagonal_kind::neumann, 16, merge_kind::block},
     "sum of the powers of -L up to the 15th on 16 x 16 diagonal blocks, then block merges"},
    {"neumann8+block",
     {diagonal_kind::neumann, 8, merge_kind::block},
     "sum of the powers of -L up to the 7th on 8 x 8 diagonal blocks, then block merges"},
});

/// The method of that name: forward, neumann, block2, block, or (forward|neumann)N+(block2|block) with N >= 1.
/// Throws: format_error that lists the names.
[[nodiscard]] inline inverse_method inverse_named(std::string_view name) {
  std::string valid;
  for (const named_inverse& row : inverse_methods) {
    if (row.name == name) return row.method;
    valid += (valid.empty() ? "" : ", ") + std::string(row.name);
  }
  const std::size_t plus = name.find('+');
  std::string words;
  for (const auto& [diagonal, word, forms] : diagonal_table) {
    if (word.empty()) continue;
    words += (words.empty() ? "" : "|") + std::string(word);
    if (plus == std::string_view::npos || !name.starts_with(word)) continue;
    inverse_method method{diagonal, 0, merge_kind::block};
    const std::string_view length = name.substr(word.size(), plus - word.size());
    const auto [end, error] = std::from_chars(length.data(), length.data() + length.size(), method.block);
    const bool number = error == std::errc{} && end == length.data() + length.size() && method.block > 0;
    if (number && name.substr(plus) == "+block") return method;
    if (number && name.substr(plus) == "+block2") return {diagonal, method.block, merge_kind::block2};
  }
  throw format_error("unknown inverse '" + std::string(name) + "'; the inverses are " + valid + ", and (" + words +
                     ")N+(block|block2) for any block length N");
}

/// "forward16+block", the name that inverse_named reads; where nothing is merged, or everything, the name of that alone.
[[nodiscard]] inline std::string name_of(const inverse_method& method) {
  const std::string merge = method.merge == merge_kind::block2 ? "block2" : "block";
  if (method.diagonal == diagonal_kind::split) return merge;
  const std::string diagonal{row_of(method.diagonal).word};
  return method.block == 0 ? diagonal : diagonal + std::to_string(method.block) + "+" + merge;
}

/// Sees nothing.
struct ignore_intermediates {
  template <class S>
  void operator()(std::string_view, const matrix<S>&) const {}
};

namespace detail {

/// x as an operand of format To: itself, or rounded once.
template <class To, class From>
[[nodiscard]] To stored(const From& x) {
  if constexpr (std::is_same_v<To, From>) {
    return x;
  } else {
    return round_to<To>(x);
  }
}

/// One inversion in progress: X in the accumulator's format, and L and X as the operands of products.
template <class A, class M, class In, class Observer>
class inversion {
  using sum_type = typename M::sum_type;

 public:
  inversion(const inverse_method& method, const matrix<In>& lower, Observer& observe)
      : method_{method}, lower_{lower}, observe_{observe}, x_(lower.rows(), lower.rows(), zero<sum_type>()) {}

  matrix<sum_type> run() {
    if (lower_.rows() > 0) invert({0, lower_.rows()});
    return std::move(x_);
  }

 private:
  struct range {
    std::size_t first;
    std::size_t end;
    [[nodiscard]] std::size_t size() const { return end - first; }
  };

  void invert(range r) {
    if (r.size() <= leaf()) {
      switch (method_.diagonal) {
        case diagonal_kind::split:
          x_(r.first, r.first) = one<sum_type>();
          return;
        case diagonal_kind::forward:
          return forward(r);
        case diagonal_kind::neumann:
          return neumann(r);
      }
    }
    const std::size_t piece = piece_length(r.size());
    for (std::size_t first = r.first; first < r.end; first += piece) invert({first, std::min(first + piece, r.end)});
    for (std::size_t i = r.first + piece; i < r.end; i += piece) {
      for (std::size_t j = i; j > r.first; j -= piece) join({j - piece, j}, {i, std::min(i + piece, r.end)});
    }
  }

  [[nodiscard]] std::size_t leaf() const {
    if (method_.diagonal == diagonal_kind::split) return 1;
    return method_.block == 0 ? lower_.rows() : method_.block;
  }

  [[nodiscard]] std::size_t piece_length(std::size_t length) const {
    if (method_.merge == merge_kind::block2) return std::bit_floor(length - 1);
    if (method_.diagonal != diagonal_kind::split) return method_.block;
    std::size_t piece = 1;
    while (4 * piece < length) piece *= 4;
    return piece;
  }

  void forward(range r) {
    using storage = typename A::storage_type;
    const std::size_t n = r.size();
    matrix<storage> columns(n, n, zero<storage>());  // row j: column j of the block as operands
    std::vector<storage> row(n, zero<storage>());
    matrix<sum_type> block(n, n, zero<sum_type>());
    for (std::size_t i = 0; i < n; ++i) {
      for (std::size_t m = 0; m < i; ++m) row[m] = stored<storage>(lower_(r.first + i, r.first + m));
      for (std::size_t j = 0; j < i; ++j) {
        const auto sum = dot<A>(std::span<const storage>(row).subspan(j, i - j), columns.row(j).subspan(j, i - j));
        block(i, j) = lift<sum_type>(-sum);
        columns(j, i) = stored<storage>(block(i, j));
      }
      block(i, i) = one<sum_type>();
      columns(i, i) = one<storage>();
    }
    observe_("substitution", block);
    keep(r, block);
  }

  void neumann(range r) {
    using storage = typename A::storage_type;
    const std::size_t n = r.size();
    matrix<storage> power(n, n, zero<storage>());
    matrix<typename A::sum_type> sum(n, n, zero<typename A::sum_type>());
    for (std::size_t i = 0; i < n; ++i) {
      sum(i, i) = one<typename A::sum_type>();
      for (std::size_t j = 0; j < i; ++j) {
        power(i, j) = -stored<storage>(lower_(r.first + i, r.first + j));
        sum(i, j) = lift<typename A::sum_type>(power(i, j));
      }
    }
    observe_("power", power);
    for (std::size_t terms = 2; terms < n; terms *= 2) {
      power = as_operand<storage>(
          triangular_product<A>(power, power, matrix<typename A::sum_type>(n, n, zero<typename A::sum_type>())));
      observe_("power", power);
      sum = triangular_product<A>(as_operand<storage>(sum), power, sum);
      observe_("partial sum", sum);
    }
    keep(r, sum);
  }

  // X over rows i and columns j, from the finished blocks between them: -X_ii (sum_m L_im X_mj).
  void join(range j, range i) {
    using storage = typename M::storage_type;
    const std::size_t inner = i.first - j.first;
    matrix<storage> right(j.size(), inner, zero<storage>());  // columns of X_(j..i, j) as rows
    for (std::size_t c = 0; c < j.size(); ++c) {
      for (std::size_t m = 0; m < inner; ++m) right(c, m) = stored<storage>(x_(j.first + m, j.first + c));
    }
    std::vector<storage> row(inner, zero<storage>());
    matrix<sum_type> sum(j.size(), i.size(), zero<sum_type>());  // transposed
    for (std::size_t a = 0; a < i.size(); ++a) {
      for (std::size_t m = 0; m < inner; ++m) row[m] = stored<storage>(lower_(i.first + a, j.first + m));
      for (std::size_t c = 0; c < j.size(); ++c) sum(c, a) = dot<M>(std::span<const storage>(row), right.row(c));
    }
    observe_("off-diagonal sum", sum);
    const matrix<storage> operand = as_operand<storage>(sum);
    std::vector<storage> diagonal(i.size(), zero<storage>());
    matrix<sum_type> block(i.size(), j.size(), zero<sum_type>());
    for (std::size_t a = 0; a < i.size(); ++a) {
      for (std::size_t m = 0; m < i.size(); ++m) diagonal[m] = stored<storage>(x_(i.first + a, i.first + m));
      for (std::size_t c = 0; c < j.size(); ++c) {
        block(a, c) = -dot<M>(std::span<const storage>(diagonal), operand.row(c));
        x_(i.first + a, j.first + c) = block(a, c);
      }
    }
    observe_("off-diagonal block", block);
  }

  template <class Storage, class S>
  static matrix<Storage> as_operand(const matrix<S>& m) {
    matrix<Storage> result(m.rows(), m.cols(), zero<Storage>());
    for (std::size_t i = 0; i < m.size(); ++i) result.data()[i] = stored<Storage>(m.data()[i]);
    return result;
  }

  // start + a b for lower triangular a and b.
  template <class P>
  static matrix<typename P::sum_type> triangular_product(const matrix<typename P::storage_type>& a,
                                                         const matrix<typename P::storage_type>& b,
                                                         const matrix<typename P::sum_type>& start) {
    // Terms that are zero by structure change no bit of a sum taken in sequence; in any other order they have a place.
    constexpr bool in_sequence = std::is_same_v<typename P::order_type, sequential>;
    const auto columns = transpose(b);
    auto result = start;
    for (std::size_t i = 0; i < a.rows(); ++i) {
      for (std::size_t j = 0; j <= i; ++j) {
        const std::size_t first = in_sequence ? j : 0;
        const std::size_t count = in_sequence ? i - j + 1 : a.cols();
        result(i, j) = dot<P>(a.row(i).subspan(first, count), columns.row(j).subspan(first, count), start(i, j));
      }
    }
    return result;
  }

  template <class S>
  void keep(range r, const matrix<S>& block) {
    for (std::size_t i = 0; i < r.size(); ++i) {
      for (std::size_t j = 0; j <= i; ++j) x_(r.first + i, r.first + j) = lift<sum_type>(block(i, j));
    }
  }

  inverse_method method_;
  const matrix<In>& lower_;
  Observer& observe_;
  matrix<sum_type> x_;
};

}  // namespace detail

/// The strict lower triangle of m, if nothing else is in it. Throws: shape_error unless square; domain_error that names
/// the first entry on or above the diagonal that is not 0: for matrices whose other half ought to be empty.
template <class S>
void require_strictly_lower(const matrix<S>& m, std::string_view name) {
  if (m.rows() != m.cols()) throw shape_error(std::string(name) + " is " + shape_text(m) + "; it must be square");
  for (std::size_t i = 0; i < m.rows(); ++i) {
    for (std::size_t j = i; j < m.cols(); ++j) {
      if (!(m(i, j) == zero<S>())) {
        throw domain_error(std::string(name) + "(" + std::to_string(i) + ", " + std::to_string(j) +
                           ") is not 0; a strictly lower triangular matrix has zeros on and above its diagonal");
      }
    }
  }
}

/// (I + L)^-1 as `method` computes it, diagonal blocks in the arithmetic A, merges in M, each operand rounded to the
/// storage of its product. Shapes: C x C; the result has ones on and zeros above the diagonal. Reads: the strict lower
/// triangle of L, whatever its values: NaN and infinities go where the arithmetic takes them. `observe(stage, matrix)`
/// is called with each matrix of intermediates, where its stage is "substitution", "power", "partial sum",
/// "off-diagonal sum" or "off-diagonal block". Throws: shape_error unless L is square.
template <class A, class M = A, class In, class Observer = ignore_intermediates>
[[nodiscard]] matrix<typename M::sum_type> run_inverse(const inverse_method& method, const matrix<In>& lower,
                                                       Observer&& observe = {}) {
  if (lower.rows() != lower.cols()) {
    throw shape_error("inverse " + name_of(method) + ": L is " + shape_text(lower) + "; it must be square");
  }
  return detail::inversion<A, M, In, std::remove_reference_t<Observer>>(method, lower, observe).run();
}

/// The same for an L that must be finite. Throws: shape_error unless L is square; domain_error that names the first
/// entry of its strict lower triangle that is NaN or infinite.
template <class A, class M = A, class In, class Observer = ignore_intermediates>
[[nodiscard]] matrix<typename M::sum_type> invert_unit_lower(const inverse_method& method, const matrix<In>& lower,
                                                             Observer&& observe = {}) {
  if constexpr (FormatScalar<In>) {
    for (std::size_t i = 0; i < std::min(lower.rows(), lower.cols()); ++i) {
      for (std::size_t j = 0; j < i; ++j) {
        const auto value = static_cast<double>(lower(i, j));
        if (!std::isfinite(value)) {
          throw domain_error("inverse " + name_of(method) + ": L(" + std::to_string(i) + ", " + std::to_string(j) + ") is " +
                             std::to_string(value) + "; the entries below the diagonal must be finite");
        }
      }
    }
  }
  return run_inverse<A, M>(method, lower, observe);
}

}  // namespace deltaproof

// Theorems behind this file, by their names in proofs/README.md.
// proved: algebra.unit_lower.unit_lower_invertible, algebra.unit_lower.forward_substitution,
// proved: algebra.unit_lower.strictly_lower_nilpotent, algebra.unit_lower.nilpotency_is_sharp,
// proved: algebra.unit_lower.doubling_sums_powers, algebra.unit_lower.neumann_series, algebra.unit_lower.doubling_inverts,
// proved: algebra.unit_lower.two_by_two_blocks, algebra.unit_lower.block_inverse_lower,
// proved: algebra.unit_lower.block_inverse_diagonal, algebra.unit_lower.block_recursion, algebra.ut.chunk_Ai_unique,
// proved: algebra.ut_bounds.forward_error, algebra.ut_bounds.substitution_forward_error,
// proved: algebra.ut_bounds.forward_error_nearly_unit_keys, algebra.ut_bounds.forward_error_unit_keys,
// proved: float.substitution.inverse_residual
