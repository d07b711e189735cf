// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <memory>
#include <numbers>
#include <optional>
#include <string>
#include <utility>

#include "deltaproof/stages/backward_stages.hpp"
#include "deltaproof/support/errors.hpp"
#include "stages/backward_inner.hpp"
#include "stages/backward_rows.hpp"
#include "stages/head_stages.hpp"
#include "support/parallel.hpp"

namespace deltaproof {

namespace {

using namespace stages_detail;

/// Made inside a chunk from most of what is stored.
bool is_inner(std::string_view stage) {
  return stage == "dAkk" || stage == "dg_local" || stage == "dbeta" || stage == "dk" || stage == "dk_hat" || stage == "dq" ||
         stage == "dq_hat";
}

std::string_view missing_input(std::string_view stage, const stored_tensors& stored, const problem& p) {
  if (p.qk_l2norm && (stage == "dq" || stage == "dk"))
    return stored.missing(std::array{find_stage(stage == "dq" ? "dq_hat" : "dk_hat")->name});
  return stored.missing(find_stage(stage)->needs);
}

/// Why the plan's kernel leaves nothing that this stage could be recomputed from; empty where it does.
std::string_view not_recomputed(std::string_view stage, const plan_variant& v, const problem& p) {
  const bool of_state = stage == "dh" || stage == "dinitial_state";
  if (of_state && v.split.chunks > 0)
    return "the plan splits sequences ([split] chunks), and this stage is not recomputed across the parts";
  if (v.v_new.form == change_form::residual && (is_inner(stage) || stage == "dv"))
    return "the plan's [v_new] form is \"residual\", and this stage is not recomputed for that form";
  const bool through_step = p.rule != rule_kind::euler || p.beta_activation != activation_kind::none;
  if (stage == "dbeta" && through_step)
    return "an activation or an update rule turns beta into the effective step, and only the gradient of that step is "
           "recomputed, not dbeta";
  if (stage == "dbeta" && v.backward->dbeta_form == step_gradient::divide)
    return "the plan's [backward] dbeta_form is \"divide\", and dbeta is not recomputed for that form";
  if ((stage == "dk" || stage == "dk_hat") && p.rule != rule_kind::euler && !(p.qk_l2norm && stage == "dk"))
    return "the update rule makes the step depend on k, and the part of this gradient that comes through the step is not "
           "recomputed";
  return {};
}

/// One head of one sequence under one choice of operands, chunks from the last to the first.
class backward_head {
 public:
  backward_head(const problem& p, const stored_tensors& stored, const plan_variant& v, const stage_roundings& roundings,
                const head_place& place, tallies_of& out)
      : p_{p},
        stored_{stored},
        v_{v},
        b_{*v.backward},
        place_{place},
        out_{out},
        errors_{roundings},
        u_{unit_roundoff(b_.accumulate)},
        in_{load_head(p, place.sequence, place.head, roundings)},
        dq_(in_.tokens, p.key_dim()),
        dk_(in_.rows, p.key_dim()),
        first_row_{place.sequence.batch * p.steps() + place.sequence.first_token * p.num_householder},
        d_state_(p.key_dim(), p.value_dim()) {}

  void run() {
    const std::size_t C = v_.chunk, chunks = (in_.rows + C - 1) / C;
    if (p_.d_final_state) d_state_ = state_of(*p_.d_final_state, place_.number * heads() + place_.head);
    for (chunk_ = chunks; chunk_-- > 0;) run_chunk(chunk_ * C, std::min(C, in_.rows - chunk_ * C));
    chunk_ = 0;
    if (wanted("dinitial_state")) judge_state("dinitial_state", place_.number * heads() + place_.head);
    if (wanted("dg")) judge_dg();
  }
  /// Of this head alone, in the formats of [backward] dq and dk: for the sum over a group.
  [[nodiscard]] const balls& dq() const { return dq_; }
  [[nodiscard]] const balls& dk() const { return dk_; }
  [[nodiscard]] const head_inputs& inputs() const { return in_; }

 private:
  [[nodiscard]] std::size_t heads() const { return p_.value_heads(); }
  [[nodiscard]] std::size_t keys() const { return p_.key_dim(); }
  [[nodiscard]] std::size_t values() const { return p_.value_dim(); }
  [[nodiscard]] bool wanted(std::string_view stage) const { return out_.find(stage) != out_.end(); }
  [[nodiscard]] bool by_channel() const { return p_.gate_per_channel(); }

