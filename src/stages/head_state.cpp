// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
#include <algorithm>
#include <limits>
#include <optional>

#include "stages/head_measurement.hpp"
#include "support/widest_vectors.hpp"

namespace deltaproof::stages_detail {

void head_measurement::judge_states(std::string_view stage, const tensor& t, std::size_t first) {
  const balls got = load_rows(t, first, keys(), values(), 0, values());
  for (std::size_t a = 0; a < states_.size(); ++a) {
    for (std::size_t c = 0; c < keys(); ++c) {
      stage_place here = at(c);
      if (stage == "final_state") here.chunk = 0;
      judge_row(stage, a, here, got, c, states_[a], c, values());
    }
  }
}

void head_measurement::settle(balls& state, const balls& stored, const format& f) {
  const half_ulps half(f);
  deltaproof::detail::in_widest_vectors([=, value = state.value.data(), radius = state.radii(), copies = stored.value.data(),
                                         count = state.value.size()]() __attribute__((always_inline)) {
    for (std::size_t i = 0; i < count; ++i) {
      const double copy = copies[i], ulp = 2 * half.at(copy), least = copy - ulp, most = copy + ulp;
      const double low = value[i] - radius[i], high = value[i] + radius[i];
      const bool is_finite = std::fabs(copy) < std::numeric_limits<double>::infinity();
      const bool moves = is_finite & !((low >= least) & (high <= most));
      double from = low < least ? least : low, to = most < high ? most : high;
      const bool apart = !(from <= to);
      from = apart ? least : from;
      to = apart ? most : to;
      const double centre = from + (to - from) / 2, size = std::fabs(from) < std::fabs(to) ? std::fabs(to) : std::fabs(from);
      const double around = (to - from) / 2 + 4 * own_roundoff * size;
      value[i] = moves ? centre : value[i];
      radius[i] = moves ? around : radius[i];
    }
  });
}

bool head_measurement::holds_state(double accumulate) const {
  return stored_.h != nullptr && unit_roundoff(stored_.h->element_format()) <= accumulate;
}

balls head_measurement::near(balls stored, const format& f) {
  stored.radius.assign(stored.value.size(), 0);
  for (std::size_t i = 0; i < stored.value.size(); ++i) stored.radius[i] = 2 * half_ulp(stored.value[i], f);
  return stored;
}

balls head_measurement::as_read(const balls& stored, const format& f, const std::optional<format>& by) {
  return by ? narrow(near(stored, f), narrowing{*by, false}) : stored;
}

balls head_measurement::any_state() const {
  balls hull = states_.front();
  if (hull.exact()) hull.radius.assign(hull.value.size(), 0);
  for (std::size_t a = 1; a < states_.size(); ++a) {
    for (std::size_t i = 0; i < hull.value.size(); ++i) {
      const ball other = states_[a].at(i / values(), i % values());
      // About the first centre: what both allow, and a little more. Nothing is known where one of them is not.
      const double reach = (std::fabs(other.value - hull.value[i]) + other.radius) * (1 + 4 * own_roundoff);
      if (!(reach <= hull.radius[i])) hull.radius[i] = std::isnan(reach) ? std::numeric_limits<double>::infinity() : reach;
    }
  }
  return hull;
}

void head_measurement::run_states(chunk_decays& decays) {
  std::optional<balls> h;
  std::optional<balls> v_new;
  if (stored_.h != nullptr) {
    const std::size_t chunks = stored_.h->dim(1);
    const std::size_t first = ((place_.sequence.batch * chunks + place_.first_chunk + chunk_) * heads() + place_.head) * keys();
    judge_states("h", *stored_.h, first);
    h = load_rows(*stored_.h, first, keys(), values(), 0, values());
  }
  if (stored_.v_new != nullptr) v_new = rows_of(*stored_.v_new, values(), values());
  const bool o_reads_computed = std::any_of(r_.output.begin(), r_.output.end(),
                                            [](const output_rounding& how) { return how.reads == state_source::computed; });
  if (!stored_.has_state()) {
    if (v_new) judge_unknown("v_new", *v_new);
    if (h && v_new) {
      const balls itself = near(*h, stored_.h->element_format());
      add_output(0, *h, o_reads_computed ? &itself : nullptr, *v_new);
      finish_output(decays);
      return;
    }
    if (stored_.o == nullptr) return;
    const reading here = read(begin_, rows_);
    const balls got = rows_of_output(here);
    const balls want = unknown(1, values());
    for (std::size_t i = 0; i < got.rows; ++i) judge_row("o", 0, at_output(here, i), got, i, want, 0, values());
    return;
  }
  const balls u = rows_of(*stored_.u, values(), values());
  const balls w = rows_of(*stored_.w, keys(), keys());
  for (std::size_t a = 0; a < states_.size() && h; ++a) settle(states_[a], *h, stored_.h->element_format());
  // o that reads a stored h says nothing about which alternative the state itself is.
  std::optional<balls> of_all;
  if (o_reads_computed && span_h_.size() == 1) of_all = any_state();
  for (std::size_t a = 0; a < states_.size(); ++a) {
    const state_rounding& how = r_.state[a];
    const balls copy = h ? *h : narrow(states_[a], how.copy.value_or(how.operand));
    const bool computed = how.reads == state_source::computed && !holds_state(how.accumulate);
    const balls fresh =
        new_values(as_read(u, stored_.u->element_format(), how.reads_u), as_read(w, stored_.w->element_format(), how.reads_w),
                   narrow(computed ? states_[a] : copy, how.operand), how);
    if (v_new) {
      for (std::size_t i = 0; i < rows_; ++i) judge_row("v_new", a, at(i), *v_new, i, fresh, i, values());
    }
    if (a < span_h_.size()) {
      const balls itself = o_reads_computed ? holds_state(how.accumulate) ? *h : of_all ? *of_all : states_[a] : balls();
      add_output(a, copy, o_reads_computed ? &itself : nullptr, v_new ? *v_new : copy_of_values(fresh, how));
    }
    update(states_[a], decays, fresh, v_new ? &*v_new : nullptr, how);
    pass_caches(a);
  }
  finish_output(decays);
}

balls head_measurement::copy_of_values(const balls& fresh, const state_rounding& how) {
  return narrow(fresh, how.value_copy ? narrowing{*how.value_copy, false} : how.operand);
}

balls head_measurement::new_values(const balls& u, const balls& w, const balls& state, const state_rounding& how) const {
  const product sum = multiply(narrow(w, how.operand), state);
  balls fresh = u;
  const sum_bound of_sum(errors_, keys() + 1, std::max(how.accumulate, errors_.elementwise));
  deltaproof::detail::in_widest_vectors([=, value = fresh.value.data(), radius = fresh.radii(), read = sum.value.data(),
                                         terms = sum.terms.data(), upper = sum.upper.data(), count = fresh.value.size()]()
                                            __attribute__((always_inline)) {
                                              for (std::size_t i = 0; i < count; ++i) {
                                                const double size = std::fabs(value[i]);
                                                radius[i] = of_sum.of(size + terms[i], (size + radius[i]) + upper[i]);
                                                value[i] -= read[i];
                                              }
                                            });
  return fresh;
}

void head_measurement::update(balls& state, const chunk_decays& decays, const balls& fresh, const balls* v_new,
                              const state_rounding& how) const {
  const narrowing to = how.update_operand.value_or(how.operand), of_key = how.key_operand.value_or(to);
  const std::size_t last = rows_ - 1;
  const std::size_t channels = decays.channels();
  const bool on_keys = how.update == update_kind::key || how.update == update_kind::stored_key;
  const bool from_stored = how.update == update_kind::stored_value || how.update == update_kind::stored_key;
  std::optional<balls> rebuilt;
  if (from_stored && v_new == nullptr) rebuilt = copy_of_values(fresh, how);
  const balls& values_written = !from_stored ? fresh : v_new != nullptr ? *v_new : *rebuilt;
  const bool same_rounding = v_new != nullptr && stored_.v_new->element_format() == to.to && !to.toward_zero;
  balls right = values_written, left = k_;
  std::vector<bool> plain(rows_, true);
  std::vector<ball> e(channels);
  for (std::size_t i = 0; i < rows_ && channels > 0; ++i) {
    decays.between(last, i, std::span(e));
    decay_row(on_keys ? left : right, i, e, errors_);
    plain[i] = on_keys || (e[0].value == 1 && e[0].radius == 0);
  }
  right = narrow(std::move(right), to);
  left = narrow(std::move(left), of_key);
  for (std::size_t i = 0; i < rows_ && same_rounding; ++i) {
    for (std::size_t j = 0; j < values() && plain[i]; ++j) {
      // The stored v_new is the outcome of this very rounding, if it is one that could have come out.
      const ball x = right.at(i, j), stored = v_new->at(i, j);
      if (x.radius > 0 && std::fabs(stored.value - x.value) <= x.radius) right.set(i, j, stored);
    }
  }
  const product sum = multiply(left.transposed(), right);
  // The decay of the state, one rounding a row and one for joining the two parts.
  const sum_bound of_sum(errors_, rows_ + 2, std::max(how.accumulate, errors_.elementwise));
  double* const radii = state.radii();
  for (std::size_t c = 0; c < keys(); ++c) {
    const ball of_state = channels == 0 ? ball{1, 0} : decays.since_start(last, channels == 1 ? 0 : c);
    const std::size_t at = c * values();
    deltaproof::detail::in_widest_vectors([=, value = &state.value[at], radius = radii + at, written = &sum.value[at],
                                           terms = &sum.terms[at], upper = &sum.upper[at],
                                           count = values()]() __attribute__((always_inline)) {
      for (std::size_t j = 0; j < count; ++j) {
        const double size = std::fabs(value[j]);
        radius[j] = of_sum.of(size * of_state.value + terms[j], (size + radius[j]) * of_state.upper() + upper[j]);
        value[j] = value[j] * of_state.value + written[j];
      }
    });
  }
  if (how.between_chunks) state = narrow(std::move(state), narrowing{*how.between_chunks, false});
}

void head_measurement::add_output(std::size_t state, const balls& h, const balls* computed, const balls& v_new) {
  if (span_.rows == 0) {
    span_h_[state] = h;
    if (computed != nullptr) span_state_[state] = *computed;
    span_v_[state] = v_new;
  } else {
    span_v_[state] = span_v_[state].followed_by(v_new);
  }
}

void head_measurement::finish_output(chunk_decays& decays) {
  if (stored_.o == nullptr) return;
  if (span_.rows == 0) span_.begin = begin_;
  span_.rows += rows_;
  if ((chunk_ + 1) % r_.output_span == 0) judge_output(r_.output_span == 1 ? &decays : nullptr);
}

balls head_measurement::rows_of_output(const reading& span) const {
  const std::size_t first = place_.sequence.batch * p_.tokens() + place_.sequence.first_token + span.begin / p_.num_householder;
  return load_rows(*stored_.o, first, span.q.rows, heads() * values(), place_.head * values(), values());
}

stage_place head_measurement::at_output(const reading& span, std::size_t query) const {
  const std::size_t row = span.begin + span.row_of[query];
  stage_place here = at(row % c_);
  here.chunk = row / c_;
  return here;
}

void head_measurement::judge_output(chunk_decays* decays) {
  const reading span = read(span_.begin, span_.rows);
  span_.rows = 0;
  std::optional<chunk_decays> of_span;
  if (decays == nullptr) decays = &of_span.emplace(in_.log_gates.slice(span.begin, span.rows), nullptr, errors_);
  const balls got = rows_of_output(span);
  const std::size_t grams = gram_choices(stored_.aqk != nullptr, r_);
  for (std::size_t g = 0; g < grams; ++g) {
    const balls weights = stored_.aqk != nullptr ? read_rows_of(lower_of(*stored_.aqk, false), span.row_of)
                                                 : query_gram(span, *decays, r_.gram[g], weights_are_scaled());
    for (std::size_t s = 0; s < span_h_.size(); ++s) {
      for (std::size_t a = 0; a < r_.output.size(); ++a) {
        const balls want = output(span, *decays, weights, s, r_.output[a]);
        const std::size_t alternative = (s * grams + g) * r_.output.size() + a;
        for (std::size_t i = 0; i < got.rows; ++i) judge_row("o", alternative, at_output(span, i), got, i, want, i, values());
      }
    }
  }
}

balls head_measurement::read_rows_of(const balls& x, const std::vector<std::size_t>& rows) {
  balls out(rows.size(), x.cols);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    for (std::size_t j = 0; j < x.cols; ++j) out.set(i, j, x.at(rows[i], j));
  }
  return out;
}

