// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// Recomputes every stored stage of a chunk kernel from the stage's own stored inputs: `measure_stages(problem, result,
// roundings)` says for each stage how far each element is from what it should be, in units of a bound derived for that
// element, where the worst and the first bad one lie, and whether the roundings lean to one side. Stages and shapes are
// those of the exchange format (files/exchange.hpp); the state is rebuilt from stored u, w, k and g. Operands are rounded here as
// `stage_roundings` declares; sums are made in fp64 and their own error is part of the bound. Unspecified triangles and
// columns are never read; a stage whose inputs are not stored is named, not judged. It exists to tell which stage of a
// kernel is wrong, and it shares nothing above room `algebra` with the emulator of kernels.
//
// Not claimed: a bound for inverses other than substitution on diagonal blocks with block merges, nor for gates factored as
// e^{G_i} e^{-G_j}: such elements count as unbounded, and NaN among them is bad. A bound allows for every
// rounding declared before it, so a fault of that size is not seen: a state rounded between chunks to the format h is stored
// in need not show in h, only in final_state (which is then the stage named), and in no stage where that is not stored. Of a
// stage whose inputs are not stored only NaN and inf are found. That no stage is bad is no pass: see stage_report::outcome.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "deltaproof/files/exchange.hpp"
#include "deltaproof/number/format.hpp"
#include "deltaproof/oracle/problem.hpp"
#include "deltaproof/plan/plan.hpp"

