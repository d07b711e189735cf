// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// Faults inside a chunk: A, its inverse, and what the inverse transforms.
#include "emulate/faults.hpp"

namespace deltaproof::emulation_detail {
namespace {

/// The first `rows` columns of A without what stands on and above the diagonal.
template <class Real>
matrix<Real> lower_of(const chunk_state<Real>& c) {
  matrix<Real> L(c.rows, c.rows, Real(0));
  for (std::size_t r = 0; r < c.rows; ++r) std::copy_n(c.A.row(r).begin(), r, L.row(r).begin());
  return L;
}

template <class Real>
void keep_inverse(site<Real>& s, matrix<Real> X) {
  narrow_all(X, {s.plan.inverse.store, false});
  for (std::size_t r = 0; r < X.rows(); ++r) std::copy(X.row(r).begin(), X.row(r).end(), s.now.Ai.row(r).begin());
}

/// What a mistake changes in the inverse: nothing where a wrong and a right one, made alike, have the same bits.
template <class Real>
void change_inverse(site<Real>& s, const matrix<Real>& wrong, const matrix<Real>& right) {
  for (std::size_t i = 0; i < wrong.rows(); ++i) {
    for (std::size_t j = 0; j < wrong.cols(); ++j) {
      if (wrong(i, j) == right(i, j)) continue;
      Real& x = s.now.Ai(i, j);
      x = std::isfinite(right(i, j)) ? x + (wrong(i, j) - right(i, j)) : wrong(i, j);
    }
  }
  narrow_all(s.now.Ai, {s.plan.inverse.store, false});
}

/// The inverse as a sum of so many powers of -L, and what the other powers would have added is missing.
template <class Real>
void stop_after(site<Real>& s, std::size_t terms) {
  const matrix<Real> L = lower_of(s.now);
  const std::size_t n = L.rows();
  matrix<Real> X(n, n, Real(0)), stopped;
  for (std::size_t i = 0; i < n; ++i) X(i, i) = 1;
  for (std::size_t term = 1; term < n; ++term) {
    if (term == terms) stopped = X;
    // From the last row up, as the rows above are those of the terms before; the first rows have all of theirs.
    for (std::size_t i = n; i-- > term;) {
      const auto row = X.row(i);
      std::fill_n(row.begin(), i, Real(0));
      for (std::size_t m = 0; m < i; ++m) {
        for (std::size_t j = 0; j <= m; ++j) row[j] -= L(i, m) * X(m, j);
      }
    }
  }
  if (!stopped.empty()) change_inverse(s, stopped, X);
}

/// One block off the diagonal, with its own decay and steps.
template <class Real>
void take_wrong_keys(site<Real>& s) {
  auto& c = s.now;
  const std::size_t block = c.full_rows / 4, first = 2 * block;
  const bool gated = c.G.cols() > 0 && s.plan.v_new.form == change_form::transforms;
  for (std::size_t i = first; i < std::min(c.rows, first + block); ++i) {
    for (std::size_t j = 0; j < block; ++j) {
      Real sum = 0;
      for (std::size_t ch = 0; ch < c.k.cols(); ++ch) {
        const std::size_t gate = c.G.cols() > 1 ? ch : 0;
        sum += c.k(i, ch) * c.k(block + j, ch) * (gated ? std::exp2(c.G(i, gate) - c.G(j, gate)) : Real(1));
      }
      c.A(i, j) = c.step[i] * sum;
    }
  }
  narrow_all(c.A, {s.plan.A.store, false});
}

enum class merge_mistake { sign, one_term, no_merges, none };

/// The inverse by diagonal blocks and merges -X_ii (sum_m L_im X_mj), with one mistake in the merges.
template <class Real>
matrix<Real> merged(const matrix<Real>& L, std::size_t block, merge_mistake mistake) {
  const std::size_t n = L.rows();
  matrix<Real> X(n, n, Real(0));
  const auto end_of = [&](std::size_t i) { return std::min(n, i / block * block + block); };
  for (std::size_t i = 0; i < n; ++i) {
    X(i, i) = 1;
    for (std::size_t j = i / block * block; j < i; ++j) {
      Real sum = 0;
      for (std::size_t m = j; m < i; ++m) sum += L(i, m) * X(m, j);
      X(i, j) = -sum;
    }
  }
  for (std::size_t row = block; row < n && mistake != merge_mistake::no_merges; row += block) {
    for (std::size_t j = 0; j < row; ++j) {
      const std::size_t last = mistake == merge_mistake::one_term ? end_of(j) : row;
      std::vector<Real> sum(end_of(row) - row, Real(0));
      for (std::size_t i = 0; i < sum.size(); ++i) {
        for (std::size_t m = j; m < last; ++m) sum[i] += L(row + i, m) * X(m, j);
      }
      for (std::size_t i = 0; i < sum.size(); ++i) {
        Real merged = 0;
        for (std::size_t m = 0; m <= i; ++m) merged += X(row + i, row + m) * sum[m];
        X(row + i, j) = mistake == merge_mistake::sign ? merged : -merged;
      }
    }
  }
  return X;
}

template <class Real>
void merge_wrongly(site<Real>& s, merge_mistake mistake) {
  const matrix<Real> L = lower_of(s.now);
  const std::size_t given = s.plan.inverse.method.block, block = given > 1 && given < L.rows() ? given : 16;
  change_inverse(s, merged(L, block, mistake), merged(L, block, merge_mistake::none));
}

/// What w and u read in place of Ai, both.
template <class F>
std::vector<planted_hook> reading_inverse(F change) {
  return {before(step_kind::w, change), before(step_kind::u, change)};
}

template <class Real>
void identity_for_inverse(site<Real>& s) {
  zero_all(s.now.Ai);
  for (std::size_t r = 0; r < s.now.rows; ++r) s.now.Ai(r, r) = 1;
}

fault_table overlaps() {
  return {
      {"A-first-subdiagonal-lost", "A", "the mask of A is i > j + 1, not i > j: the first subdiagonal of A is 0", paths::chunk,
       hooks(always, {after(step_kind::A,
                            [](auto& s) {
                              for (std::size_t r = 1; r < s.now.rows; ++r) s.now.A(r, r - 1) = 0;
                            })})},
      {"A-first-column-lost", "A", "the first column of A is 0: no row sees the first key of its chunk", paths::chunk,
       hooks(always, {after(step_kind::A,
                            [](auto& s) {
                              for (std::size_t r = 1; r < s.now.rows; ++r) s.now.A(r, 0) = 0;
                            })})},
      {"A-keeps-diagonal", "Ai", "the mask of A keeps the diagonal i = j, and I + A is inverted with it", paths::chunk,
       hooks(always, {after(step_kind::A,
                            []<class Real>(site<Real>& s) {
                              auto& c = s.now;
                              for (std::size_t r = 0; r < c.rows; ++r) {
                                Real norm = 0;
                                for (const Real x : c.k.row(r)) norm += x * x;
                                c.A(r, r) = c.step[r] * norm;
                              }
                            }),
                      after(step_kind::Ai,
                            []<class Real>(site<Real>& s) {
                              const auto& A = s.now.A;
                              matrix<Real> X(s.now.rows, s.now.rows, Real(0));
                              for (std::size_t i = 0; i < X.rows(); ++i) {
                                for (std::size_t j = 0; j <= i; ++j) {
                                  Real sum = i == j ? Real(1) : Real(0);
                                  for (std::size_t m = j; m < i; ++m) sum -= A(i, m) * X(m, j);
                                  X(i, j) = sum / (1 + A(i, i));
                                }
                              }
                              keep_inverse(s, std::move(X));
                            })})},
      {"A-beta-missing", "A", "A is formed without beta", paths::chunk,
       hooks(always, {before(step_kind::A, [](auto& s) { std::fill(s.now.step.begin(), s.now.step.end(), 1); })})},
      {"A-beta-of-column", "A", "A_ij is multiplied by beta_j, not beta_i", paths::chunk,
       hooks(always, {before(step_kind::A, [](auto& s) { std::fill(s.now.step.begin(), s.now.step.end(), 1); }),
                      after(step_kind::A,
                            [](auto& s) {
                              for (std::size_t r = 0; r < s.now.rows; ++r) {
                                for (std::size_t j = 0; j < r; ++j) s.now.A(r, j) *= s.now.step[j];
                              }
                              narrow_all(s.now.A, {s.plan.A.store, false});
                            })})},
      {"A-block-of-wrong-keys", "A",
       "one block of A, in the third quarter of the rows and the first quarter of the columns, is formed with the keys of the "
       "second quarter, not of the first",
       paths::chunk, hooks(always, {after(step_kind::A, [](auto& s) { take_wrong_keys(s); })})},
      {"A-scaled", "A", "A is multiplied by the scale, which belongs to q k^T", paths::chunk,
       hooks(scaled, {after(step_kind::A,
                            [](auto& s) {
                              scale_all(s.now.A, s.all.scale);
                              narrow_all(s.now.A, {s.plan.A.store, false});
                            })})},
  };
}

fault_table inverses() {
  return {
      {"inverse-sign", "Ai", "I - A is inverted, not I + A", paths::chunk,
       hooks(always, {before(step_kind::Ai, []<class Real>(site<Real>& s) { scale_all(s.now.A, Real(-1)); })})},
      {"inverse-first-order", "Ai", "the inverse is I - A", paths::chunk,
       hooks(always, {after(step_kind::Ai, [](auto& s) { stop_after(s, 2); })})},
      {"inverse-four-terms", "Ai", "the inverse is I - A + A^2 - A^3", paths::chunk,
       hooks(always, {after(step_kind::Ai, [](auto& s) { stop_after(s, 4); })})},
      {"inverse-misses-last-squaring", "Ai", "the sum of powers of -A has C/2 terms, not C: the last doubling is missing",
       paths::chunk,
       hooks(always, {after(step_kind::Ai, [](auto& s) { stop_after(s, std::max<std::size_t>(1, s.now.full_rows / 2)); })})},
      {"inverse-diagonal-blocks-only", "Ai", "only the diagonal blocks of the inverse are computed: the blocks below them are 0",
       paths::chunk, hooks(always, {after(step_kind::Ai, [](auto& s) { merge_wrongly(s, merge_mistake::no_merges); })})},
      {"inverse-merge-one-term", "Ai",
       "a merge of inverse blocks, Ai_ij = -Ai_ii sum_m A_im Ai_mj, takes only the first term of the sum: blocks two or more "
       "below the diagonal are wrong",
       paths::chunk, hooks(always, {after(step_kind::Ai, [](auto& s) { merge_wrongly(s, merge_mistake::one_term); })})},
      {"inverse-merge-sign", "Ai", "the merged blocks of the inverse lack their minus sign", paths::chunk,
       hooks(always, {after(step_kind::Ai, [](auto& s) { merge_wrongly(s, merge_mistake::sign); })})},
      {"inverse-lacks-identity", "Ai", "the inverse is stored without its diagonal of ones", paths::chunk,
       hooks(always, {after(step_kind::Ai,
                            [](auto& s) {
                              for (std::size_t r = 0; r < s.now.rows; ++r) s.now.Ai(r, r) = 0;
                            })})},
  };
}

fault_table transforms() {
  return {
      {"w-Ai-transposed", "w", "w and u are formed with the inverse transposed", paths::chunk,
       hooks(always, reading_inverse([](auto& s) {
               auto& c = s.now;
               for (std::size_t i = 0; i < c.rows; ++i) {
                 for (std::size_t j = 0; j < i; ++j) std::swap(c.Ai(i, j), c.Ai(j, i));
               }
             }))},
      {"w-Ai-upper-triangle-read", "w",
       "w and u also read the entries of Ai above the diagonal, where the kernel left -b_i <k_i, k_j> in place of 0",
       paths::chunk, hooks(always, reading_inverse([]<class Real>(site<Real>& s) {
                             auto& c = s.now;
                             for (std::size_t i = 0; i < c.rows; ++i) {
                               for (std::size_t j = i + 1; j < c.rows; ++j) {
                                 Real sum = 0;
                                 for (std::size_t ch = 0; ch < c.k.cols(); ++ch) sum += c.k(i, ch) * c.k(j, ch);
                                 c.Ai(i, j) = -c.step[i] * sum;
                               }
                             }
                             narrow_all(c.Ai, {s.plan.inverse.store, false});
                           }))},
      {"w-Ai-of-previous-chunk", "w", "w and u are formed with the inverse of the previous chunk", paths::chunk,
       hooks(always, reading_inverse([](auto& s) {
               if (s.before && s.before->rows >= s.now.rows) {
                 for (std::size_t r = 0; r < s.now.rows; ++r)
                   std::copy_n(s.before->Ai.row(r).begin(), s.now.rows, s.now.Ai.row(r).begin());
               }
             }))},
      {"w-beta-missing", "w", "w is formed without beta", paths::chunk,
       hooks(always, {before(step_kind::w, [](auto& s) { std::fill(s.now.step.begin(), s.now.step.end(), 1); })})},
      {"w-beta-squared", "w", "w is formed with beta twice", paths::chunk,
       hooks(always, {before(step_kind::w,
                             [](auto& s) {
                               for (auto& b : s.now.step) b *= b;
                             })})},
      {"w-without-inverse", "w", "w is b e^G k, not Ai (b e^G k)", paths::chunk,
       hooks(always, {before(step_kind::w, [](auto& s) { identity_for_inverse(s); })})},
      {"w-of-raw-k", "w", "w is formed of k before its normalisation", paths::chunk,
       hooks(normalised, {before(step_kind::w,
                                 []<class Real>(site<Real>& s) {
                                   if (!s.in.qk_l2norm) return;
                                   for (std::size_t r = 0; r < s.now.rows; ++r) {
                                     const auto given = s.in.k.row(s.now.first + r);
                                     std::transform(given.begin(), given.end(), s.now.k.row(r).begin(),
                                                    [](double x) { return static_cast<Real>(x); });
                                   }
                                 })})},
      {"u-beta-missing", "u", "u is formed without beta", paths::chunk,
       hooks(always, {before(step_kind::u, [](auto& s) { std::fill(s.now.step.begin(), s.now.step.end(), 1); })})},
      {"u-beta-squared", "u", "u is formed with beta twice", paths::chunk,
       hooks(always, {before(step_kind::u,
                             [](auto& s) {
                               for (auto& b : s.now.step) b *= b;
                             })})},
      {"u-without-inverse", "u", "u is b v, not Ai (b v)", paths::chunk,
       hooks(always, {before(step_kind::u, [](auto& s) { identity_for_inverse(s); })})},
      {"u-chunk-off-by-one", "u", "in every chunk but the first, v is read one row too early", paths::chunk,
       hooks(always, {before(step_kind::u,
                             [](auto& s) {
                               if (s.now.first == 0) return;
                               std::copy_n(s.all.v.data() + (s.now.first - 1) * s.all.v.cols(), s.now.v.size(), s.now.v.data());
                             })})},
  };
}

}  // namespace

fault_table chunk_faults() {
  fault_table all = overlaps();
  for (auto* table : {inverses, transforms}) {
    fault_table part = table();
    std::move(part.begin(), part.end(), std::back_inserter(all));
  }
  return all;
}

}  // namespace deltaproof::emulation_detail