  [[nodiscard]] balls state_of(const tensor& t, std::size_t index) const {
    return load_rows(t, index * keys(), keys(), values(), 0, values());
  }
  [[nodiscard]] std::size_t chunk_index() const {
    return (place_.sequence.batch * chunk_count(p_, v_.chunk) + place_.first_chunk + chunk_) * heads() + place_.head;
  }
  [[nodiscard]] balls rows_of(std::string_view name, std::size_t width, std::size_t used) const {
    return load_rows(*stored_.find(name), first_row_ + begin_, rows_, heads() * width, place_.head * width, used);
  }

  /// `rows_of_chunk`: where the rows are those of several chunks.
  void judge(std::string_view stage, const balls& got, const balls& want, const std::vector<std::size_t>* limits = nullptr,
             std::size_t rows_of_chunk = std::numeric_limits<std::size_t>::max()) {
    const std::vector<double> none(want.cols, 0.0);
    for (std::size_t i = 0; i < got.rows; ++i) {
      stage_place at;
      at.batch = place_.sequence.batch;
      at.sequence = place_.number;
      at.head = place_.head;
      at.chunk = chunk_ + i / rows_of_chunk;
      at.row = i % rows_of_chunk;
      const std::size_t count = limits == nullptr ? got.cols : (*limits)[i];
      const std::span<const double> error =
          want.exact() ? std::span(none) : std::span(want.radius).subspan(i * want.cols, want.cols);
      out_.find(stage)->second.add(at, std::span(got.value).subspan(i * got.cols, count),
                                   std::span(want.value).subspan(i * want.cols, count), error.first(count));
    }
  }
  void judge_state(std::string_view stage, std::size_t index) { judge(stage, state_of(*stored_.find(stage), index), d_state_); }

  /// a b as it is accumulated, n roundings more.
  [[nodiscard]] balls times(const balls& a, const balls& b, const narrowing& operand, std::size_t more = 0) const {
    product m = multiply(narrow(a, operand), narrow(b, operand));
    std::vector<double> radius = sum_bound(errors_, a.cols + more, u_).of_all(m);
    return {a.rows, b.cols, std::move(m.value), std::move(radius)};
  }
  /// x y, rounded once.
  [[nodiscard]] ball scaled(ball x, ball y) const {
    const double upper = x.upper() * y.upper(), value = x.value * y.value;
    return {value, (upper - std::fabs(value)) + upper * (errors_.elementwise + own_roundoff) + errors_.underflow};
  }
  [[nodiscard]] ball sum(ball x, ball y) const {
    return {x.value + y.value, x.radius + y.radius + (x.upper() + y.upper()) * (errors_.elementwise + own_roundoff)};
  }
  /// Rows times e^{G_i}, or e^{G_C - G_i}; as they are without a gate.
  [[nodiscard]] balls decayed(const balls& x, const chunk_decays& decays, bool to_end) const {
    balls out = x;
    for (std::size_t i = 0; i < x.rows && decays.channels() > 0; ++i) {
      for (std::size_t m = 0; m < x.cols; ++m) {
        const std::size_t channel = by_channel() ? m : 0;
        out.set(i, m, scaled(x.at(i, m), to_end ? decays.between(rows_ - 1, i, channel) : decays.since_start(i, channel)));
      }
    }
    return out;
  }

