// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// The bound on a computed inverse Y of I + L, X the exact one: if (I + L) Y = I + R, then Y - X = X R, so |Y - X| <= |X| |R|.
// R is bounded from the algorithm, row by row; |Y| <= |X| + |Y - X| is known for the rows above when a row needs it.
//  * Substitution inside a block, y_ic = -(L_ic + sum_{c<j<i} L_ij y_jc), is a sum of at most i - c terms of one product:
//    |R_ic| <= gamma(block) sum_{c<=j<i} |L_ij| |y_jc|. Source: Higham, Lemma 8.2 and section 14.2 (method 1).
//  * A merge, Y_ij = -Y_ii (sum_{j<=m<i} L_im Y_mj) in either association, with M = sum |L_im| |Y_mj| over n columns,
//    a = (1 + d)^2 (1 + gamma(n)) - 1 and b = (1 + d)^2 (1 + gamma(block)) - 1, d the error of narrowing an operand:
//    with F the residual of the diagonal block, -R = F M' + (I + L_ii) E_2 + E_1, |E_1| <= a M <= a |I + L_ii| |Y_ii| M,
//    |E_2| <= b (1 + a) |Y_ii| M, M' <= (1 + a) M; hence |R| <= (1 + a) F M + (a + b + a b) |I + L_ii| |Y_ii| M.
//  * Narrowed operands of a substitution (d) and a result rounded before it is used on (e) are factors of its terms: gamma
//    becomes (1 + d)^2 (1 + gamma) (1 + e) - 1, and a and b likewise take the factor 1 + e.
//  * L known within r adds r |Y| to R. The fp64 inverse X itself is a substitution: gamma with u = 2^-53 is added.
// Not derived: merges from the right in fp32, Y_ij = -(sum_{j<m<=i} Y_im L_mj) Y_jj, whose residual is that of Y (I + L). They
// are held against this bound all the same, and a test prints how far below it they stay.
// Where operands of the merges are narrowed and their association is declared, the merges are carried out here as declared
// instead, with radii: only what accumulation and the diagonal blocks leave open is then left to the bound.
#include <algorithm>
#include <limits>
#include <utility>

#include "stages/parts.hpp"

namespace deltaproof::stages_detail {

namespace {

using matrix = std::vector<double>;

/// X, by substitution over whole rows.
matrix substitute(const balls& l) {
  const std::size_t n = l.rows;
  matrix x(n * n, 0);
  for (std::size_t i = 0; i < n; ++i) {
    double* const row = &x[i * n];
    for (std::size_t j = 0; j < i; ++j) {
      const double factor = l.value[i * l.cols + j];
      for (std::size_t c = 0; c <= j; ++c) row[c] -= factor * x[j * n + c];
    }
    row[i] = 1;
  }
  return x;
}

class inverse_bound {
 public:
  inverse_bound(const balls& l, const matrix& x, const inverse_rounding& how, const arithmetic_errors& errors)
      : n_(l.rows), l_(l), x_(x), how_(how), errors_(errors), residual_(n_ * n_, 0), upper_(n_ * n_, 0), error_(n_ * n_, 0) {
    for (std::size_t begin = 0; begin < n_; begin += how.block) {
      const std::size_t end = std::min(begin + how.block, n_);
      for (std::size_t i = begin; i < end; ++i) diagonal_row(begin, i);
      if (begin > 0) merge_rows(begin, end);
    }
  }

  matrix take() && { return std::move(error_); }

 private:
  [[nodiscard]] std::size_t at(std::size_t i, std::size_t j) const { return i * n_ + j; }
  [[nodiscard]] double l_upper(std::size_t i, std::size_t j) const { return l_.at(i, j).upper(); }
  [[nodiscard]] double l_radius(std::size_t i, std::size_t j) const { return l_.at(i, j).radius; }

