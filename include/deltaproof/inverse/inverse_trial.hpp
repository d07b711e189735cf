// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// Puts an inverse of I + L on trial: state what the keys and steps are like (`inverse_problem`), the algorithm and its
// formats (`inverse_plan`), and `try_inverse` says whether it is safe there, with what its intermediates reach, predicted
// and observed. Shapes: L = diag(beta) (K K^T) below the diagonal, C x C. Rounds: L is computed in fp64 and rounded once
// to the operand format before anything runs, as a kernel does with its A; that rounding is the input's, not the
// algorithm's, so the error is judged against the inverse of the rounded L and the other one is told beside it. Products
// are exact, each addition is rounded once to the accumulator, in sequence; the result is rounded once to its stored
// format. Growth is judged on the larger of what is predicted and what was seen: small draws may exceed a prediction.
// Long work ends early on request (`stop`). It exists because random keys hide what correlated keys break.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "deltaproof/algebra/growth.hpp"
#include "deltaproof/algebra/matrix.hpp"
#include "deltaproof/algebra/triangular.hpp"
#include "deltaproof/number/double_double.hpp"
#include "deltaproof/number/format.hpp"
#include "deltaproof/support/errors.hpp"

namespace deltaproof {

/// gaussian: uniform directions. silu, elu1: SiLU(z), ELU(z) + 1 of Gaussians, then normalised. cosine:
/// k_i = sqrt(c) m + sqrt(1 - c) z_i, m and z_i of length 1, z_i orthogonal to m. identical: one key. alternating: k, -k, k ...
enum class key_family { gaussian, silu, elu1, cosine, identical, alternating };

struct key_law {
  key_family family = key_family::gaussian;
  double cosine = 0;  ///< c, of the family cosine
  friend bool operator==(const key_law&, const key_law&) = default;
};

/// beta_i uniform in [low, high), or low throughout.
struct step_law {
  double low = 1;
  double high = 1;
  friend bool operator==(const step_law&, const step_law&) = default;
};

/// gaussian, silu, elu1, cos=C with 0 <= C <= 1, identical, alternating. Throws: format_error that names the laws.
[[nodiscard]] key_law key_law_named(std::string_view text);
[[nodiscard]] std::string name_of(const key_law& law);
/// A decimal, or U(a,b), with 0 <= a <= b <= 2. Throws: format_error that says so.
[[nodiscard]] step_law step_law_named(std::string_view text);
[[nodiscard]] std::string name_of(const step_law& law);

/// The mean |cosine| of two keys for large d: 0, (E f)^2 / E f^2 for a feature f of normal numbers, c, or 1.
[[nodiscard]] double correlation_of(const key_law& law);

/// What L is drawn from. Draw s is a function of (seed, s, d) and begins alike for every C.
struct inverse_problem {
  key_law keys;
  step_law beta;
  std::size_t key_dim = 128;
  std::size_t chunk = 64;
  std::size_t samples = 16;
  std::uint64_t seed = 1;
};

/// Thrown out of work that its `stop` ended; try_inverse says `stopped` instead.
struct inverse_stopped : error {
  using error::error;
};

/// About how many bytes try_inverse holds at once: 40 an entry of each draw, 64 an entry for each thread, and the keys.
[[nodiscard]] double bytes_needed(const inverse_problem& problem, unsigned threads);

/// The algorithm and its formats.
struct inverse_plan {
  inverse_method method;
  format operand = fp32;
  format accumulate = fp32;
  format store = fp32;
  std::optional<format> merge = std::nullopt;  ///< operands of the merges of diagonal blocks; nothing: as `operand`
};
/// The coarser of the two formats operands have: one rounding of an intermediate costs its u.
[[nodiscard]] format coarsest_operand(const inverse_plan& plan);

/// The formats an inverse can be tried in.
inline constexpr std::array inverse_formats{fp64, fp32, tf32, fp16, bf16};
/// Throws: format_error where a format is none of them, the accumulator does not hold every operand, or operands and merges
/// are a pair that is not compiled; the message lists those that are.
void require_possible(const inverse_plan& plan);

/// A draw whose L is rounded to an operand format, with its true inverse.
struct inverse_case {
  matrix<double> lower;
  matrix<double_double> inverse;
  double largest = 1;  ///< max(1, |entry of the inverse|)
  double radius = 0;   ///< |inverse - (I + L)^-1| entrywise, proved
};

/// The draws of a problem, and their rounded versions on request.
class inverse_inputs {
 public:
  /// Throws: domain_error for chunk, samples or key_dim 0, or key_dim 1 where keys of cosine c < 1 need 2.
  explicit inverse_inputs(const inverse_problem& problem, const std::atomic<bool>* stop = nullptr);

