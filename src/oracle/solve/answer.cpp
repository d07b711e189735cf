// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT

#include "oracle/solve/answer.hpp"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "deltaproof/oracle/certify.hpp"
#include "oracle/lower_mpfr.hpp"
#include "oracle/mpfr_value.hpp"
#include "oracle/tiers/double_double_rows.hpp"
#include "oracle/tiers/fp64_rows.hpp"
#include "oracle/tiers/integer_rows.hpp"
#include "oracle/tiers/lower_double_double.hpp"
#include "oracle/token_passing.hpp"
#include "support/parallel.hpp"

namespace deltaproof {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

head_part gather(const std::vector<double>& values, const std::vector<double>& radius) { return {{}, values, {}, radius}; }

head_part gather(const std::vector<mpfr_value>& values, const std::vector<double>& radius) {
  head_part part{{}, std::vector<double>(values.size()), {}, std::vector<double>(values.size())};
  mpfr_value rest(values.empty() ? MPFR_PREC_MIN : mpfr_get_prec(values.front().get()));
  for (std::size_t i = 0; i < values.size(); ++i) split(part, i, values[i].get(), rest.get(), radius[i]);
  return part;
}

constexpr int full_bits = 1024;

/// The bits beyond `bits` that are missing until 64 of a number are known, or that it is no fp64 number but 0. An infinite
/// radius, beside a pole, does not say how many: some more are worth a try.
std::int64_t missing_bits(mpfr_srcptr x, const wide_bound& radius, int bits) {
  if (radius == wide_bound()) return 0;
  if (!radius.finite()) return bits < 4 * full_bits ? bits : 0;
  constexpr std::int64_t below_all = 1077, digits = 64;
  const std::int64_t to_vanish = std::max<std::int64_t>(0, radius.exponent() + below_all);
  if (mpfr_regular_p(x) == 0 || radius.exponent() >= mpfr_get_exp(x)) return to_vanish;
  return std::min(to_vanish, std::max<std::int64_t>(0, radius.exponent() + digits - mpfr_get_exp(x)));
}

/// The precision after `bits` that is asked where so many are missing; 0: none.
int wider(int bits, std::int64_t missing) {
  if (missing == 0) return 0;
  const std::int64_t next = std::min<std::int64_t>(widest_bits, (bits + missing + 32 + 63) / 64 * 64);
  return next > bits ? static_cast<int>(next) : 0;
}

/// The radius of each column, for each entry of a K x V state.
std::vector<double> spread(const std::vector<double>& column_radius, std::size_t entries) {
  std::vector<double> radius(entries);
  for (std::size_t i = 0; i < entries; ++i) radius[i] = column_radius[i % column_radius.size()];
  return radius;
}

/// MPFR numbers and their radii, of the state one for each column, and the bits that are missing where a question stays open.
struct finer_look {
  const std::vector<mpfr_value>& values;
  const std::vector<wide_bound>& radius;
  int bits;
  std::int64_t& missing;
};

/// The first `count` elements against the question: how many it leaves open. Fills `rounded` where it asks for that.
std::size_t left_open(const head_part& part, const question& q, const std::optional<format>& to, std::size_t count,
                      rounded_part& rounded, const finer_look* finer) {
  const double most = largest_of(part, count);
  if (to) rounded.reset(part.value.size(), q.parts);
  std::size_t open = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const wide_bound* radius = finer == nullptr ? nullptr : &finer->radius[i % finer->radius.size()];
    if (to && radius != nullptr) keep_certain(finer->values[i].get(), *radius, i, q, *to, rounded, rounded.left);
    const bool known = !to || keep_rounding(part, i, q, *to, rounded, rounded.left);
    if (known && small_enough(part.radius[i], q.relative_radius, most)) continue;
    ++open;
    if (radius != nullptr) finer->missing = std::max(finer->missing, missing_bits(finer->values[i].get(), *radius, finer->bits));
  }
  return open;
}

