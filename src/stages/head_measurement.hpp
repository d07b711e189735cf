// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// One head of one sequence, chunk by chunk. head_measurement.cpp has the stages inside a chunk (g_cumsum_log2, A, Ai, w, u,
// Aqk), head_state.cpp those that carry the state (h, v_new, o, final_state).
#pragma once

#include "stages/head_stages.hpp"

namespace deltaproof::stages_detail {

/// Consecutive rows of k and the queries that read among them.
struct reading {
  std::size_t begin = 0;
  std::size_t rows = 0;
  balls q, k;
  std::vector<std::size_t> row_of;  ///< for each query, the row after which it reads
  std::vector<std::size_t> limits;  ///< row_of + 1: how many rows it reads
};

class head_measurement {
 public:
  head_measurement(const problem& p, const stage_inputs& stored, std::size_t chunk_size, const stage_roundings& roundings,
                   const head_place& place, const alternatives& tried, tallies& out)
      : p_(p),
        stored_(stored),
        c_(chunk_size),
        r_(roundings),
        place_(place),
        tried_(tried),
        out_(out),
        errors_(roundings),
        in_(load_head(p, place.sequence, place.head, roundings)),
        first_row_(place.sequence.batch * p.steps() + place.sequence.first_token * p.num_householder) {
    if (stored_.has_state()) {
      states_.assign(r_.state.size(), initial_state());
    } else {
      states_.assign(1, unknown(keys(), values()));
    }
    residuals_.resize(states_.size());
    span_h_.resize(output_states(stored_, r_));
    span_v_.resize(span_h_.size());
    span_state_.resize(span_h_.size());
  }

  void run();
  /// A, Aqk and Ai of the first chunks.
  void run_alternatives(std::size_t chunks);

 private:
  [[nodiscard]] std::size_t keys() const { return p_.key_dim(); }
  [[nodiscard]] std::size_t values() const { return p_.value_dim(); }
  [[nodiscard]] std::size_t heads() const { return p_.value_heads(); }

  /// Of a gate per channel q k^T is scaled before it is rounded, stored or not.
  [[nodiscard]] bool weights_are_scaled() const { return stored_.aqk != nullptr || p_.gate_per_channel(); }
  /// What the sums are still to be multiplied by.
  [[nodiscard]] double scale_of_sums() const { return r_.rows.scale == read_scale::o ? scale_as_read(p_, r_.rows) : 1; }

  [[nodiscard]] balls initial_state() const;

  /// What cannot be recomputed: NaN.
  [[nodiscard]] static balls unknown(std::size_t rows, std::size_t cols);

  /// A stage whose inputs are not stored: only what is not finite is judged.
  void judge_unknown(std::string_view stage, const balls& got);

  /// This head's rows of the chunk in a stage of `width` elements a row; the first `used` of them.
  [[nodiscard]] balls rows_of(const tensor& t, std::size_t width, std::size_t used) const;

  /// The same, the entries above the diagonal (with it, if strict) left unread.
  [[nodiscard]] balls lower_of(const tensor& t, bool strict) const;

  [[nodiscard]] stage_place at(std::size_t row, std::size_t element = 0) const;

  void judge_row(std::string_view stage, std::size_t alternative, const stage_place& where, const balls& got, std::size_t got_row,
                 const balls& want, std::size_t want_row, std::size_t count);

  [[nodiscard]] chunk_decays begin_chunk(std::size_t begin, std::size_t rows);
  void run_chunk(std::size_t begin, std::size_t rows);

  /// Queries read after the last step of their token.
  [[nodiscard]] reading read(std::size_t begin, std::size_t rows) const;

  void judge_cumsum(const chunk_decays& decays, const balls& got);

  [[nodiscard]] balls rounded_step(const std::optional<format>& to) const;
  [[nodiscard]] balls key_gram(chunk_decays& decays, const gram_rounding& how) const;

  /// scale q k^T . decays with the scale rounded to the elementwise format, or without it.
  [[nodiscard]] balls query_gram(const reading& at, chunk_decays& decays, const gram_rounding& how, bool scaled) const;