  void diagonal_row(std::size_t begin, std::size_t i) {
    const double operands = (1 + how_.substitute_operand) * (1 + how_.substitute_operand);
    const double rounding =
        operands * (1 + gamma(how_.block, how_.substitute)) * (1 + how_.between) - 1 + gamma(n_ + 2, own_roundoff);
    for (std::size_t j = begin; j < i; ++j) {
      const double weight = rounding * l_upper(i, j) + l_radius(i, j);
      for (std::size_t c = begin; c <= j; ++c) residual_[at(i, c)] += weight * upper_[at(j, c)];
    }
    for (std::size_t c = begin; c < i; ++c) residual_[at(i, c)] += static_cast<double>(how_.block) * errors_.underflow;
    finish_row(i, begin, i);
    upper_[at(i, i)] = 1;
  }

  /// error = |X| |R| and upper = |X| + error for the columns [first, last) of row i.
  void finish_row(std::size_t i, std::size_t first, std::size_t last) {
    for (std::size_t t = first + 1; t <= i; ++t) {
      const double weight = std::fabs(x_[at(i, t)]);
      for (std::size_t c = first; c < std::min(t, last); ++c) error_[at(i, c)] += weight * residual_[at(t, c)];
    }
    for (std::size_t c = first; c < last; ++c) {
      error_[at(i, c)] *= 1 + gamma(n_ + 4, own_roundoff);
      upper_[at(i, c)] = std::fabs(x_[at(i, c)]) + error_[at(i, c)];
    }
  }

  void merge_rows(std::size_t begin, std::size_t end) {
    const double u = how_.merge_operand.to.precision >= fp32.precision
                         ? 0
                         : unit_roundoff(how_.merge_operand.to) * (how_.merge_operand.toward_zero ? 2 : 1);
    const double operands = (1 + u) * (1 + u);
    const double a = operands * (1 + gamma(begin, how_.merge_accumulate)) * (1 + how_.between) - 1 + gamma(n_ + 2, own_roundoff);
    const double b =
        operands * (1 + gamma(how_.block, how_.merge_accumulate)) * (1 + how_.between) - 1 + gamma(n_ + 2, own_roundoff);
    const double both = a + b + a * b;
    matrix sums((end - begin) * begin, 0);      // M
    matrix products((end - begin) * begin, 0);  // |Y_ii| M
    const auto in = [&](std::size_t i, std::size_t c) { return (i - begin) * begin + c; };
    for (std::size_t i = begin; i < end; ++i) {
      for (std::size_t j = 0; j < begin; ++j) {
        const double size = l_upper(i, j);
        const double radius = l_radius(i, j);
        for (std::size_t c = 0; c <= j; ++c) {
          sums[in(i, c)] += size * upper_[at(j, c)];
          residual_[at(i, c)] += radius * upper_[at(j, c)];
        }
      }
    }
    for (std::size_t i = begin; i < end; ++i) {
      for (std::size_t t = begin; t <= i; ++t) {
        for (std::size_t c = 0; c < begin; ++c) products[in(i, c)] += upper_[at(i, t)] * sums[in(t, c)];
      }
    }
    for (std::size_t i = begin; i < end; ++i) {
      for (std::size_t c = 0; c < begin; ++c) {
        double r = both * products[in(i, c)] + static_cast<double>(n_) * errors_.underflow;
        for (std::size_t t = begin; t < i; ++t) {
          r += (1 + a) * residual_[at(i, t)] * sums[in(t, c)];
          r += (both * l_upper(i, t) + l_radius(i, t) * (1 + a) * (1 + b)) * products[in(t, c)];
        }
        residual_[at(i, c)] += r;
      }
      finish_row(i, 0, begin);
    }
  }