namespace deltaproof {

/// A and Aqk. `difference`: e^{G_i-G_j} on the finished product, or term by term where the gate has channels.
/// `reference_blocks`: outside the diagonal blocks of `block` rows, x e^{G_i-R} and k e^{R-G_j} (R the first row of i's
/// block) are narrowed to `operand` and multiplied; inside, term by term. `middle_blocks`: inside the diagonal blocks too,
/// with R the row in the block's middle. `first_blocks`: so, with R its first row. `shift` is added to R there.
enum class gram_form { difference, reference_blocks, middle_blocks, first_blocks };
struct gram_rounding {
  std::string name;
  gram_form form = gram_form::difference;
  narrowing operand;
  std::size_t block = 16;
  double shift = 0;                         ///< to base 2
  double accumulate = unit_roundoff(fp32);  ///< unit roundoff of an addition of products, here and below; infinite: no bound
  std::optional<format> store = {};         ///< A is rounded to this before it is inverted, where it is not stored
  std::optional<format> step = {};          ///< the effective step is rounded to this; nothing: as given or computed
  std::optional<format> rows = {};  ///< the step multiplies k and the row is rounded to this; nothing: it multiplies the product
  std::optional<format> product_store = {};        ///< k k^T is rounded to this before its decay and the step
  std::optional<format> query_product_store = {};  ///< q k^T is, before its decay
  std::optional<narrowing> query_operand = {};     ///< of q and k in q k^T; nothing: `operand`
  std::optional<double> query_accumulate = {};     ///< of its sums; nothing: `accumulate`
  bool gated = true;                               ///< false: A has no decay, and so none its inverse; q k^T has
};

/// Ai: forward substitution in `substitute` on diagonal blocks of `block` rows, then merges -Ai_ii (sum A_im Ai_mj) whose
/// operands are narrowed to `merge_operand`. One block of the whole chunk is plain substitution. Which two factors are
/// multiplied first matters where operands are narrowed (`merge_order`, plan.hpp); `any` leaves it open and costs a wider
/// bound.
struct inverse_rounding {
  std::string name;
  std::size_t block = 16;
  double substitute = unit_roundoff(fp32);  ///< infinite: no bound is known for this inverse
  narrowing merge_operand;
  double merge_accumulate = unit_roundoff(fp32);
  merge_order order = merge_order::any;
  double substitute_operand = 0;     ///< unit roundoff of narrowing an operand of the substitution
  double between = 0;                ///< likewise of a finished row or block before it is used on
  std::optional<format> reads = {};  ///< A as it was before it was stored, rounded to this; nothing: as stored
};

/// u = Ai (beta v) and w = Ai (beta e^G k): beta times the row is rounded to `beta_product`, multiplied by e^G in the
/// elementwise arithmetic, narrowed to `operand`.
struct scaled_rounding {
  std::string name;
  format beta_product = fp32;
  narrowing operand;
  double accumulate = unit_roundoff(fp32);
  std::optional<format> step = {};                ///< as for A
  std::optional<narrowing> inverse_operand = {};  ///< of Ai; nothing: `operand`
  std::optional<format> reads = {};               ///< Ai as it was before it was stored, rounded to this; nothing: as stored
};

/// Which factor of k^T v_new carries the decay e^{G_C-G_i} to the end of the chunk, and from which v_new.
enum class update_kind {
  value,         ///< the unstored v_new times the decay, narrowed once
  key,           ///< k times the decay, narrowed; v_new narrowed
  stored_value,  ///< the stored v_new times the decay, narrowed
  stored_key,    ///< k times the decay, narrowed; the stored v_new narrowed
};
/// Which state a product multiplies: the copy that is stored as h, or the state itself, before it was rounded to be stored.
/// The state itself is known from its rebuild and, within a unit in the last place, from its copy.
enum class state_source { stored, computed };
/// v_new, h, final_state: S <- e^{G_C} S + k^T v_new, w and S narrowed to `operand` in v_new = u - w S.
struct state_rounding {
  std::string name;
  update_kind update = update_kind::value;
  narrowing operand;
  std::optional<format> between_chunks;  ///< the state is rounded to this after each chunk; nothing: it is not
  double accumulate = unit_roundoff(fp32);
  std::optional<narrowing> update_operand = {};      ///< of k^T v_new; nothing: `operand`
  std::optional<narrowing> key_operand = {};         ///< of its k; nothing: as its v_new
  state_source reads = state_source::stored;         ///< S of w S
  std::optional<narrowing> copy = {};                ///< of h, for what reads it where it is not stored; nothing: `operand`
  std::optional<format> value_copy = {};             ///< of v_new, likewise
  std::optional<state_cache> cache = {};             ///< the state is stored in this between chunks
  std::optional<state_cache> between_calls = {};     ///< and in this after each call
  std::optional<format> reads_u = {}, reads_w = {};  ///< u and w before they were stored, rounded to this; nothing: as stored
};

/// o = scale (e^G (q S) + (q k^T . e^{G_i-G_j}) v_new). `query_gated`: e^G is multiplied into q, which is then narrowed.
/// A stored Aqk is used as it is; otherwise q k^T . e^{G_i-G_j} is narrowed to `operand`.
struct output_rounding {
  std::string name;
  bool query_gated = false;
  narrowing operand;
  double accumulate = unit_roundoff(fp32);
  std::optional<narrowing> query_operand = {};  ///< of q and of its product with e^G; nothing: `operand`
  std::optional<narrowing> state_operand = {};  ///< of h, likewise
  std::optional<narrowing> value_operand = {};  ///< of v_new, likewise
  state_source reads = state_source::stored;    ///< S of q S
  std::optional<format> read_store = {};  ///< q S is rounded to this before its decay, the scale and the sum; nothing: it is not
};

/// q and k as every stage reads them: under qk_l2norm x / sqrt(sum x^2 + epsilon), rounded, and q times the scale where it is
/// multiplied first.
struct row_rounding {
  std::string name;
  std::optional<format> store;  ///< of the normalised rows; nothing: kept as computed
  double epsilon = reference_l2norm_epsilon;
  read_scale scale = read_scale::o;
  narrowing scaled_query = {fp32, false};   ///< of q times the scale, where no l2norm narrows it
  std::optional<format> scale_format = {};  ///< the scale itself is rounded to this
  double norm_roundoff = 0;  ///< of the squares, their sum, the root and the quotient, where that is more than fp32's
};

/// What a kernel declares about its roundings. Each list holds alternatives for the whole stage, any of which is right, the
/// tightest first: the one with the fewest elements beyond their bounds, then the first, is reported by name. Stages that
/// share a list share the choice: A and Aqk; h, v_new and final_state, with o where it reads a state or v_new that is not
/// stored. What a stage is stored in is the format of its tensor.
struct stage_roundings {
  double elementwise = unit_roundoff(fp32);  ///< unit roundoff of elementwise operations
  double gates = unit_roundoff(fp32);        ///< of sums and differences of gates and of exponentials of them
  double exp2_ulps = 2;                      ///< error of an exponential, in units of 2 * gates of the result
  double activation_ulps = 4;                ///< likewise of the effective step, where the kernel computes it
  double rsqrt_ulps = 2;                     ///< likewise of 1/sqrt under qk_l2norm
  /// Decays may come from another copy of G than the stored one, as of natural logarithms: off by three roundings of |G|
  /// (change of base, its constant, the exponent's own factor).
  bool other_gate_sums = false;
  std::optional<std::pair<double, double>> clip;  ///< exponents of decays, as natural logarithms, are brought into it
  row_rounding rows;
  /// What else that may be: the one with the fewest elements beyond their bounds is taken, for every stage.
  std::vector<row_rounding> other_rows;
  /// o reads h at the start of every `output_span`-th chunk, its sum reaching over that many chunks: n in the public kernel
  /// of the delta product, whose read-out chunks count tokens. Then their decays are formed from the given gates.
  std::size_t output_span = 1;
  std::vector<gram_rounding> gram;
  std::vector<inverse_rounding> inverse;
  std::vector<scaled_rounding> u;
  std::vector<scaled_rounding> w;
  std::vector<state_rounding> state;
  std::vector<output_rounding> output;
};

/// What a plan declares for this problem: for each stage the roundings of its variants, operands of more bits first. Where
/// gates have channels their decay is carried by q and k. The read-out spans n chunks for n steps a token, as in the public
/// kernel of the delta product. Throws: domain_error unless path is chunk; as variants.
[[nodiscard]] stage_roundings roundings_of(const plan& plan, const problem& p, path_kind path, std::size_t chunk);

/// Where an element lies. `chunk` and `row` (inside the chunk, of k) are 0 for final_state; for h the row is that of the
/// state. `element`: the column, for states the column of V.
struct stage_place {
  std::size_t batch = 0;
  std::size_t sequence = 0;
  std::size_t head = 0;
  std::size_t chunk = 0;
  std::size_t row = 0;
  std::size_t element = 0;
  double got = 0;
  double want = 0;
  double bound = 0;
  double ratio = 0;  ///< |got - want| / bound, infinite where got is not finite and want is, or cannot be recomputed
};

/// Ratios in bins of 1/64 up to 2, then one for each power of two.
class ratio_histogram {
 public:
  void add(double ratio);
  void add(std::span<const double> ratios);
  void merge(const ratio_histogram& other);
  [[nodiscard]] std::size_t count() const noexcept { return count_; }
  /// Upper edge of the bin in which the quantile lies; 0 if nothing was added.
  [[nodiscard]] double quantile(double probability) const;
  /// Share of the ratios above `edge`, to the resolution of the bins.
  [[nodiscard]] double share_above(double edge) const;