  [[nodiscard]] const inverse_problem& problem() const noexcept { return problem_; }
  /// L of each draw, in fp64.
  [[nodiscard]] const std::vector<matrix<double>>& drawn() const noexcept { return drawn_; }
  [[nodiscard]] std::vector<inverse_case> rounded_to(format operand, unsigned threads = 1,
                                                     const std::atomic<bool>* stop = nullptr) const;
  /// The mean cosine between the keys of all draws.
  [[nodiscard]] double mean_cosine() const noexcept { return mean_cosine_; }

 private:
  inverse_problem problem_;
  std::vector<matrix<double>> drawn_;
  double mean_cosine_ = 0;
};

/// What came out of the plan's algorithm, before it is stored: one matrix, the largest intermediate and its stage a draw.
struct inverse_runs {
  std::vector<matrix<double>> results;
  std::vector<growth> observed;
};
[[nodiscard]] inverse_runs run_cases(const inverse_plan& plan, std::span<const inverse_case> cases, unsigned threads = 1,
                                     const std::atomic<bool>* stop = nullptr);

/// About the largest intermediate, from the key correlation and the law of the steps alone (estimate_growth).
[[nodiscard]] growth predict_growth(const inverse_method& method, const inverse_problem& problem);
/// The rigorous bound through |L|, roundings included, for all these cases at once (as growth_bound); other draws may
/// exceed it.
[[nodiscard]] growth bound_growth(const inverse_plan& plan, std::span<const inverse_case> cases,
                                  const std::atomic<bool>* stop = nullptr);

/// Safe: in every draw no intermediate and no stored entry leaves its format, the error is at most
/// 8 u_store max(1, max|(I+L)^-1|), and the larger of the predicted and the observed growth, times the u of the coarsest
/// operand, is within the smallest of these limits too. The prediction speaks for other draws, the observation needs none.
struct inverse_verdict {
  bool safe = false;
  std::string reason;
  growth promised;                             ///< the prediction, or the bound where that is asked for
  growth observed;                             ///< the largest of all draws, the stored inverse included
  double promised_error = 0;                   ///< the promised growth times u of the coarsest operand
  growth decisive;                             ///< the larger of promised and observed
  double decisive_error = 0;                   ///< the decisive growth times the same u
  std::string_view decided_by = "prediction";  ///< where `decisive` is from: prediction, bound or observation
  double error = 0;                            ///< max|X - (I+L)^-1| and its limit, of the draw where their ratio is largest
  double limit = 0;
  double smallest_limit = 0;
  double largest_entry = 0;  ///< of the true inverse, over all draws
  double radius = 0;         ///< of the reference, over all draws
  std::size_t left_format = 0;
  std::size_t beyond_limit = 0;
};

/// The verdict on runs of these cases. With `bound` (--worst-case) the rigorous bound stands in place of the prediction:
/// it holds for these draws, whatever their signs, and for no others.
[[nodiscard]] inverse_verdict judge_inverse(const inverse_plan& plan, std::span<const inverse_case> cases,
                                            const inverse_runs& runs, const growth& predicted, const growth* bound = nullptr);

/// Everything about one configuration.
struct inverse_trial {
  inverse_verdict verdict;
  growth predicted;
  growth bound;
  double error_unrounded = 0;  ///< max|X - (I+L)^-1| for the L before its rounding to the operand format
  double mean_cosine = 0;
  bool stopped = false;  ///< by `stop`: then nothing else here means anything
};
[[nodiscard]] inverse_trial try_inverse(const inverse_plan& plan, const inverse_problem& problem, bool worst_case = false,
                                        unsigned threads = 1, const std::atomic<bool>* stop = nullptr);

}  // namespace deltaproof