  void run_chunk(std::size_t begin, std::size_t rows) {
    begin_ = begin;
    rows_ = rows;
    k_ = in_.k.slice(begin, rows);
    const std::size_t n = p_.num_householder;
    q_ = balls(rows, keys());
    d_o_ = balls(rows, values());
    for (std::size_t i = 0; i < rows; ++i) {
      if ((begin + i + 1) % n != 0) continue;
      const std::size_t token = (begin + i) / n;
      for (std::size_t m = 0; m < keys(); ++m) q_.set(i, m, in_.q.at(token, m));
      if (!p_.d_o) continue;
      const std::size_t row = place_.sequence.batch * p_.tokens() + place_.sequence.first_token + token;
      p_.d_o->read((row * heads() + place_.head) * values(), std::span(d_o_.value).subspan(i * values(), values()));
    }
    const balls gates = in_.log_gates.slice(begin, rows);
    std::optional<balls> sums;
    if (stored_.find("g_cumsum_log2") != nullptr && gates.cols > 0) sums = rows_of("g_cumsum_log2", gates.cols, gates.cols);
    chunk_decays decays(gates, sums ? &*sums : nullptr, errors_);
    if (wanted("dv_local")) judge_local(decays);
    if (wanted("dh")) judge_state("dh", chunk_index());
    if (wanted("dv2")) judge_value_gradients(decays);
    if (wanted("dw")) {
      balls want =
          times(rows_of("dv2", values(), values()), state_of(*stored_.find("h"), chunk_index()).transposed(), b_.operand);
      for (double& x : want.value) x = -x;
      judge("dw", rows_of("dw", keys(), keys()), want);
    }
    if (wanted("dAqk")) judge_weight_gradients();
    if (wanted("dv")) judge_values();
    judge_inside(decays);
    if ((wanted("dh") || wanted("dinitial_state")) && stored_.missing(find_stage("dinitial_state")->needs).empty())
      pass_state(decays);
  }

  void judge_local(chunk_decays& decays) {
    balls weights;
    if (by_channel() && stored_.find("Aqk") != nullptr) {
      weights = rows_of("Aqk", v_.chunk, rows_);
    } else {
      std::vector<std::size_t> all(rows_);
      for (std::size_t i = 0; i < rows_; ++i) all[i] = i;
      balls scale(rows_, 1);
      std::fill(scale.value.begin(), scale.value.end(), p_.scale);
      gram_rounding how;
      how.operand = by_channel() ? v_.A.operand : b_.operand;
      how.form = !by_channel() || v_.form == gate_form::difference ? gram_form::difference
                 : v_.form == gate_form::middle_block              ? gram_form::middle_blocks
                 : v_.form == gate_form::first_block               ? gram_form::first_blocks
                                                                   : gram_form::reference_blocks;
      how.block = v_.gate_block;
      how.shift = v_.gate_shift * std::numbers::log2e;
      how.accumulate = u_;
      weights = decayed_gram(q_, all, k_, decays, by_channel(), scale, 2, false, how, errors_);
    }
    for (std::size_t i = 0; i < rows_; ++i) {
      for (std::size_t j = i + 1; j < rows_; ++j) weights.set(i, j, {});
    }
    judge("dv_local", rows_of("dv_local", values(), values()), times(weights.transposed(), d_o_, b_.operand));
  }

  void judge_value_gradients(const chunk_decays& decays) {
    const balls dh = state_of(*stored_.find("dh"), chunk_index()), local = rows_of("dv_local", values(), values());
    const bool on_keys = by_channel() && decays.channels() > 0;
    balls want = times(on_keys ? decayed(k_, decays, true) : k_, dh, b_.operand);
    if (!on_keys) want = decayed(want, decays, true);
    for (std::size_t i = 0; i < rows_; ++i) {
      for (std::size_t j = 0; j < values(); ++j) want.set(i, j, sum(want.at(i, j), local.at(i, j)));
    }
    judge("dv2", rows_of("dv2", values(), values()), want);
  }

  void judge_weight_gradients() {
    balls want = times(d_o_, rows_of("v_new", values(), values()).transposed(), b_.operand);
    std::vector<std::size_t> limits(rows_);
    for (std::size_t i = 0; i < rows_; ++i) {
      limits[i] = i + 1;
      for (std::size_t j = 0; j <= i; ++j)
        want.set(i, j, scaled(want.at(i, j), {p_.scale, std::fabs(p_.scale) * errors_.elementwise}));
    }
    judge("dAqk", rows_of("dAqk", v_.chunk, rows_), want, &limits);
  }

  void judge_values() {
    balls inverse = rows_of("Ai", v_.chunk, rows_);
    for (std::size_t i = 0; i < rows_; ++i) {
      for (std::size_t j = i + 1; j < rows_; ++j) inverse.set(i, j, {});
    }
    balls want = times(inverse.transposed(), rows_of("dv2", values(), values()), b_.operand);
    const balls step = narrow(in_.step.slice(begin_, rows_), {v_.beta, false});
    for (std::size_t i = 0; i < rows_; ++i) {
      for (std::size_t j = 0; j < values(); ++j) want.set(i, j, scaled(want.at(i, j), step.at(i, 0)));
    }
    judge("dv", rows_of("dv", values(), values()), want);
  }