 private:
  static constexpr std::size_t linear_bins = 128;
  static constexpr std::size_t bins = linear_bins + 64;
  static std::size_t bin_of(double ratio);
  static double upper_edge(std::size_t bin);
  std::array<std::size_t, bins> counts_{};
  std::size_t count_ = 0;
};

/// Mean of sign(want) (got - want) in ulps of the stored format, over elements where the half ulp of storing is at least
/// sixteen times the rest of the bound: 0 for rounding to nearest, -1/2 for truncation.
struct stage_bias {
  std::size_t count = 0;
  double mean = 0;
  double standard_error = 0;  ///< of the mean, from the sample; never below that of an error uniform in one ulp
  /// |mean| that the curvature of the values' distribution may cause under exact rounding to nearest.
  double allowance = 0;
};

inline constexpr std::size_t excused_lines = 6;

struct stage_measurement {
  std::string name;
  std::string rounding;  ///< the alternatives that fit best, by name
  bool finer = false;    ///< they leave out a rounding that was declared: measure_stages_at_least
  std::string dtype;
  std::size_t judged = 0;
  std::size_t unbounded = 0;  ///< finite, not judged: an input is not finite or not stored, or the bound is infinite
  std::size_t skipped = 0;    ///< not judged because the caller said so
  std::size_t nonfinite = 0;  ///< bad: not finite where want is, or where it cannot be recomputed
  std::optional<stage_place> worst;
  std::optional<stage_place> first_bad;  ///< first ratio above 1 by sequence, head, chunk, row, element
  std::size_t bad = 0;
  ratio_histogram ratios;
  double rms_ratio = 0;  ///< root mean square of the finite ratios
  /// The same without the `excused_lines` rows and columns of chunks that add most to it: one operand that is rounded to its
  /// other neighbour moves a row or a column, within its bounds, and few runs may show none that is.
  double rms_of_the_rest = 0;
  /// Of the bound, root mean square: the error of storing the exact value, and all of the rest. Where a stage's value is known to
  /// be near one that its format holds, storing errs less than half an ulp, and runs on other stored inputs err otherwise.
  double rms_expected = 0;
  double rms_scatter = 0;  ///< relative standard error of rms_ratio, of ratios that scatter each apart: sqrt(sum r^4 - (sum
                           ///< r^2)^2 / n) / (2 sum r^2)
  double open_share =
      0;  ///< of the bound, root mean square: what is not the half ulp of storing, and so may depend on the order of sums
  stage_bias bias;
  double exactly_bf16 = 0;  ///< share of the judged nonzero values of an fp32 or fp64 stage that are values of bf16
};

struct unjudged_stage {
  std::string name;
  std::string reason;
  bool stored = false;
};

enum class stage_outcome {
  within,          ///< every element of every stored stage is within its bound, but those the caller skipped
  bad,             ///< first_bad_stage says where
  nothing_judged,  ///< not one element
  inconclusive,    ///< none bad, but a stored stage or element could not be judged
};
[[nodiscard]] std::string_view name_of(stage_outcome outcome);

struct stage_report {
  std::vector<stage_measurement> stages;  ///< in the order of `judged_stages`
  std::vector<unjudged_stage> unjudged;   ///< one that is stored is among `stages` too if it holds NaN or inf