  std::size_t n_;
  const balls& l_;
  const matrix& x_;
  const inverse_rounding& how_;
  const arithmetic_errors& errors_;
  matrix residual_, upper_, error_;
};

balls block_of(const balls& x, std::size_t row, std::size_t rows, std::size_t col, std::size_t cols) {
  const auto cut = [&](const std::vector<double>& from) {
    std::vector<double> to;
    to.reserve(rows * cols);
    for (std::size_t i = 0; i < rows; ++i) {
      const double* const first = from.data() + (row + i) * x.cols + col;
      to.insert(to.end(), first, first + cols);
    }
    return to;
  };
  return {rows, cols, cut(x.value), x.exact() ? std::vector<double>() : cut(x.radius)};
}

balls bounded_inverse(const balls& l, const inverse_rounding& how, const arithmetic_errors& errors) {
  balls out(l.rows, l.rows);
  out.value = substitute(l);
  out.radius = inverse_bound(l, out.value, how, errors).take();
  return out;
}

/// Merges with narrowed operands, carried out block by block.
class merged_inverse {
 public:
  merged_inverse(const balls& l, const inverse_rounding& how, const arithmetic_errors& errors)
      : l_(l), how_(how), errors_(errors), out_(l.rows, l.rows) {
    out_.radius.assign(out_.value.size(), 0);
    for (std::size_t i = 0; i * how.block < l.rows; ++i) {
      put(i, i, bounded_inverse(of(l_, i, i), how, errors), 1);
      for (std::size_t j = i; j-- > 0;) {
        const bool by_right =
            how.order == merge_order::sum_then_right || (how.order == merge_order::neighbours_left && j + 1 == i);
        factors pairs;
        for (std::size_t m = j; m < i; ++m) {
          if (by_right)
            pairs.emplace_back(of(out_, i, m + 1), of(l_, m + 1, j));
          else
            pairs.emplace_back(of(l_, i, m), of(out_, m, j));
        }
        put(i, j, by_right ? sum({{sum(pairs), of(out_, j, j)}}) : sum({{of(out_, i, i), sum(pairs)}}), -1);
      }
    }
  }

  balls take() && { return std::move(out_); }

 private:
  using factors = std::vector<std::pair<balls, balls>>;

  [[nodiscard]] std::size_t size(std::size_t i) const { return std::min(how_.block, l_.rows - i * how_.block); }
  [[nodiscard]] balls of(const balls& x, std::size_t i, std::size_t j) const {
    return block_of(x, i * how_.block, size(i), j * how_.block, size(j));
  }

  /// Each term meets the roundings of its product and one for each product it is added to.
  [[nodiscard]] balls sum(const factors& pairs) const {
    balls out(pairs.front().first.rows, pairs.front().second.cols);
    product total{out.cols, out.value, out.value, out.value};
    for (const auto& [a, b] : pairs) {
      const product one = multiply(narrow(a, how_.merge_operand), narrow(b, how_.merge_operand));
      for (std::size_t k = 0; k < one.value.size(); ++k) {
        total.value[k] += one.value[k];
        total.terms[k] += one.terms[k];
        total.upper[k] += one.upper[k];
      }
    }
    out.value = total.value;
    const double u = std::max(how_.merge_accumulate, errors_.elementwise);
    out.radius = sum_bound(errors_, how_.block + pairs.size(), u, how_.block * pairs.size()).of_all(total);
    return out;
  }

  void put(std::size_t i, std::size_t j, const balls& x, double sign) {
    for (std::size_t r = 0; r < x.rows; ++r) {
      const std::size_t to = (i * how_.block + r) * out_.cols + j * how_.block;
      for (std::size_t c = 0; c < x.cols; ++c) out_.value[to + c] = sign * x.value[r * x.cols + c];
      if (!x.exact()) std::copy_n(x.radius.begin() + static_cast<std::ptrdiff_t>(r * x.cols), x.cols, out_.radius.data() + to);
    }
  }

  const balls& l_;
  const inverse_rounding& how_;
  const arithmetic_errors& errors_;
  balls out_;
};

}  // namespace

balls inverse_of(const balls& l, const inverse_rounding& how, const arithmetic_errors& errors) {
  const bool narrowed = how.merge_operand.to.precision < fp32.precision;
  if (!(how.substitute < std::numeric_limits<double>::infinity())) {
    balls unknown(l.rows, l.rows);
    unknown.value.assign(unknown.value.size(), std::numeric_limits<double>::quiet_NaN());
    return unknown;
  }
  if (narrowed && how.order != merge_order::any && how.between == 0) return merged_inverse(l, how, errors).take();
  return bounded_inverse(l, how, errors);
}

}  // namespace deltaproof::stages_detail

// Theorems behind this file, by their names in proofs/README.md.
// proved: float.substitution.inverse_residual