/// `missing`: the bits beyond those of the field that its open elements need before a digit of them is known.
template <class Field>
head_answer answer_with(const Field& field, typename Field::radius u, const lowered<typename Field::value>& in, const question& q,
                        std::string tier, std::int64_t& missing) {
  certifier<Field> engine(field, u, in);
  auto run = engine.run(q.range, q.stop);
  head_answer out;
  out.tier = std::move(tier);
  out.diverges_at = run.diverges_at;
  const std::size_t judged = run.diverges_at.value_or(in.scan.tokens) * in.scan.value_dim;
  const std::size_t entries = in.scan.key_dim * in.scan.value_dim;
  const auto finer = [&](const auto& values, const std::vector<wide_bound>& radius) -> std::optional<finer_look> {
    if constexpr (std::is_same_v<Field, mpfr_field>)
      return finer_look{values, radius, static_cast<int>(field.bits), missing};
    else
      return std::nullopt;
  };
  missing = 0;
  const auto finer_o = finer(run.o, run.o_bound), finer_state = finer(run.final_state, run.state_bound);
  out.o = gather(run.o, run.o_radius);
  std::size_t open = left_open(out.o, q, q.round_output, judged, out.rounded_o, finer_o ? &*finer_o : nullptr);
  out.o_decided[out.tier] = judged - open;
  if (!run.diverges_at && run.final_state.size() == entries) {
    out.state = gather(run.final_state, spread(run.state_radius, entries));
    const std::size_t open_entries =
        left_open(out.state, q, q.round_state, entries, out.rounded_state, finer_state ? &*finer_state : nullptr);
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
/// Components that show the sign of what is left of a number beside a tie.
constexpr std::size_t rounding_components = 3;

/// The least precision a question starts with: no tier that cannot know the parts it asks for, while there is one that can.
int first_bits(const question& q) {
  int first = q.min_bits;
  for (const int bits : {53, double_double_bits, 128, 256, 512, 1024}) {
    if (q.parts > 1 && bits <= q.max_bits && first <= 53 * static_cast<int>(q.parts)) first = std::max(first, bits);
  }
  return first;
}

constexpr int mpfr_tiers[] = {128, 256, 512, full_bits};

/// A head whose magnitudes may leave its formats or the vectorised tiers: entry by entry, all rows at one precision.
head_answer answer_whole(const problem& p, const question& q, std::size_t sequence_index, std::size_t value_head) {
  std::optional<head_answer> best;
  std::int64_t missing = 0;
  const int least = first_bits(q);
  if (least <= 53) {
    const auto in = lower(p, sequence_index, value_head);
    if (!in.underflowed || q.max_bits <= 53) {
      best = answer_with(fp64_field{}, fp64_field::unit_roundoff, in, q, "fp64", missing);
      if (in.underflowed) make_void(*best);
    }
  }
  const auto open = [&] { return !(best && best->answered) && !(q.stop && q.stop->load()); };
  const auto run = [&](int bits) {
    best = answer_with(mpfr_field{bits}, wide_bound::scaled(1, -bits), lower_mpfr(p, sequence_index, value_head, bits), q,
                       "mpfr-" + std::to_string(bits), missing);
  };
  for (const int bits : mpfr_tiers) {
    if (bits >= least && bits <= q.max_bits && open()) run(bits);
  }
  for (int bits = wider(full_bits, missing); bits != 0 && q.max_bits >= full_bits && open(); bits = wider(bits, missing))
    run(bits);
  head_answer out = best ? std::move(*best) : head_answer{};
  out.fallbacks["heads run whole"] = 1;
  out.run_whole = true;
  return out;
}

/// `one` for each part of `rows` rows, one to a thread, in whole vectors.
template <class Selection>
std::vector<Selection> in_panels(std::size_t rows, unsigned threads, const Selection& one) {
  constexpr std::size_t vectors = 16;
  const std::size_t groups = (rows + vectors - 1) / vectors,
                    panels = std::max<std::size_t>(1, std::min<std::size_t>(threads, groups));
  std::vector<Selection> out(panels, one);
  for (std::size_t i = 0; i < panels; ++i) {
    out[i].from = std::min(rows, groups * i / panels * vectors);
    out[i].count = std::min(rows, groups * (i + 1) / panels * vectors) - out[i].from;
  }
  return out;
}

using passed_tokens = std::function<void(std::size_t)>;

/// The open rows by a vectorised tier, block by block. Returns whether those that did not leave it stay within the range.
template <class Run>
bool run_vectors(row_by_row& rows, tiers::head_lowering& lowering, const question& q, unsigned threads,
                 const passed_tokens& passed, std::string tier, const Run& run, bool& some_left) {
  struct selection {
    std::size_t from = 0, count = 0;
    tiers::tier_rows table;
    tiers::carried_rows carried;
  };
  std::vector<selection> selections = in_panels(rows.open().size(), threads, selection{});
  const std::size_t T = rows.tokens(), block = rows.block_tokens();
  std::atomic<bool> within = true, left = false;
  rows.begin_pass();
  for (std::size_t first = 0; first == 0 || first < T; first += block) {
    const std::size_t count = std::min(block, T - first);
    const bool ends = first + count == T;
    const tiers::double_double_head& head = lowering.block(first, std::min(T - first, count + tiers::tokens_ahead));
    rows.begin_block(first, count);
    parallel_for(selections.size(), threads, [&](std::size_t i) {
      selection& own = selections[i];
      run(head, count, std::span(rows.open()).subspan(own.from, own.count), own.carried, own.table);
      if (q.stop && q.stop->load()) return;
      if (!rows.adopt(own.table, own.from)) within = false;
      rows.settle(own.from, own.count);
      if (ends) rows.settle_state(own.from, own.count);
      for (std::size_t r = 0; r < own.count; ++r) {
        if (own.table.left[r] != 0) left = true;
      }
    });
    if (q.stop && q.stop->load()) return within;
    if (!within) break;
    rows.end_block();
    passed(first + count);
  }
  some_left = left;
  if (within) rows.end_pass(std::move(tier), threads);
  return within;
}

/// Runs the open rows as integers, with `bits` or (0) exactly. Returns whether everything that was reached certainly stays
/// within the range.
bool run_integers(row_by_row& rows, const problem& p, const question& q, std::size_t sequence_index, std::size_t value_head,
                  int bits, unsigned threads, const passed_tokens& passed) {
  const std::size_t open = rows.open().size(), T = rows.tokens(), keys = p.key_dim();
  const std::vector<std::size_t> until = rows.until();
  const std::size_t last = std::min(T, until.empty() ? 0 : *std::max_element(until.begin(), until.end()));
  tiers::integer_request ask;
  ask.bits = bits;
  ask.columns = rows.open();
  ask.until = until;
  ask.range = q.range;
  ask.threads = threads;
  ask.stop = q.stop;
  // Rows are split by the threads that compute them, then joined: a component more is a table more for all.
  std::vector<head_part> o(open), state(open);
  for (std::size_t r = 0; r < open; ++r) {
    for (const auto& [part, count] :
         {std::pair{&o[r], std::min(chunk_tokens, last)}, std::pair{&state[r], until[r] > T ? keys : 0}}) {
      part->value.resize(count);
      part->radius.resize(count);
    }
  }
  rounded_part &rounded_o = rows.answer().rounded_o, &rounded_state = rows.answer().rounded_state;
  const bool rounds = q.relative_radius == infinity && (q.round_output || q.round_state);
  const std::size_t components = rounds ? rounding_components + std::max<std::size_t>(q.parts, 1) - 1 : most_components;
  std::vector<double> left_o(open), left_state(open);  // of the exact numbers of each row
  const auto take = [&](head_part& row, std::size_t at, mpfr_srcptr x, double radius, rounded_part& rounded,
                        const std::optional<format>& to, std::size_t element, double& left) {
    mpfr_value rest(mpfr_get_prec(x));
    split(row, at, x, rest.get(), radius, components);
    if (bits != 0 || !to) return;
    if (q.parts == 0)
      rounded.value[element] = round_nearest(x, *to);
    else
      left = std::max(left, keep_exact(x, element, rounded));
  };
  std::size_t begun = 0;
  ask.before = [&](std::size_t first, std::size_t count) {
    rows.begin_block(first, count);
    begun = first;
  };
  // Groups of rows, as few rows are not worth a thread.
  constexpr std::size_t group = 8;
  const auto in_groups = [&](const auto& f) {
    parallel_for((open + group - 1) / group, threads, [&](std::size_t i) { f(i * group, std::min(group, open - i * group)); });
  };
  const auto most_low = [](const std::vector<head_part>& parts) {
    std::size_t low = 0;
    for (const head_part& part : parts) low = std::max(low, part.low.size());
    return low;
  };
  ask.after = [&](std::size_t first, std::size_t count, const std::vector<std::size_t>& reached) {
    rows.reserve_low(most_low(o), 0);
    in_groups([&](std::size_t from, std::size_t some) {
      for (std::size_t r = from; r < from + some; ++r) {
        if (reached[r] > first) rows.join(r, first, o[r], std::min(reached[r] - first, count));
      }
      rows.settle(from, some);
    });
    rows.end_block();
    passed(first + count);
  };
  rows.begin_pass();
  const auto outcome = tiers::run_integers(
      p, sequence_index, value_head, ask,
      [&](std::size_t r, std::size_t at, mpfr_srcptr x, double radius) {
        take(o[r], at - begun, x, radius, rounded_o, q.round_output, rows.element(r, at), left_o[r]);
      },
      [&](std::size_t r, std::size_t at, mpfr_srcptr x, double radius) {
        take(state[r], at, x, radius, rounded_state, q.round_state, rows.state_element(r, at), left_state[r]);
      });
  if (q.stop && q.stop->load()) return false;
  for (const double left : left_o) rounded_o.left = std::max(rounded_o.left, left);
  for (const double left : left_state) rounded_state.left = std::max(rounded_state.left, left);
  rows.reserve_low(0, most_low(state));
  in_groups([&](std::size_t from, std::size_t some) {
    for (std::size_t r = from; r < from + some; ++r) {
      if (outcome.reached[r] <= T) continue;
      rows.join_state(r, state[r]);
      if (outcome.within) rows.note_bounded(r);
    }
    rows.settle_state(from, some);
  });
  const auto note = [&](const char* what, std::size_t count) {
    if (count > 0) rows.answer().fallbacks[what] += count;
  };
  note("low bits dropped in fixed point to make room for larger numbers", outcome.moved);
  if (bits != 0) note("keys and queries of more than 64 bits in fixed point", outcome.wide);
  note("keys and queries rounded in fixed point", outcome.rounded);
  // Where no factor is dyadic the exact tier has answered nothing and is not the one that was needed.
  const bool idle = bits == 0 && !rows.answer().tier.empty() &&
                    std::all_of(outcome.reached.begin(), outcome.reached.end(), [](std::size_t tokens) { return tokens == 0; });
  rows.end_pass(idle ? rows.answer().tier : bits == 0 ? "exact" : "fixed-" + std::to_string(bits), threads);
  return outcome.within;
}

/// Runs the open rows entry by entry with `bits` bits: numbers with exponents of their own, whose radius has one too, for what
/// has left the windows and grids of the other tiers. Keeps what is nearer than before. Returns the bits that are still missing.
std::int64_t run_floating(row_by_row& rows, const problem& p, const question& q, std::size_t sequence_index,
                          std::size_t value_head, int bits, unsigned threads, const passed_tokens& passed) {
  const std::size_t open = rows.open().size(), T = rows.tokens(), keys = p.key_dim(), block = rows.block_tokens();
  const auto in = lower_mpfr(p, sequence_index, value_head, bits, rows.open());
  certifier<mpfr_field> engine(mpfr_field{bits}, wide_bound::scaled(1, -bits), in);
  const auto run = engine.run({}, q.stop);
  if (q.stop && q.stop->load()) return 0;
  mpfr_value rest(bits);
  std::int64_t missing = 0;
  /// Elements [first, first + count) of one row of a T x open or keys x open table.
  const auto part_of = [&](std::size_t r, std::size_t first, std::size_t count, const std::vector<mpfr_value>& values,
                           const std::vector<double>& radius, const std::vector<wide_bound>& wide,
                           const std::optional<format>& to, rounded_part& rounded, const auto& element) {
    head_part part{{}, std::vector<double>(count), {}, std::vector<double>(count)};
    for (std::size_t i = 0; i < count; ++i) {
      const std::size_t at = (first + i) * open + r, of = at % radius.size();
      split(part, i, values[at].get(), rest.get(), radius[of]);
      if (to) keep_certain(values[at].get(), wide[of], element(r, first + i), q, *to, rounded, rounded.left);
      missing = std::max(missing, missing_bits(values[at].get(), wide[of], bits));
    }
    return part;
  };
  rows.begin_pass();
  rounded_part &rounded_o = rows.answer().rounded_o, &rounded_state = rows.answer().rounded_state;
  for (std::size_t first = 0; first == 0 || first < T; first += block) {
    const std::size_t count = std::min(block, T - first);
    rows.begin_block(first, count);
    for (std::size_t r = 0; r < open && count > 0; ++r) {
      const head_part part = part_of(r, first, count, run.o, run.o_radius, run.o_bound, q.round_output, rounded_o,
                                     [&](std::size_t row, std::size_t t) { return rows.element(row, t); });
      rows.reserve_low(part.low.size(), 0);
      rows.join(r, first, part, count, true);
    }
    rows.settle(0, open);
    rows.end_block();
    passed(first + count);
  }
  for (std::size_t r = 0; r < open; ++r) {
    const head_part part = part_of(r, 0, keys, run.final_state, run.state_radius, run.state_bound, q.round_state, rounded_state,
                                   [&](std::size_t row, std::size_t j) { return rows.state_element(row, j); });
    rows.reserve_low(0, part.low.size());
    rows.join_state(r, part, true);
  }
  rows.settle_state(0, open);
  rows.answer().fallbacks["columns run in MPFR"] += open;
  rows.end_pass("mpfr-" + std::to_string(bits), threads);
  return missing;
}

}  // namespace

head_answer answer(const problem& p, const question& asked, std::size_t sequence_index, std::size_t value_head, unsigned threads,
                   const head_stream& stream) {
  question q = asked;
  // A gate that was made of a raw one is known to fp64: more bits would say nothing more.
  if (p.raw) {
    q.max_bits = std::min(q.max_bits, double_double_bits);
    q.min_bits = std::min(q.min_bits, double_double_bits);
    q.always_exact = false;
  }
  const int most = std::max(q.max_bits, 53), least = first_bits(q);
  const bool in_fp64 = least <= 53, in_pairs = least <= double_double_bits && most >= double_double_bits;
  const bool in_integers = most >= fixed_tiers[0];
  const bool ranged = q.range.output < infinity || q.range.state < infinity;
  const auto stopped = [&] { return q.stop && q.stop->load(); };
  const sequence_range range = sequence_at(p, sequence_index);
  const std::size_t tokens = range.tokens;
  token_passing passing(p, range);
  const passed_tokens passed = [&](std::size_t count) {
    passing.through(count);
    if (stream.passed) stream.passed(count);
  };
  row_by_row rows(q, tokens, p.key_dim(), p.value_dim(), threads, stream.block_tokens, stream.sink);
  bool tried = false;
  if (in_fp64 || in_pairs) {
    tiers::head_lowering lowering(p, sequence_index, value_head, threads, rows.block_tokens());
    if (lowering.underflowed() && !in_integers) return answer_whole(p, q, sequence_index, value_head);
    bool left = false;
    if (!lowering.underflowed() && in_fp64) {
      tried = true;
      const bool within = run_vectors(
          rows, lowering, q, threads, passed, "fp64",
          [&](const auto& head, std::size_t count, auto columns, auto& carried, auto& table) {
            tiers::run_fp64(head.high, count, lowering.largest_value(), columns, carried, table, q.stop);
          },
          left);
      if (stopped()) return {};
      if (!within || (left && (ranged || !in_integers))) return answer_whole(p, q, sequence_index, value_head);
    }
    if (!lowering.underflowed() && in_pairs && !rows.open().empty()) {
      tried = true;
      std::atomic<std::size_t> again = 0;
      rows.reserve_low(1, 1);
      const bool within = run_vectors(
          rows, lowering, q, threads, passed, "double-double",
          [&](const auto& head, std::size_t count, auto columns, auto& carried, auto& table) {
            again += tiers::run_double_double(head, count, columns, carried, table, q.stop);
          },
          left);
      if (stopped()) return {};
      if (!within || (left && !rows.all_bounded() && (ranged || !in_integers)))
        return answer_whole(p, q, sequence_index, value_head);
      if (again > 0)
        rows.answer().fallbacks["blocks run again in double-double because their numbers outgrew the expected size"] = again;
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
    const bool within = run_integers(rows, p, q, sequence_index, value_head, bits, threads, passed);
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
  const bool beyond = most >= full_bits && rows.some_vague();
  if (exact_left && !rows.open().empty() && !stopped()) run(0);
  if (stopped()) return {};
  if (ranged && !rows.all_bounded() && in_integers) return answer_whole(p, q, sequence_index, value_head);
  for (int bits = least > 256 ? full_bits : 256; beyond && bits != 0 && !rows.open().empty();) {
    const std::int64_t missing = run_floating(rows, p, q, sequence_index, value_head, bits, threads, passed);
    if (stopped()) return {};
    bits = bits < full_bits ? full_bits : wider(bits, missing);
  }
  return std::move(rows.answer());
}

}  // namespace deltaproof