  /// How many elements of all stages.
  [[nodiscard]] std::size_t judged() const;
  [[nodiscard]] stage_outcome outcome() const;
  /// The stage of that name, or nothing.
  [[nodiscard]] const stage_measurement* find(std::string_view name) const;
};

struct stage_options {
  /// Leading tokens of (sequence * HV + head) to judge; a chunk that reaches past them is skipped. Empty: all. To be set
  /// where the problem itself leaves the formats of the kernel: NaN and inf are bad wherever they are judged.
  std::vector<std::size_t> judged_tokens;
  unsigned threads = 0;
  /// Whether o is measured too. No other stage is made of it, and where h and v_new are stored it says nothing about them.
  bool output = true;
};

/// Shapes: as read_result checked them, of a problem that passes validate.
/// Throws: domain_error if the result states no chunk_size (or 0), or a list of `roundings` that a stored stage needs is
/// empty; shape_error if judged_tokens has another length.
[[nodiscard]] stage_report measure_stages(const problem& p, const result& r, const stage_roundings& roundings,
                                          const stage_options& options = {});

/// measure_stages, where a kernel may round less than declared: better than the plan is no fault. A stage (with those that
/// share its choice) that is beyond its bounds as declared is measured again with its operands, products, step, A or the state
/// between chunks kept as computed, in any combination; with the rows under qk_l2norm as computed; with o read from the state
/// of each chunk where `output_span` joins several; and with `other_gate_sums`. It is taken so, and marked `finer`, where
/// nothing is beyond its bound then. Throws: as measure_stages.
[[nodiscard]] stage_report measure_stages_at_least(const problem& p, const result& r, const stage_roundings& declared,
                                                   const stage_options& options = {});

/// The first stage, in the order of the data, with an element beyond its bound; nothing if none was found, which is no pass.
[[nodiscard]] const stage_measurement* first_bad_stage(const stage_report& report);
/// "Ai: sequence 0, head 1, chunk 2, row 17, column 3: 0.5 where 0.25 +- 0.002 was due (ratio 125)".
[[nodiscard]] std::string describe(const stage_measurement& stage);
/// One line a stage: count, quantiles of error/bound, worst, bias; then the stages not judged.
[[nodiscard]] std::string to_text(const stage_report& report);

}  // namespace deltaproof
