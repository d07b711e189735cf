// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT

#include "oracle/answer.hpp"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "deltaproof/oracle/certify.hpp"
#include "oracle/lower_mpfr.hpp"
#include "oracle/tiers/double_double_rows.hpp"
#include "oracle/tiers/fp64_rows.hpp"
#include "oracle/tiers/lower_double_double.hpp"

namespace deltaproof {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

head_part gather(std::vector<double> values, std::vector<double> radius) {
  return {{}, std::move(values), {}, std::move(radius)};
}

head_part gather(const std::vector<mpfr_value>& values, const std::vector<double>& radius) {
  head_part part{{}, std::vector<double>(values.size()), {}, std::vector<double>(values.size())};
  mpfr_value rest(values.empty() ? MPFR_PREC_MIN : mpfr_get_prec(values.front().get()));
  for (std::size_t i = 0; i < values.size(); ++i) split(part, i, values[i].get(), rest.get(), radius[i]);
  return part;
}

/// The radius of each column, for each entry of a K x V state.
std::vector<double> spread(const std::vector<double>& column_radius, std::size_t entries) {
  std::vector<double> radius(entries);
  for (std::size_t i = 0; i < entries; ++i) radius[i] = column_radius[i % column_radius.size()];
  return radius;
}

/// The first `count` elements against the question: how many it leaves open. Fills `rounded` where it asks for that.
std::size_t left_open(const head_part& part, const question& q, const std::optional<format>& to, std::size_t count,
                      rounded_part& rounded) {
  const double most = largest_of(part, count);
  if (to) rounded.reset(part.value.size(), q.parts);
  std::size_t open = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const bool known = !to || keep_rounding(part, i, q, *to, rounded, rounded.left);
    open += known && small_enough(part.radius[i], q.relative_radius, most) ? 0 : 1;
  }
  return open;
}

template <class Field>
head_answer answer_with(const Field& field, double u, const lowered<typename Field::value>& in, const question& q,
                        std::string tier) {
  certifier<Field> engine(field, u, in);
  auto run = engine.run(q.range, q.stop);
  head_answer out;
  out.tier = std::move(tier);
  out.diverges_at = run.diverges_at;
  const std::size_t judged = run.diverges_at.value_or(in.scan.tokens) * in.scan.value_dim;
  const std::size_t entries = in.scan.key_dim * in.scan.value_dim;
  out.o = gather(std::move(run.o), std::move(run.o_radius));
  std::size_t open = left_open(out.o, q, q.round_output, judged, out.rounded_o);
  out.o_decided[out.tier] = judged - open;
  if (!run.diverges_at && run.final_state.size() == entries) {
    out.state = gather(std::move(run.final_state), spread(run.state_radius, entries));
    const std::size_t open_entries = left_open(out.state, q, q.round_state, entries, out.rounded_state);
    out.state_decided[out.tier] = entries - open_entries;
    open += open_entries;
  }
  out.answered = !run.divergence_undecided && open == 0;
  return out;
}

/// Nothing is known of such a head.
void make_void(head_answer& head) {
  std::fill(head.o.radius.begin(), head.o.radius.end(), infinity);
  std::fill(head.state.radius.begin(), head.state.radius.end(), infinity);
  head.answered = false;
}

constexpr int double_double_bits = 106;
constexpr int fixed_tiers[] = {128, 256, 512, 1024};

/// The least precision a question starts with: no tier that cannot know the parts it asks for, while there is one that can.
int first_bits(const question& q) {
  int first = q.min_bits;
  for (const int bits : {53, double_double_bits, 128, 256, 512, 1024}) {
    if (q.parts > 1 && bits <= q.max_bits && first <= 53 * static_cast<int>(q.parts)) first = std::max(first, bits);
  }
  return first;
}

constexpr int mpfr_tiers[] = {128, 256, 512, 1024};

/// A head whose magnitudes may leave its formats or the vectorised tiers: entry by entry, all rows at one precision.
head_answer answer_whole(const problem& p, const question& q, std::size_t sequence_index, std::size_t value_head) {
  std::optional<head_answer> best;
  const int least = first_bits(q);
  if (least <= 53) {
    const auto in = lower(p, sequence_index, value_head);
    if (!in.underflowed || q.max_bits <= 53) {
      best = answer_with(fp64_field{}, fp64_field::unit_roundoff, in, q, "fp64");
      if (in.underflowed) make_void(*best);
    }
  }
  for (const int bits : mpfr_tiers) {
    if (best && best->answered) break;
    if (bits < least || bits > q.max_bits) continue;
    if (q.stop && q.stop->load()) break;
    best = answer_with(mpfr_field{bits}, std::ldexp(1.0, -bits), lower_mpfr(p, sequence_index, value_head, bits), q,
                       "mpfr-" + std::to_string(bits));
  }
  head_answer out = best ? std::move(*best) : head_answer{};
  out.fallbacks["heads run whole"] = 1;
  return out;
}