// K + rows products and additions in one or two accumulators, the gate, the scale, the scale's own rounding, the join. Where
// q S is rounded on its own, what it was before that is known within the bound of its K products.
balls head_measurement::output(const reading& span, const chunk_decays& decays, const balls& weights, std::size_t state,
                               const output_rounding& how) const {
  const std::size_t channels = decays.channels();
  const narrowing of_query = how.query_operand.value_or(how.operand);
  balls q = span.q;
  if (how.query_gated && channels > 0) {
    std::vector<ball> e(channels);
    for (std::size_t i = 0; i < q.rows; ++i) {
      decays.since_start(span.row_of[i], std::span(e));
      decay_row(q, i, e, errors_);
    }
  }
  const balls& of_state = how.reads == state_source::computed ? span_state_[state] : span_h_[state];
  product past = multiply(narrow(q, of_query), narrow(of_state, how.state_operand.value_or(how.operand)));
  const product inside =
      multiply(narrow(weights, how.operand), narrow(span_v_[state], how.value_operand.value_or(how.operand)), span.limits);
  const double scale = scale_of_sums(), outside_scale = std::fabs(scale);
  const double inside_scale = weights_are_scaled() ? 1 : outside_scale;
  const double sign = !weights_are_scaled() && scale < 0 ? -1 : 1;
  const double u = std::max(how.accumulate, errors_.elementwise);
  if (how.read_store) {
    for (std::size_t k = 0; k < past.value.size(); ++k) {
      const ball x =
          narrow(ball{past.value[k], errors_.bound(past.terms[k], past.upper[k], 1, 1, keys(), u)}, {*how.read_store, false});
      past.value[k] = x.value;
      past.terms[k] = std::fabs(x.value);
      past.upper[k] = x.upper();
    }
  }
  const sum_bound of_sum(errors_, keys() + span.rows + 4, u);
  balls want(q.rows, values());
  want.radius.assign(want.value.size(), 0);
  for (std::size_t i = 0; i < q.rows; ++i) {
    const ball e = !how.query_gated && channels == 1 ? decays.since_start(span.row_of[i], 0) : ball{1, 0};
    for (std::size_t k = i * values(); k < (i + 1) * values(); ++k) {
      want.value[k] = scale * e.value * past.value[k] + sign * inside_scale * inside.value[k];
      want.radius[k] = of_sum.of(outside_scale * e.value * past.terms[k] + inside_scale * inside.terms[k],
                                 outside_scale * e.upper() * past.upper[k] + inside_scale * inside.upper[k]);
    }
  }
  return want;
}

}  // namespace deltaproof::stages_detail