  void judge_gram(chunk_decays& decays);

  void judge_inverse(chunk_decays& decays);
  /// As alternative `number`. `kept`: the format of overlaps that are not stored.
  void judge_inverse_by(const inverse_rounding& how, std::size_t number, const balls& got, balls overlaps,
                        const std::optional<format>& kept);
  /// Tokens that are judged, in rows.
  [[nodiscard]] std::size_t limit() const {
    return place_.judged_tokens >= in_.tokens ? in_.rows : place_.judged_tokens * p_.num_householder;
  }

  void judge_scaled(const chunk_decays& decays);

  void judge_states(std::string_view stage, const tensor& t, std::size_t first);

  /// The state is known both from the rebuild and from the stored copy, which is within an ulp of it however it was rounded.
  /// Where the two exclude each other the stage has been found bad, and what follows is judged from what is stored.
  static void settle(balls& state, const balls& stored, const format& f);

  void run_states(chunk_decays& decays);

  /// u - w S: K products, their additions and the difference, K + 1 roundings.
  [[nodiscard]] balls new_values(const balls& u, const balls& w, const balls& state, const state_rounding& how) const;

  /// v_new as it is stored, where the file has none.
  [[nodiscard]] static balls copy_of_values(const balls& fresh, const state_rounding& how);

  void update(balls& state, const chunk_decays& decays, const balls& fresh, const balls* v_new, const state_rounding& how) const;

  /// The state of an alternative on its way through the caches of the plan, if this chunk is followed by one.
  void pass_caches(std::size_t alternative);

  /// What its stored copy says of a value: it is within an ulp, however it was rounded.
  [[nodiscard]] static balls near(balls stored, const format& f);
  /// The same, rounded to what reads it; nothing: as stored.
  [[nodiscard]] static balls as_read(const balls& stored, const format& f, const std::optional<format>& by);
  /// What every alternative of the state allows.
  [[nodiscard]] balls any_state() const;
  /// Whether the stored h is the state itself, in all its bits, under this unit roundoff of its accumulation.
  [[nodiscard]] bool holds_state(double accumulate) const;

  /// What o reads in this chunk under an alternative of the state: h, the state itself (where it is read), v_new.
  void add_output(std::size_t state, const balls& h, const balls* computed, const balls& v_new);

  /// The read-out spans `output_span` chunks: it waits for the last of them.
  void finish_output(chunk_decays& decays);

  [[nodiscard]] balls rows_of_output(const reading& span) const;
  [[nodiscard]] stage_place at_output(const reading& span, std::size_t query) const;

  /// Without decays those of the whole span, from the given gates.
  void judge_output(chunk_decays* decays);

  [[nodiscard]] static balls read_rows_of(const balls& x, const std::vector<std::size_t>& rows);

  [[nodiscard]] balls output(const reading& span, const chunk_decays& decays, const balls& weights, std::size_t state,
                             const output_rounding& how) const;

  void skip_from(std::size_t begin);

  const problem& p_;
  const stage_inputs& stored_;
  std::size_t c_;
  const stage_roundings& r_;
  const head_place& place_;
  const alternatives& tried_;
  tallies& out_;
  arithmetic_errors errors_;
  head_inputs in_;
  std::size_t first_row_;
  std::vector<balls> states_;
  std::vector<std::array<double, 2>>
      residuals_;  ///< of each: what error feedback carries at most, in the cache and between calls
  std::vector<double> zeros_;
  std::size_t chunk_ = 0;
  // Of the current chunk:
  std::size_t begin_ = 0;
  std::size_t rows_ = 0;
  balls k_, v_, step_;
  std::vector<std::size_t> limits_;  // i + 1
  // Of the chunks whose read-out is not judged yet:
  struct {
    std::size_t begin = 0;
    std::size_t rows = 0;
  } span_;
  std::vector<balls> span_h_, span_v_;  // one for each of output_states
  std::vector<balls> span_state_;       // likewise; empty where o reads h alone
};

}  // namespace deltaproof::stages_detail
