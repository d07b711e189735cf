// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// cp of invariant.hpp: a sequence split over ranks. Each rank has the transition of its tokens and the state that they leave from
// zeros; the state that a rank starts from is folded from the summaries before it. A history that the gates of a rank forget may
// be left out of the fold where that is declared.
#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "check/check_parts.hpp"
#include "check/state_equations.hpp"
#include "deltaproof/emulate/emulate.hpp"
#include "deltaproof/oracle/reference.hpp"
#include "support/text.hpp"

namespace deltaproof::invariant_detail {
namespace {

std::optional<double> declared(const recorded_run& rank, const invariant_options& options) {
  return rank.exchanged.drop_below ? rank.exchanged.drop_below : options.drop_below;
}

/// The largest factor that the gates of a rank put on any entry of the state it starts from: of its slowest channel.
double decay_over(const recorded_run& rank, std::size_t s, std::size_t h) {
  const problem& p = rank.given;
  if (!p.g) return 1;
  const sequence_range here = sequence_at(p, s);
  const std::vector<double> gates = head_rows(*p.g, flat_token(p, here), here.tokens, h);
  const std::size_t width = here.tokens == 0 ? 1 : gates.size() / here.tokens;
  double most = -std::numeric_limits<double>::infinity();
  for (std::size_t c = 0; c < width; ++c) {
    double sum = 0;
    for (std::size_t t = 0; t < here.tokens; ++t) sum += gates[t * width + c];
    most = std::max(most, sum);
  }
  return std::exp(most);
}

/// Whether the fold into rank r + 1 leaves out what rank r started from.
bool is_dropped(std::span<const recorded_run> ranks, std::size_t r, std::size_t s, std::size_t h,
                const invariant_options& options) {
  const auto below = declared(ranks[r + 1], options);
  return below && decay_over(ranks[r], s, h) < *below;
}

bool anything_dropped(std::span<const recorded_run> ranks, const invariant_options& options) {
  for (std::size_t r = 0; r + 1 < ranks.size(); ++r) {
    for (std::size_t s = 0; s < ranks[r].given.sequence_count(); ++s) {
      for (std::size_t h = 0; h < ranks[r].given.value_heads(); ++h) {
        if (is_dropped(ranks, r, s, h, options)) return true;
      }
    }
  }
  return false;
}

matrix<double> identity_of(std::size_t n) {
  matrix<double> out(n, n, 0.0);
  for (std::size_t i = 0; i < n; ++i) out(i, i) = 1;
  return out;
}

/// The state of a head after all its tokens, from `initial` and with the values of `in`, or without any.
template <class Real>
running_state<Real> state_after(head_numbers<Real> in, const matrix<Real>& initial, bool values) {
  if (!values) {
    in.V = initial.cols();
    in.v.assign(in.tokens * in.steps * in.V, Real(0));
  }
  running_state<Real> state{initial};
  for (std::size_t t = 0; t < in.tokens; ++t) in.step(t, state);
  return state;
}

/// A run of the plan on the same tokens, from zeros, or from the identity and without values.
matrix<double> modelled_after(const recorded_run& rank, std::size_t s, std::size_t h, bool values, const plan_variant& variant) {
  head_input in = take_head(rank.given, s, h);
  if (!values) in.v = matrix<double>(in.rows(), in.key_dim(), 0.0);
  in.state = values ? matrix<double>(in.key_dim(), in.value_dim(), 0.0) : identity_of(in.key_dim());
  return emulate_head(in, variant).final_state;
}

/// rank_transition and rank_state of one rank.
void measure_summaries(const recorded_run& rank, std::size_t index, const std::optional<plan_variant>& variant,
                       std::vector<state_equation>& out) {
  const problem& p = rank.given;
  for (const bool values : {false, true}) {
    const char* name = values ? "rank_state" : "rank_transition";
    measured_equation e(
        values ? "summary" : "transition",
        values ? "rank_state is the state that the rank's tokens leave when they start from a state of zeros"
               : "rank_transition is the state that the rank's tokens leave with v = 0 when they start from the identity",
        index);
    const tensor* stored = rank.exchanged.find(name);
    if (stored == nullptr) e.lacks(std::string("the result lacks ") + name);
    if (stored != nullptr && !variant)
      e.lacks(std::string("with --no-plan the formats in which the rank computed ") + name + " are not known");
    for (std::size_t s = 0; s < p.sequence_count() && e.is_complete(); ++s) {
      for (std::size_t h = 0; h < p.value_heads(); ++h) {
        const head_numbers<wide> in(p, s, h);
        const std::size_t cols = values ? in.V : in.K, size = in.K * cols;
        matrix<wide> from(in.K, cols, wide(0));
        for (std::size_t i = 0; i < in.K && !values; ++i) from(i, i) = 1;
        e.add(s, h, std::nullopt, numbers_of(*stored, (s * p.value_heads() + h) * size, size),
              entries_of(state_after(in, from, values).s), entries_of(modelled_after(rank, s, h, values, *variant)),
              stored->element_format(), unit_roundoff(fp32));
      }
    }
    out.push_back(std::move(e).done());
  }
}

/// transition S + left, with factors rounded to `operand` first.
template <class Real>
matrix<Real> folded(const matrix<Real>& transition, const matrix<Real>& state, const matrix<Real>& left,
                    const std::optional<format>& operand) {
  const auto narrow = [&](Real x) { return operand ? static_cast<Real>(round_nearest(static_cast<double>(x), *operand)) : x; };
  matrix<Real> out = left;
  for (std::size_t i = 0; i < out.rows(); ++i) {
    for (std::size_t m = 0; m < state.rows(); ++m) {
      const Real t = narrow(transition(i, m));
      for (std::size_t j = 0; j < out.cols(); ++j) out(i, j) += t * narrow(state(m, j));
    }
  }
  return out;
}

template <class Real>
matrix<Real> given_state(const recorded_run& rank, std::size_t s, std::size_t h) {
  const problem& p = rank.given;
  if (!p.initial_state) return {p.key_dim(), p.value_dim(), Real(0)};
  return matrix_of<Real>(*p.initial_state, s * p.value_heads() + h, p.key_dim(), p.value_dim());
}

/// The state that rank r + 1 starts from, of the stored summaries: of rank r and its own start, or from the first rank on.
template <class Real>
matrix<Real> fold_into(std::span<const recorded_run> ranks, std::size_t r, std::size_t s, std::size_t h, fold_kind fold,
                       const std::optional<format>& operand, const invariant_options& options) {
  const problem& p = ranks[r].given;
  const std::size_t K = p.key_dim(), V = p.value_dim(), at = s * p.value_heads() + h;
  const std::size_t first = fold == fold_kind::sequential ? r : 0;
  const bool pairs = operand && fold == fold_kind::tree;
  matrix<Real> state = given_state<Real>(ranks[first], s, h), transition, left;
  for (std::size_t i = first; i <= r; ++i) {
    matrix<Real> own = matrix_of<Real>(*ranks[i].exchanged.find("rank_transition"), at, K, K);
    const matrix<Real> summary = matrix_of<Real>(*ranks[i].exchanged.find("rank_state"), at, K, V);
    if (is_dropped(ranks, i, s, h, options)) std::fill(own.entries().begin(), own.entries().end(), Real(0));
    if (!pairs) {
      state = folded(own, state, summary, operand);
    } else if (i == first) {  // summaries are joined first, and meet the state last
      transition = own;
      left = summary;
    } else {
      left = folded(own, left, summary, operand);
      transition = folded(own, transition, matrix<Real>(K, K, Real(0)), operand);
    }
  }
  return pairs ? folded(transition, state, left, operand) : state;
}

void measure_fold(std::span<const recorded_run> ranks, std::size_t r, const invariant_options& options,
                  std::vector<state_equation>& out) {
  const recorded_run& next = ranks[r + 1];
  const problem& p = next.given;
  measured_equation e(
      "fold",
      "a rank starts from rank_transition S + rank_state, both of the rank before it, where S is the state from which the rank "
      "before it started",
      r + 1);
  const fold_kind fold = next.exchanged.fold;
  for (std::size_t i = fold == fold_kind::sequential ? r : 0; i <= r; ++i) {
    for (const char* name : {"rank_transition", "rank_state"}) {
      if (ranks[i].exchanged.find(name) == nullptr) e.lacks("the result of " + part_name(i) + " lacks " + name);
    }
  }
  if (!e.is_complete()) {
    out.push_back(std::move(e).done());
    return;
  }
  const format f = p.initial_state ? p.initial_state->element_format() : fp32;
  const std::size_t size = p.key_dim() * p.value_dim();
  for (std::size_t s = 0; s < p.sequence_count(); ++s) {
    for (std::size_t h = 0; h < p.value_heads(); ++h) {
      const std::size_t at = s * p.value_heads() + h;
      const std::vector<double> got =
          p.initial_state ? numbers_of(*p.initial_state, at * size, size) : std::vector<double>(size, 0.0);
      const matrix<float> rough = fold_into<float>(ranks, r, s, h, fold, next.exchanged.fold_operand, options);
      e.add(s, h, std::nullopt, got, entries_of(fold_into<wide>(ranks, r, s, h, fold, std::nullopt, options)), entries_of(rough),
            f, unit_roundoff(fp32));
    }
  }
  out.push_back(std::move(e).done());
}

/// Which histories the recurrence over ranks leaves out.
enum class histories { all_kept, declared_dropped, none_kept };

/// The exact recurrence of the ranks of one head.
std::vector<wide> exact_outputs(std::span<const recorded_run> ranks, std::size_t s, std::size_t h,
                                const invariant_options& options, histories which) {
  std::vector<wide> out;
  running_state<wide> state, own;
  for (std::size_t r = 0; r < ranks.size(); ++r) {
    const head_numbers<wide> in(ranks[r].given, s, h);
    if (r == 0) state.s = in.initial;
    if (r > 0 && which == histories::none_kept) state.s = matrix<wide>(in.K, in.V, wide(0));
    own.s = matrix<wide>(in.K, in.V, wide(0));
    const bool drops = which == histories::declared_dropped && r + 1 < ranks.size() && is_dropped(ranks, r, s, h, options);
    const std::vector<wide> o = run_tokens(in, 0, in.tokens, state);
    out.insert(out.end(), o.begin(), o.end());
    if (!drops) continue;
    (void)run_tokens(in, 0, in.tokens, own);
    state = own;
  }
  return out;
}

std::vector<double> joined_outputs(std::span<const recorded_run> ranks, std::size_t s, std::size_t h) {
  std::vector<double> out;
  for (const recorded_run& rank : ranks) {
    const sequence_range here = sequence_at(rank.given, s);
    const std::vector<double> o = head_rows(rank.gave.o, flat_token(rank.given, here), here.tokens, h);
    out.insert(out.end(), o.begin(), o.end());
  }
  return out;
}

/// What the declared truncation does to the outputs, from the gates, and whether the ranks' outputs are those of it.
void measure_truncation(const recorded_run& whole, std::span<const recorded_run> ranks, const invariant_options& options,
                        std::vector<state_equation>& out) {
  measured_equation truncated(
      "truncated",
      "the joined o of the ranks equals the o of the exact recurrence without the histories that drop_below leaves out",
      ranks.size() - 1);
  measured_equation loss(
      "loss",
      "the histories that drop_below leaves out change o by at most 8 times the error of o in the unsplit run, or by at most "
      "--accuracy",
      ranks.size() - 1);
  for (measured_equation* e : {&truncated, &loss}) e->spans_all_parts();
  const format& f = whole.gave.o.element_format();
  for (std::size_t s = 0; s < whole.given.sequence_count(); ++s) {
    const sequence_range here = sequence_at(whole.given, s);
    for (std::size_t h = 0; h < whole.given.value_heads(); ++h) {
      const std::vector<wide> exact = exact_outputs(ranks, s, h, {}, histories::all_kept),
                              left = exact_outputs(ranks, s, h, options, histories::declared_dropped);
      const std::vector<double> one = head_rows(whole.gave.o, flat_token(whole.given, here), here.tokens, h);
      const distance plain = distance_of(one, exact);
      const double usual = plain.size > 0 ? std::max(plain.apart / plain.size, unit_roundoff(f)) : 0;
      const double allowed = options.check.judge.accuracy ? *options.check.judge.accuracy / most_of_head : usual;
      truncated.add(s, h, std::nullopt, joined_outputs(ranks, s, h), left, left, f, usual);
      loss.add(s, h, std::nullopt, std::vector<double>(left.begin(), left.end()), exact, exact, fp64, allowed);
    }
  }
  out.push_back(std::move(truncated).done());
  out.push_back(std::move(loss).done());
}

/// Whether ranks that forgot every history would be seen in some head.
bool shows_histories(const recorded_run& whole, std::span<const recorded_run> ranks) {
  const double unit = unit_roundoff(whole.gave.o.element_format());
  for (std::size_t s = 0; s < whole.given.sequence_count(); ++s) {
    const sequence_range here = sequence_at(whole.given, s);
    for (std::size_t h = 0; h < whole.given.value_heads(); ++h) {
      const std::vector<wide> exact = exact_outputs(ranks, s, h, {}, histories::all_kept);
      const distance plain = distance_of(head_rows(whole.gave.o, flat_token(whole.given, here), here.tokens, h), exact);
      const distance lost = distance_of(exact_outputs(ranks, s, h, {}, histories::none_kept), exact);
      if (lost.apart > most_of_head * std::max(plain.apart, unit * plain.size)) return true;
    }
  }
  return false;
}

}  // namespace

std::vector<question_to_judge> compare_ranks(const recorded_run& whole, std::span<const recorded_run> parts,
                                             const invariant_options& options, invariant_report& out) {
  std::vector<question_to_judge> asked = kept_parts(whole, parts, out);
  if (!anything_dropped(parts, options)) return asked;
  // What was left out is no part of the state any more: each rank is asked about its own tokens, from the state it was given.
  asked.clear();
  asked.push_back({"the whole", 0, true, whole});
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (parts[i].given.tokens() > 0) asked.push_back({part_name(i), 1, false, parts[i]});
  }
  return asked;
}

void judge_ranks(const recorded_run& whole, std::span<const recorded_run> parts, const invariant_options& options,
                 std::span<const plan> plans, invariant_report& out) {
  for (std::size_t i = 0; i < parts.size(); ++i) {
    std::optional<plan_variant> variant;
    if (!plans.empty())
      variant = variants(plans.front(), parts[i].given, path_of(parts[i].gave), parts[i].gave.chunk_size.value_or(0)).front();
    measure_summaries(parts[i], i, variant, out.equations);
    if (i > 0) measure_fold(parts, i - 1, options, out.equations);
  }
  if (anything_dropped(parts, options)) measure_truncation(whole, parts, options, out.equations);
  join_equations(out);
  if (out.judged != verdict::holds || shows_histories(whole, parts)) return;
  out.judged = verdict::vacuous;
  out.reason =
      "nothing is wrong, but on these inputs ranks that ignored every earlier rank would give the same outputs: the gates forget "
      "a state before it reaches the first outputs of a rank";
  out.remedy = "record gates that decay more slowly (gen --for cp makes such problems)";
}

}  // namespace deltaproof::invariant_detail