  [[nodiscard]] bool wants_queries() const { return wanted("dq_hat") || (wanted("dq") && !p_.qk_l2norm); }
  [[nodiscard]] bool wants_inside() const {
    return wanted("dAkk") || wanted("dg_local") || wanted("dbeta") || wanted("dk_hat") || (wanted("dk") && !p_.qk_l2norm);
  }

  void judge_inside(chunk_decays& decays) {
    const bool all = wants_inside();
    if (!all && !wants_queries()) return;
    chunk_given given;
    given.q = q_;
    given.k = k_;
    given.v = in_.v.slice(begin_, rows_);
    given.step = in_.step.slice(begin_, rows_);
    given.d_o = d_o_;
    given.h = state_of(*stored_.find("h"), chunk_index());
    given.v_new = rows_of("v_new", values(), values());
    if (by_channel() && stored_.find("dAqk") != nullptr) given.ds = square_of("dAqk", true);
    if (all) {
      given.dh = state_of(*stored_.find("dh"), chunk_index());
      given.dv2 = rows_of("dv2", values(), values());
      given.Ai = square_of("Ai", true);
      if (stored_.find("dw") != nullptr) given.dw = rows_of("dw", keys(), keys());
    }
    const chunk_backward chunk(p_, v_, errors_, decays, given);
    if (!all) return keep_queries(chunk.queries());
    balls dA = chunk.inverse();
    if (stored_.find("dAkk") != nullptr) {
      const balls stored = square_of("dAkk", false);
      std::vector<std::size_t> limits(rows_);
      for (std::size_t i = 0; i < rows_; ++i) limits[i] = i;
      if (wanted("dAkk")) judge("dAkk", stored, dA, &limits);
      dA = stored;
    } else {
      dA = narrow(std::move(dA), {b_.dA, false});
    }
    const chunk_gradients found = chunk.all(dA);
    keep_queries(found.dq);
    for (std::size_t i = 0; i < rows_; ++i) {
      for (std::size_t m = 0; m < keys(); ++m) dk_.set(begin_ + i, m, found.dk.at(i, m));
    }
    if (wanted("dbeta")) judge("dbeta", rows_of("dbeta", 1, 1), narrow(found.d_step, {b_.dbeta, false}));
    if (wanted("dg_local")) judge("dg_local", rows_of("dg_local", found.dg.cols, found.dg.cols), found.dg);
  }

  void keep_queries(const balls& dq) {
    const std::size_t n = p_.num_householder;
    for (std::size_t i = 0; i < rows_; ++i) {
      if ((begin_ + i + 1) % n != 0) continue;
      for (std::size_t m = 0; m < keys(); ++m) dq_.set((begin_ + i) / n, m, dq.at(i, m));
    }
  }

  /// Its rows and columns of this chunk, 0 above the diagonal (and on it, if strict).
  [[nodiscard]] balls square_of(std::string_view name, bool diagonal) const {
    balls out = rows_of(name, v_.chunk, rows_);
    for (std::size_t i = 0; i < rows_; ++i) {
      for (std::size_t j = diagonal ? i + 1 : i; j < rows_; ++j) out.set(i, j, {});
    }
    return out;
  }

  /// dS <- e^{G_C} dS + scale (q e^G)^T do - w^T dv2, dv2 as it was before it was stored.
  void pass_state(const chunk_decays& decays) {
    const balls read = times(decayed(q_, decays, false).transposed(), d_o_, b_.read_operand);
    balls d_change = rows_of("dv2", values(), values());
    const format& stored = stored_.find("dv2")->element_format();
    if (!(b_.operand.to == stored)) {
      for (std::size_t i = 0; i < d_change.value.size(); ++i)
        d_change.set(i / values(), i % values(), {d_change.value[i], half_ulp(d_change.value[i], stored)});
    }
    const balls write = times(rows_of("w", keys(), keys()).transposed(), d_change, b_.operand);
    for (std::size_t i = 0; i < keys(); ++i) {
      for (std::size_t j = 0; j < values(); ++j) {
        ball x = d_state_.at(i, j);
        if (decays.channels() > 0) x = scaled(x, decays.since_start(rows_ - 1, by_channel() ? i : 0));
        const ball fresh = scaled(read.at(i, j), {p_.scale, std::fabs(p_.scale) * errors_.elementwise});
        const ball taken = write.at(i, j);
        d_state_.set(i, j, sum(x, sum(fresh, {-taken.value, taken.radius})));
      }
    }
  }