/// f(from, count, panel) for parts of `rows` rows, one to a thread, in whole vectors.
template <class F>
void in_panels(std::size_t rows, unsigned threads, const F& f) {
  constexpr std::size_t vectors = 16;
  const std::size_t groups = (rows + vectors - 1) / vectors,
                    panels = std::max<std::size_t>(1, std::min<std::size_t>(threads, groups));
  parallel_for(panels, threads, [&](std::size_t i) {
    const std::size_t from = std::min(rows, groups * i / panels * vectors),
                      to = std::min(rows, groups * (i + 1) / panels * vectors);
    f(from, to - from, i);
  });
}

/// The open rows by a vectorised tier. Returns whether those that did not leave it stay within the range.
template <class Run>
bool run_vectors(row_by_row& rows, const question& q, unsigned threads, std::string tier, const Run& run, bool& some_left) {
  std::atomic<bool> within = true, left = false;
  in_panels(rows.open().size(), threads, [&](std::size_t from, std::size_t count, std::size_t) {
    tiers::tier_rows table;
    run(std::span(rows.open()).subspan(from, count), table);
    if (q.stop && q.stop->load()) return;
    if (!rows.adopt(table, from)) within = false;
    for (std::size_t r = 0; r < count; ++r) {
      if (table.left[r] != 0) left = true;
    }
  });
  some_left = left;
  if (within && !(q.stop && q.stop->load())) rows.settle(std::move(tier), threads);
  return within;
}

}  // namespace

head_answer answer(const problem& p, const question& q, std::size_t sequence_index, std::size_t value_head, unsigned threads) {
  const int most = std::max(q.max_bits, 53), least = first_bits(q);
  const bool in_fp64 = least <= 53, in_pairs = least <= double_double_bits && most >= double_double_bits;
  const bool in_integers = most >= fixed_tiers[0];
  const bool ranged = q.range.output < infinity || q.range.state < infinity;
  const auto stopped = [&] { return q.stop && q.stop->load(); };
  const std::size_t tokens = p.sequences()[sequence_index].tokens;
  row_by_row rows(q, tokens, p.key_dim(), p.value_dim(), threads);
  bool tried = false;
  if (in_fp64 || in_pairs) {
    auto head = tiers::lower_double_double(p, sequence_index, value_head, threads);
    if (head.underflowed && !in_integers) return answer_whole(p, q, sequence_index, value_head);
    bool left = false;
    if (!head.underflowed && in_fp64) {
      tried = true;
      const bool within = run_vectors(
          rows, q, threads, "fp64", [&](auto columns, auto& table) { tiers::run_fp64(head.high, columns, table, q.stop); }, left);
      if (stopped()) return {};
      if (!within || (left && (ranged || !in_integers))) return answer_whole(p, q, sequence_index, value_head);
    }
    if (!head.underflowed && in_pairs && !rows.open().empty()) {
      tried = true;
      std::atomic<std::size_t> again = 0;
      rows.reserve_low();
      const bool within = run_vectors(
          rows, q, threads, "double-double",
          [&](auto columns, auto& table) { again += tiers::run_double_double(head, columns, table, q.stop); }, left);
      if (stopped()) return {};
      if (!within || (left && !rows.all_bounded() && (ranged || !in_integers)))
        return answer_whole(p, q, sequence_index, value_head);
      if (again > 0) rows.answer().fallbacks["double-double: blocks run again with a wider window"] = again;
    }
  }
  // Ties are decided by nothing but exact numbers: where those cost no more than what would be tried in vain, they come
  // first. A radius alone is better asked of the next precision. ("The exact tier", Order.)
  std::vector<int> fixed;
  for (const int bits : fixed_tiers) {
    if (bits >= least && bits <= most) fixed.push_back(bits);
  }
  bool exact_left = in_integers || q.always_exact;
  const auto exact_first = [&] {
    if (fixed.empty()) return true;
    const double size = rows.largest() > 0 ? std::log2(rows.largest()) + 2 : 0;
    double vain = tiers::fixed_cost(rows.until(), fixed.front());
    if (tried && (q.round_output || q.round_state) && q.relative_radius == infinity) {
      vain = 0;
      for (const int bits : fixed) vain += tiers::fixed_cost(rows.until(), bits);
    }
    return tiers::exact_cost(p, sequence_index, value_head, rows.until(), size, vain) <= vain;
  };
  const auto run = [&](int bits) {
    const bool within = rows.run_integers(p, sequence_index, value_head, bits, threads);
    return within || rows.all_bounded() || !ranged;
  };
  if (exact_left && !rows.open().empty() && exact_first()) {
    exact_left = false;
    if (!run(0)) return stopped() ? head_answer{} : answer_whole(p, q, sequence_index, value_head);
  }
  for (const int bits : fixed) {
    if (rows.open().empty()) break;
    if (stopped()) return {};
    if (!run(bits)) return stopped() ? head_answer{} : answer_whole(p, q, sequence_index, value_head);
  }
  if (exact_left && !rows.open().empty() && !stopped()) run(0);
  if (stopped()) return {};
  if (ranged && !rows.all_bounded() && in_integers) return answer_whole(p, q, sequence_index, value_head);
  return std::move(rows.answer());
}

}  // namespace deltaproof