  /// The sum from each row to the end of its chunk, read at the first row of each token.
  void judge_dg() {
    const std::size_t width = in_.log_gates.cols, n = p_.num_householder, C = v_.chunk;
    const balls local = load_rows(*stored_.find("dg_local"), first_row_, in_.rows, heads() * width, place_.head * width, width);
    // The public kernels take the sum up to a row from that of its chunk: all of the chunk's terms count.
    const double relative = 2 * gamma(C + 2, unit_roundoff(b_.dg)) + static_cast<double>(2 * C) * own_roundoff;
    balls want(in_.tokens, width);
    for (std::size_t begin = 0; begin < in_.rows; begin += C) {
      const std::size_t end = std::min(begin + C, in_.rows);
      for (std::size_t m = 0; m < width; ++m) {
        double terms = 0, sum = 0;
        for (std::size_t row = begin; row < end; ++row) terms += std::fabs(local.at(row, m).value);
        for (std::size_t row = end; row-- > begin;) {
          sum += local.at(row, m).value;
          if (row % n == 0) want.set(row / n, m, {sum, relative * terms});
        }
      }
    }
    const std::size_t first = place_.sequence.batch * p_.tokens() + place_.sequence.first_token;
    judge("dg", load_rows(*stored_.find("dg"), first, in_.tokens, heads() * width, place_.head * width, width), want, nullptr,
          std::max<std::size_t>(1, v_.chunk / p_.num_householder));
  }

  const problem& p_;
  const stored_tensors& stored_;
  const plan_variant& v_;
  const backward_variant& b_;
  const head_place& place_;
  tallies_of& out_;
  arithmetic_errors errors_;
  double u_;
  head_inputs in_;
  balls dq_, dk_;
  std::size_t first_row_;
  balls d_state_;
  std::size_t chunk_ = 0, begin_ = 0, rows_ = 0;
  balls k_, q_, d_o_;
};

std::vector<head_place> every_head(const problem& p, std::size_t chunk) {
  std::vector<head_place> all;
  const auto sequences = p.sequences();
  std::size_t first_chunk = 0;
  for (std::size_t s = 0; s < sequences.size(); ++s) {
    if (s == 0 || sequences[s].batch != sequences[s - 1].batch) first_chunk = 0;
    for (std::size_t head = 0; head < p.value_heads(); ++head)
      all.push_back({sequences[s], s, head, first_chunk, sequences[s].tokens});
    first_chunk += (sequences[s].tokens * p.num_householder + chunk - 1) / chunk;
  }
  return all;
}

bool in_warps(tile_order order) { return order != tile_order::sequential && order != tile_order::pairwise; }

/// Whether both recompute the same. Choices of the forward pass that only make its stages do not matter, for these are read as
/// stored; of the order of a sum only its bound is used.
bool recompute_alike(const plan_variant& x, const plan_variant& y) {
  backward_variant a = *x.backward, b = *y.backward;
  if (in_warps(a.state_sum_order) == in_warps(b.state_sum_order)) a.state_sum_order = b.state_sum_order;
  return a == b && x.A.operand == y.A.operand && x.gate_shift == y.gate_shift && x.beta == y.beta &&
         x.l2norm_store == y.l2norm_store && x.l2norm_compute == y.l2norm_compute && x.l2norm_epsilon == y.l2norm_epsilon &&
         x.state.store == y.state.store;
}
/// One for each choice that changes what is recomputed.
std::vector<plan_variant> distinct(const std::vector<plan_variant>& all) {
  std::vector<plan_variant> out;
  for (const plan_variant& v : all) {
    if (std::none_of(out.begin(), out.end(), [&](const plan_variant& x) { return recompute_alike(x, v); })) out.push_back(v);
  }
  return out;
}

using best_of_stages = std::map<std::string, stage_measurement, std::less<>>;

/// Measures the stages of `empty` by each alternative, while they have elements beyond their bounds. `best` takes what leaves
/// fewer, and no more without a bound.
void measure_all(const problem& p, const result& r, const stored_tensors& stored, const std::vector<plan_variant>& alternatives,
                 const stage_roundings& roundings, const tallies_of& empty, unsigned threads, best_of_stages& best) {
  const std::vector<head_place> heads = every_head(p, *r.chunk_size);
  const std::size_t group = p.value_heads() / p.key_heads();  // heads that share q and k follow each other
  const arithmetic_errors errors(roundings);
  for (const plan_variant& v : alternatives) {
    tallies_of bad;
    for (const auto& [stage, unused] : empty) {
      if (const auto known = best.find(stage); known == best.end() || known->second.bad > 0) bad.emplace(stage, unused);
    }
    if (bad.empty()) return;
    std::vector<tallies_of> of_heads(heads.size(), bad);
    parallel_for(heads.size() / group, threads, [&](std::size_t i) {
      std::vector<std::unique_ptr<backward_head>> members;
      backward_group_rows shared(p, stored, v, errors, heads[i * group], of_heads[i * group]);
      for (std::size_t at = i * group; at < (i + 1) * group; ++at) {
        members.push_back(std::make_unique<backward_head>(p, stored, v, roundings, heads[at], of_heads[at]));
        members.back()->run();
        shared.add(members.back()->dq(), members.back()->dk(), members.back()->inputs());
      }
      shared.judge();
    });
    for (const auto& [stage, unused] : bad) {
      tally all = unused;
      for (const tallies_of& one : of_heads) all.merge(one.find(stage)->second);
      stage_measurement m = all.finish();
      m.name = stage;
      m.dtype = stored.find(stage)->dtype();
      m.rounding = v.name;
      const auto known = best.find(stage);
      if (known == best.end() || (m.bad < known->second.bad && m.unbounded <= known->second.unbounded))
        best.insert_or_assign(stage, std::move(m));
    }
  }
}

}  // namespace

const stage_measurement* backward_stage_report::find(std::string_view name) const {
  const auto found = std::find_if(stages.begin(), stages.end(), [&](const stage_measurement& m) { return m.name == name; });
  return found == stages.end() ? nullptr : &*found;
}

const stage_measurement* backward_stage_report::first_bad() const {
  const auto found = std::find_if(stages.begin(), stages.end(), [](const stage_measurement& m) { return m.bad > 0; });
  return found == stages.end() ? nullptr : &*found;
}

backward_stage_report measure_backward_stages(const plan& plan, const problem& p, const result& r, unsigned threads) {
  if (!r.chunk_size) throw domain_error("measure_backward_stages: the result states no chunk_size; write it to the metadata");
  const std::vector<plan_variant> alternatives = distinct(gradient_variants(plan, p, path_kind::chunk, *r.chunk_size));
  if (alternatives.empty())
    throw format_error(
        "plan " + plan.name +
        " has no [backward] section, so it does not say how gradients are computed; add one, or take another plan");
  stage_roundings roundings = roundings_of(plan, p, path_kind::chunk, *r.chunk_size);
  const stored_tensors stored(r);
  backward_stage_report report;
  tallies_of empty;
  for (const std::string_view stage : judged_backward_stages) {
    if (stored.find(stage) == nullptr || (stage == "dg" && !p.g)) continue;
    const std::string_view missing = missing_input(stage, stored, p), other = not_recomputed(stage, alternatives.front(), p);
    if (!missing.empty() || !other.empty()) {
      const std::string why = !other.empty() ? std::string(other) : std::string(missing) + " is not stored";
      report.unjudged.push_back({std::string(stage), why, true});
      continue;
    }
    empty.emplace(stage, tally(stored.find(stage)->element_format()));
  }
  best_of_stages best;
  measure_all(p, r, stored, alternatives, roundings, empty, threads, best);
  // As forward: decays may come from another copy of G than the stored one.
  if (p.g && std::any_of(best.begin(), best.end(), [](const auto& one) { return one.second.bad > 0; })) {
    roundings.other_gate_sums = true;
    measure_all(p, r, stored, alternatives, roundings, empty, threads, best);
  }
  for (const std::string_view stage : judged_backward_stages) {
    if (const auto found = best.find(stage); found != best.end()) report.stages.push_back(found->second);
  }
  return report;
}

}  // namespace deltaproof
