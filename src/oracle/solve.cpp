// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT

#include <mpfr.h>
#if __has_include(<sys/mman.h>)
#include <sys/mman.h>
#endif

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <map>
#include <mutex>
#include <numeric>
#include <optional>
#include <span>
#include <thread>

#include "deltaproof/number/rational.hpp"
#include "deltaproof/number/rounding.hpp"
#include "deltaproof/oracle/reference.hpp"
#include "oracle/lower_mpfr.hpp"
#include "oracle/mpfr_value.hpp"
#include "oracle/parallel.hpp"
#include "oracle/tiers/double_double_rows.hpp"
#include "oracle/tiers/fp64_rows.hpp"
#include "oracle/tiers/integer_rows.hpp"
#include "oracle/tiers/integer_steps.hpp"
#include "oracle/tiers/lower_double_double.hpp"

namespace deltaproof {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

/// One tensor of one head, elements in the order o: T x V, state: K x V; no shape.
using head_part = reference_tensor;
using counts = std::map<std::string, std::size_t>;

/// What elements round to: the first parts, the others where sums are asked for; NaN from the first on that is open.
struct rounded_part {
  std::vector<double> value;
  std::vector<std::vector<double>> low;
  double left = 0;  // bounds |exact - sum| where a sum is known as a whole

  void reset(std::size_t elements, std::size_t parts) {
    const double nan = std::numeric_limits<double>::quiet_NaN();
    value.assign(elements, nan);
    low.assign(parts > 1 ? parts - 1 : 0, std::vector<double>(elements, nan));
  }
  [[nodiscard]] bool open(std::size_t i) const { return std::isnan(low.empty() ? value[i] : low.back()[i]); }
};

struct head_answer {
  head_part o;
  head_part state;
  rounded_part rounded_o;
  rounded_part rounded_state;
  std::optional<std::size_t> diverges_at;
  std::string tier;
  counts o_decided, state_decided, fallbacks;
  bool answered = false;
};

/// The most components a value is split into: 1024 bits fill 20 doubles.
constexpr std::size_t most_components = 20;

/// |x| > radius / 64, and not 0.
bool exceeds(mpfr_srcptr x, double radius) { return mpfr_zero_p(x) == 0 && std::fabs(mpfr_get_d(x, MPFR_RNDA)) > radius / 64; }

/// Element i as an unevaluated sum of at most 1 + `most` doubles; what is left out is small beside the radius, or joins it.
void split(head_part& part, std::size_t i, mpfr_srcptr x, mpfr_ptr rest, double radius, std::size_t most = most_components) {
  part.value[i] = mpfr_get_d(x, MPFR_RNDN);
  for (auto& low : part.low) low[i] = 0;
  if (!std::isfinite(part.value[i])) {
    part.radius[i] = infinity;
    return;
  }
  mpfr_sub_d(rest, x, part.value[i], MPFR_RNDN);  // exact: the leading bits of x are gone
  for (std::size_t c = 0; c < most && exceeds(rest, radius); ++c) {
    const double low = mpfr_get_d(rest, MPFR_RNDN);
    if (low == 0) break;
    if (c == part.low.size()) part.low.emplace_back(part.value.size(), 0.0);
    part.low[c][i] = low;
    mpfr_sub_d(rest, rest, low, MPFR_RNDN);
  }
  const double left = std::fabs(mpfr_get_d(rest, MPFR_RNDA));
  part.radius[i] = left == 0 ? radius : detail::finite_or_infinite((radius + left) * detail::radius_slack);
}

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

/// Nearest-even rounding to a format known at run time.
double round_nearest(const detail::unrounded& x, const format& to) {
  nearest_even mode;
  if (to == bf16) return detail::round_unrounded<bf16>(x, mode);
  if (to == fp16) return detail::round_unrounded<fp16>(x, mode);
  if (to == fp32) return detail::round_unrounded<fp32>(x, mode);
  if (to == fp64) return detail::round_unrounded<fp64>(x, mode);
  throw format_error("solve: outputs are rounded to bf16, fp16, fp32 or fp64, not to " + std::string(name_of(to)));
}

/// An exact number, rounded once; a zero is +0.
double round_nearest(mpfr_srcptr x, const format& to) {
  if (mpfr_zero_p(x) != 0) return 0;
  tiers::integer m;
  const mpfr_exp_t exponent = mpfr_get_z_2exp(m.get(), x);
  detail::unrounded wide = detail::leading_bits(m.get());
  wide.exponent += static_cast<int>(std::clamp<mpfr_exp_t>(exponent, -1000000, 1000000));
  const double rounded = round_nearest(wide, to);
  return rounded == 0 ? 0.0 : rounded;
}

/// An exact number as the parts of a sum; returns what they leave out.
double keep_exact(mpfr_srcptr x, std::size_t i, rounded_part& to) {
  mpfr_value rest(mpfr_get_prec(x));
  mpfr_set(rest.get(), x, MPFR_RNDN);
  to.value[i] = round_nearest(rest.get(), fp64);
  const bool finite = std::isfinite(to.value[i]);
  if (finite) mpfr_sub_d(rest.get(), rest.get(), to.value[i], MPFR_RNDN);  // exact, as in split
  for (auto& low : to.low) {
    low[i] = finite ? round_nearest(rest.get(), fp64) : 0.0;
    if (finite) mpfr_sub_d(rest.get(), rest.get(), low[i], MPFR_RNDN);
  }
  return finite ? std::fabs(mpfr_get_d(rest.get(), MPFR_RNDA)) : infinity;
}

/// Keeps what element i certainly rounds to where that was open, and in `left` what its sum leaves out. Whether it is known.
bool keep_rounding(const head_part& part, std::size_t i, const question& q, const format& to, rounded_part& rounded, double& left) {
  if (!rounded.open(i)) return true;
  if (q.parts == 0) {
    const auto value = decided_rounding(part, i, to);
    if (value) rounded.value[i] = *value;
    return value.has_value();
  }
  std::array<double, most_parts> room;
  const std::span<double> parts(room.data(), rounded.low.size() + 1);
  const double beyond = decided_parts(part, i, parts);
  // A part that a coarser tier knew is the same.
  if (!std::isnan(parts[0])) rounded.value[i] = parts[0];
  for (std::size_t c = 1; c < parts.size() && !std::isnan(parts[c]); ++c) rounded.low[c - 1][i] = parts[c];
  if (rounded.open(i)) return false;
  left = std::max(left, beyond);
  return true;
}

/// Whether a radius answers the part of a question that is about radii; `most` is the largest magnitude of its tensor.
/// Infinite magnitudes cannot be compared; an infinite radius answers only the question that asks for none.
bool small_enough(double radius, double relative, double most) {
  return relative == infinity ? radius < infinity : radius <= relative * most || radius == 0;
}

double largest_of(const head_part& part, std::size_t count) {
  double most = 0;
  for (std::size_t i = 0; i < count; ++i) most = std::max(most, std::fabs(part.value[i]));
  return most;
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

/// n copies of x. A large answer is fresh memory, whose first touch costs a fault for each page: large ones where the system
/// has them.
void fill_fresh(std::vector<double>& to, std::size_t n, double x) {
  to.reserve(n);
#ifdef MADV_HUGEPAGE
  constexpr std::uintptr_t large = std::uintptr_t{1} << 21;
  const auto first = (reinterpret_cast<std::uintptr_t>(to.data()) + large - 1) / large * large;
  const auto last = reinterpret_cast<std::uintptr_t>(to.data() + n) / large * large;
  if (first < last) madvise(reinterpret_cast<void*>(first), last - first, MADV_HUGEPAGE);  // advice: its failure changes nothing
#endif
  to.assign(n, x);
}

/// Nothing is known yet of n elements. Memory is touched for the first time here: values and radii by a thread each.
void fill_both(reference_tensor& t, std::size_t n, unsigned threads) {
  constexpr std::size_t few = 65536;  // a thread costs more than they do
  parallel_for(2, n < few ? 1 : threads, [&](std::size_t i) {
    if (i == 0) fill_fresh(t.value, n, std::numeric_limits<double>::quiet_NaN());
    if (i == 1) fill_fresh(t.radius, n, infinity);
  });
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

/// The rows of one head that a question leaves open, answered tier after tier; a row that is decided stays as it is.
class row_by_row {
 public:
  row_by_row(const question& q, std::size_t tokens, std::size_t keys, std::size_t cols, unsigned threads)
      : q_{q}, tokens_{tokens}, keys_{keys}, cols_{cols} {
    open_.resize(cols_);
    std::iota(open_.begin(), open_.end(), std::size_t{0});
    until_.assign(cols_, tokens_ + 1);
    bounded_.assign(cols_, 0);
    out_.state.value.assign(keys_ * cols_, std::numeric_limits<double>::quiet_NaN());
    out_.state.radius.assign(keys_ * cols_, infinity);
    fill_both(out_.o, tokens_ * cols_, threads);
    if (q.round_output) out_.rounded_o.reset(out_.o.value.size(), q.parts);
    if (q.round_state) out_.rounded_state.reset(out_.state.value.size(), q.parts);
    open_o_ = tokens_ * cols_;
    open_state_ = keys_ * cols_;
  }

  [[nodiscard]] const std::vector<std::size_t>& open() const { return open_; }
  /// By open row: the tokens that must still be read; more than T where the final state is open.
  [[nodiscard]] const std::vector<std::size_t>& until() const { return until_; }
  [[nodiscard]] bool all_bounded() const {
    return std::all_of(bounded_.begin(), bounded_.end(), [](std::uint8_t b) { return b != 0; });
  }
  [[nodiscard]] head_answer& answer() { return out_; }
  /// Magnitude of what is known, for estimates.
  [[nodiscard]] double largest() const {
    return std::max(largest_of(out_.o, out_.o.value.size()), largest_of(out_.state, out_.state.value.size()));
  }

  /// Rows [from, from + rows.rows) of the open ones are replaced by those of a table; rows that left their tier stay as
  /// they were. Returns whether every row that did not leave certainly stays within the range. Token by token: what is
  /// written then lies together, and each page and line is touched once.
  bool adopt(const tiers::tier_rows& rows, std::size_t from) {
    std::vector<panel> panels((rows.rows + 7) / 8);
    for (std::size_t r = 0; r < rows.rows; ++r) {
      panel& p = panels[r / 8];
      if (rows.left[r] != 0) continue;
      p.lane[p.count] = r % 8;
      p.column[p.count++] = open_[from + r];
    }
    for (panel& p : panels) {
      p.whole = p.count == 8;
      for (std::size_t n = 1; n < p.count; ++n) p.whole = p.whole && p.column[n] == p.column[0] + n;
    }
    double radius[8];
    for (std::size_t t = 0; t < tokens_; ++t) {
      for (std::size_t n = 0; n < panels.size(); ++n) {
        const std::size_t at = tiers::tier_rows::panel(t, 8 * n, tokens_);
        rows.radii(t, 8 * n, radius);
        panels[n].put(out_.o, t * cols_, &rows.o[at], rows.o_low.empty() ? nullptr : &rows.o_low[at], radius, q_.range.output);
      }
    }
    for (std::size_t j = 0; j < keys_; ++j) {
      for (std::size_t n = 0; n < panels.size(); ++n) {
        const std::size_t at = tiers::tier_rows::panel(j, 8 * n, keys_);
        const double* low = rows.final_state_low.empty() ? nullptr : &rows.final_state_low[at];
        std::copy_n(&rows.state_radius[8 * n], 8, radius);
        panels[n].put(out_.state, j * cols_, &rows.final_state[at], low, radius, std::nullopt);
      }
    }
    bool all_inside = true;
    for (std::size_t n = 0; n < panels.size(); ++n) {
      for (std::size_t i = 0; i < panels[n].count; ++i) {
        const bool inside = panels[n].outside[i] == 0 && rows.largest_norm[8 * n + panels[n].lane[i]] <= q_.range.state;
        if (inside) bounded_[panels[n].column[i]] = 1;
        all_inside = all_inside && inside;
      }
    }
    return all_inside;
  }
  /// Room for low parts, made before several threads adopt.
  void reserve_low() {
    for (head_part* part : {&out_.o, &out_.state}) {
      if (part->low.empty()) part->low.emplace_back(part->value.size(), 0.0);
    }
  }

  /// Keeps the rows open that do not answer the question yet.
  void settle(std::string tier, unsigned threads) {
    const double most_o = q_.relative_radius < infinity ? largest_of(out_.o, out_.o.value.size()) : 0;
    const double most_state = q_.relative_radius < infinity ? largest_of(out_.state, out_.state.value.size()) : 0;
    struct remains {
      std::size_t o = 0, state = 0, until = 0;
    };
    std::vector<remains> left(open_.size());
    // Where any radius is an answer, a token is looked at as a whole first.
    const bool all_by_radius = q_.relative_radius == infinity && !q_.round_output && open_.size() == cols_;
    // By tokens: what a thread reads and writes lies together. A few parts for each.
    const std::size_t parts = threads == 1 ? 1 : std::max<std::size_t>(1, std::min<std::size_t>(tokens_, 4 * threads));
    std::mutex lock;
    parallel_for(parts, threads, [&](std::size_t part) {
      std::vector<remains> own(open_.size());
      double left_o = 0, left_state = 0;
      for (std::size_t t = tokens_ * part / parts; t < tokens_ * (part + 1) / parts; ++t) {
        if (all_by_radius && finite(out_.o, t)) continue;
        for (std::size_t r = 0; r < open_.size(); ++r) {
          if (answers(out_.o, most_o, t * cols_ + open_[r], q_.round_output, out_.rounded_o, left_o)) continue;
          ++own[r].o;
          own[r].until = t + 1;
        }
      }
      for (std::size_t j = keys_ * part / parts; j < keys_ * (part + 1) / parts; ++j) {
        for (std::size_t r = 0; r < open_.size(); ++r) {
          if (!answers(out_.state, most_state, j * cols_ + open_[r], q_.round_state, out_.rounded_state, left_state))
            ++own[r].state;
        }
      }
      const std::lock_guard guard(lock);
      out_.rounded_o.left = std::max(out_.rounded_o.left, left_o);
      out_.rounded_state.left = std::max(out_.rounded_state.left, left_state);
      for (std::size_t r = 0; r < open_.size(); ++r) {
        left[r].o += own[r].o;
        left[r].state += own[r].state;
        left[r].until = std::max(left[r].until, left[r].state > 0 ? tokens_ + 1 : own[r].until);
      }
    });
    std::vector<std::size_t> open, until;
    std::size_t open_o = 0, open_state = 0;
    for (std::size_t r = 0; r < open_.size(); ++r) {
      open_o += left[r].o;
      open_state += left[r].state;
      if (left[r].until == 0) continue;
      open.push_back(open_[r]);
      until.push_back(left[r].until);
    }
    if (open_o_ > open_o) out_.o_decided[tier] += open_o_ - open_o;
    if (open_state_ > open_state) out_.state_decided[tier] += open_state_ - open_state;
    open_o_ = open_o;
    open_state_ = open_state;
    out_.tier = std::move(tier);
    open_ = std::move(open);
    until_ = std::move(until);
    out_.answered = open_.empty();
  }

  /// Runs the open rows as integers, with `bits` or (0) exactly. Returns whether everything that was reached certainly
  /// stays within the range.
  bool run_integers(const problem& p, std::size_t sequence_index, std::size_t value_head, int bits, unsigned threads) {
    tiers::integer_request ask;
    ask.bits = bits;
    ask.columns = open_;
    ask.until = until_;
    ask.range = q_.range;
    ask.threads = threads;
    ask.stop = q_.stop;
    // Rows are split by the threads that compute them, then joined: a component more is a table more for all.
    std::vector<head_part> o(open_.size()), state(open_.size());
    for (std::size_t r = 0; r < open_.size(); ++r) {
      for (const auto& [part, count] :
           {std::pair{&o[r], std::min(until_[r], tokens_)}, std::pair{&state[r], until_[r] > tokens_ ? keys_ : 0}}) {
        part->value.resize(count);
        part->radius.resize(count);
      }
    }
    const bool rounds = q_.relative_radius == infinity && (q_.round_output || q_.round_state);
    const std::size_t components = rounds ? rounding_components + std::max<std::size_t>(q_.parts, 1) - 1 : most_components;
    std::vector<double> left_o(open_.size()), left_state(open_.size());  // of the exact numbers of each row
    const auto into = [&](std::vector<head_part>& rows, rounded_part& rounded, const std::optional<format>& to,
                          std::vector<double>& left) {
      return [&, components, bits](std::size_t r, std::size_t at, mpfr_srcptr x, double radius) {
        mpfr_value rest(mpfr_get_prec(x));
        split(rows[r], at, x, rest.get(), radius, components);
        if (bits != 0 || !to) return;
        const std::size_t i = at * cols_ + open_[r];
        if (q_.parts == 0) rounded.value[i] = round_nearest(x, *to);
        else left[r] = std::max(left[r], keep_exact(x, i, rounded));
      };
    };
    const auto outcome =
        tiers::run_integers(p, sequence_index, value_head, ask, into(o, out_.rounded_o, q_.round_output, left_o),
                            into(state, out_.rounded_state, q_.round_state, left_state));
    if (q_.stop && q_.stop->load()) return false;
    for (const double left : left_o) out_.rounded_o.left = std::max(out_.rounded_o.left, left);
    for (const double left : left_state) out_.rounded_state.left = std::max(out_.rounded_state.left, left);
    for (std::size_t r = 0; r < open_.size(); ++r) {
      join(out_.o, o[r], open_[r], std::min(outcome.reached[r], tokens_));
      if (outcome.reached[r] > tokens_) {
        join(out_.state, state[r], open_[r], keys_);
        if (outcome.within) bounded_[open_[r]] = 1;
      }
    }
    const auto note = [&](const char* what, std::size_t count) {
      if (count > 0) out_.fallbacks[what] += count;
    };
    note("fixed point: grids moved up", outcome.moved);
    if (bits != 0) note("fixed point: keys and queries of several limbs", outcome.wide);
    note("fixed point: keys and queries rounded", outcome.rounded);
    settle(bits == 0 ? "exact" : "fixed-" + std::to_string(bits), threads);
    return outcome.within;
  }

 private:
  /// The rows of one panel of a table that did not leave their tier, and the columns they are.
  struct panel {
    std::size_t count = 0;
    bool whole = false;  // eight neighbouring columns
    std::array<std::size_t, 8> lane{}, column{};
    std::array<std::uint64_t, 8> outside{};  // not 0: a magnitude may pass the limit

    void put(head_part& to, std::size_t at, const double* value, const double* low, const double* radius, std::optional<double> limit) {
      const auto each = [&](std::size_t n, std::size_t from, std::size_t i) {
        to.value[i] = value[from];
        to.radius[i] = radius[from];
        if (limit) outside[n] |= std::fabs(value[from]) + radius[from] <= *limit ? 0 : 1;
      };
      if (whole) {
        for (std::size_t n = 0; n < 8; ++n) each(n, n, at + column[0] + n);
      } else {
        for (std::size_t n = 0; n < count; ++n) each(n, lane[n], at + column[n]);
      }
      for (std::size_t n = 0; n < count && low != nullptr; ++n) to.low[0][at + column[n]] = low[lane[n]];
    }
  };

  /// The first `count` elements of one row replace those of a column.
  void join(head_part& to, const head_part& from, std::size_t column, std::size_t count) {
    while (to.low.size() < from.low.size()) to.low.emplace_back(to.value.size(), 0.0);
    for (std::size_t i = 0; i < count; ++i) {
      to.value[i * cols_ + column] = from.value[i];
      to.radius[i * cols_ + column] = from.radius[i];
      for (std::size_t c = 0; c < to.low.size(); ++c) to.low[c][i * cols_ + column] = c < from.low.size() ? from.low[c][i] : 0.0;
    }
  }

  /// Whether every radius of token t is finite.
  [[nodiscard]] bool finite(const head_part& part, std::size_t t) const {
    const double* radius = part.radius.data() + t * cols_;
    unsigned infinite = 0;
    for (std::size_t i = 0; i < cols_; ++i) infinite += radius[i] < infinity ? 0 : 1;
    return infinite == 0;
  }

  /// Whether element i answers the question; keeps its rounding. What the exact tier rounded stays.
  [[nodiscard]] bool answers(const head_part& part, double most, std::size_t i, const std::optional<format>& to,
                             rounded_part& rounded, double& left) const {
    const bool known = !to || keep_rounding(part, i, q_, *to, rounded, left);
    return known && small_enough(part.radius[i], q_.relative_radius, most);
  }

  const question& q_;
  std::size_t tokens_;
  std::size_t keys_;
  std::size_t cols_;
  std::vector<std::size_t> open_;
  std::vector<std::size_t> until_;
  std::vector<std::uint8_t> bounded_;  // no magnitude of this row leaves the range
  std::size_t open_o_ = 0;
  std::size_t open_state_ = 0;
  head_answer out_;
};

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

/// What a number rounds to if it lies well inside the format's normal range and no tie is near; nothing where that takes a
/// closer look. The interval looked at contains the one that is meant, so the answer is the same.
std::optional<double> rounded_far_from_a_tie(const reference_tensor& t, std::size_t i, const format& to) {
  constexpr std::uint64_t fraction = (std::uint64_t{1} << 52) - 1;
  const double value = t.value[i];
  const auto bits = std::bit_cast<std::uint64_t>(value);
  const int exponent = static_cast<int>(bits >> 52 & 0x7ff) - 1023;
  if (to == tf32 || to.storage_bits == 8) return std::nullopt;
  if (exponent <= to.emin + 1 || exponent >= to.emax - 1 || exponent < -900) return std::nullopt;
  double off = t.radius[i];
  for (const auto& low : t.low) off += std::fabs(low[i]);
  off *= 1 + 0x1p-40;
  if (to.precision == 53) {
    // Half a unit, where the value is no power of two, below which units are smaller.
    const double half = std::bit_cast<double>(bits & ~fraction & ~(std::uint64_t{1} << 63)) * 0x1p-53;
    return (bits & fraction) != 0 && off < half ? std::optional(value) : std::nullopt;
  }
  off += std::fabs(value) * 0x1p-51;
  const int dropped = 53 - to.precision;
  const auto nearest = [dropped](double x) {
    auto b = std::bit_cast<std::uint64_t>(x);
    b += (std::uint64_t{1} << (dropped - 1)) - 1 + (b >> dropped & 1);
    return b & ~((std::uint64_t{1} << dropped) - 1);
  };
  const auto below = nearest(value - off), above = nearest(value + off);
  return below == above ? std::optional(std::bit_cast<double>(below)) : std::nullopt;
}

void reserve(reference_tensor& t, std::vector<std::size_t> shape, unsigned threads) {
  const std::size_t n = element_count(shape);
  t.shape = std::move(shape);
  fill_both(t, n, threads);
}

void place(reference_tensor& t, std::size_t at, const head_part& part, std::size_t from, std::size_t count) {
  std::copy_n(part.value.begin() + static_cast<std::ptrdiff_t>(from), count, t.value.begin() + static_cast<std::ptrdiff_t>(at));
  std::copy_n(part.radius.begin() + static_cast<std::ptrdiff_t>(from), count, t.radius.begin() + static_cast<std::ptrdiff_t>(at));
}

void place_low(reference_tensor& t, std::size_t at, const head_part& part, std::size_t from, std::size_t count) {
  for (std::size_t c = 0; c < part.low.size(); ++c) {
    if (c == t.low.size()) t.low.emplace_back(t.value.size(), 0.0);
    std::copy_n(part.low[c].begin() + static_cast<std::ptrdiff_t>(from), count,
                t.low[c].begin() + static_cast<std::ptrdiff_t>(at));
  }
}

}  // namespace

std::optional<double> decided_rounding(const reference_tensor& t, std::size_t i, const format& to) {
  const double value = t.value[i], radius = t.radius[i];
  if (!std::isfinite(value) || !(radius < infinity)) return std::nullopt;
  if (const auto far = rounded_far_from_a_tie(t, i, to)) return far;
  // An end of the interval: the last component moved by the radius and then outward by one step of its own last place,
  // the others added with rounding to odd, so that nothing is lost to the one rounding at the end.
  const auto end = [&](double direction) {
    double sum = 0;
    bool moved = radius == 0;
    for (std::size_t c = t.low.size(); c-- > 0;) {
      if (!moved && t.low[c][i] == 0) continue;
      sum = moved ? detail::odd_sum(t.low[c][i], sum) : std::nextafter(t.low[c][i] + direction * radius, direction * infinity);
      moved = true;
    }
    if (!moved) sum = direction * std::nextafter(radius, infinity);
    return round_nearest(detail::wide_sum(value, sum), to);
  };
  const double below = end(-1), above = end(1);
  if (below != above) return std::nullopt;
  return below == 0 ? 0.0 : below;
}

double decided_parts(const reference_tensor& t, std::size_t i, std::span<double> parts) {
  std::fill(parts.begin(), parts.end(), std::numeric_limits<double>::quiet_NaN());
  const double radius = t.radius[i];
  if (!std::isfinite(t.value[i]) || !(radius < infinity)) return infinity;
  const auto component = [&](std::size_t c) { return c == 0 ? t.value[i] : c <= t.low.size() ? t.low[c - 1][i] : 0.0; };
  const std::size_t components = t.low.size() + 1;
  /// All that lies beyond the first c components, radius included.
  const auto beyond = [&](std::size_t c) {
    double sum = 0;
    for (std::size_t d = components; d-- > c;) sum += std::fabs(component(d));
    return sum == 0 ? radius : (sum + radius) * (1 + 0x1p-40);
  };
  // A component is a part where the rest stays below half a unit of its last place.
  std::size_t c = 0;
  for (; c < parts.size(); ++c) {
    constexpr std::uint64_t fraction = (std::uint64_t{1} << 52) - 1;
    const double head = component(c), rest = beyond(c + 1);
    const auto bits = std::bit_cast<std::uint64_t>(head);
    const bool exact = rest == 0;
    const double half = std::bit_cast<double>(bits & ~fraction & ~(std::uint64_t{1} << 63)) * 0x1p-53;
    if (!exact && !((bits & fraction) != 0 && std::fabs(head) > 0x1p-900 && rest < half)) break;
    parts[c] = head == 0 ? 0.0 : head;
  }
  if (c == parts.size()) return beyond(c);
  // Else both ends of what is left are followed exactly: every sum of doubles fits 2200 bits.
  const double width = beyond(c);
  if (radius > 0x1p-50 * width && radius > 0x1p-1070) return infinity;
  constexpr mpfr_prec_t whole = 2200;
  mpfr_value below(whole), above(whole);
  for (std::size_t d = components; d-- > c;) mpfr_add_d(below.get(), below.get(), component(d), MPFR_RNDN);
  mpfr_add_d(above.get(), below.get(), radius, MPFR_RNDN);
  mpfr_sub_d(below.get(), below.get(), radius, MPFR_RNDN);
  for (; c < parts.size(); ++c) {
    const double part = mpfr_get_d(below.get(), MPFR_RNDN);
    if (part != mpfr_get_d(above.get(), MPFR_RNDN) || std::isinf(part)) return infinity;
    parts[c] = part == 0 ? 0.0 : part;
    mpfr_sub_d(below.get(), below.get(), part, MPFR_RNDN);
    mpfr_sub_d(above.get(), above.get(), part, MPFR_RNDN);
  }
  return std::max(std::fabs(mpfr_get_d(below.get(), MPFR_RNDA)), std::fabs(mpfr_get_d(above.get(), MPFR_RNDA)));
}

namespace {

unsigned workers_of(const question& q) { return q.threads == 0 ? std::max(1U, std::thread::hardware_concurrency()) : q.threads; }

void require_parts(const question& q) {
  if (q.parts == 0) return;
  if (q.parts > most_parts) {
    throw domain_error("solve: sums of " + std::to_string(q.parts) + " doubles; at most " + std::to_string(most_parts) +
                       " are known at 1024 bits");
  }
  for (const auto& to : {q.round_output, q.round_state}) {
    if (to && !(*to == fp64)) throw format_error("solve: sums are of fp64 numbers, not of " + std::string(name_of(*to)));
  }
}

/// Answers every head; `place` is called with each and the threads it may use by the thread that has it, as soon as it has it,
/// `sink` by one at a time.
template <class Place, class Sink>
reference answer_heads(const problem& p, const question& q, const Place& place, const Sink& sink) {
  const std::size_t heads = p.value_heads(), jobs = p.sequences().size() * heads;
  const unsigned workers = workers_of(q);
  require_parts(q);
  reference out;
  std::mutex lock;
  std::size_t done = 0;
  const auto add = [](counts& to, const counts& from) {
    for (const auto& [name, count] : from) to[name] += count;
  };
  const auto run = [&](std::size_t job, unsigned threads) {
    const std::size_t n = job / heads, h = job % heads;
    if (q.stop && q.stop->load()) return;
    const head_answer head = answer(p, q, n, h, threads);
    if (q.stop && q.stop->load()) return;
    const rounded_part &o = head.rounded_o, &state = head.rounded_state;
    const solved_head solved{n, h, head.o, head.state, o.value, state.value, o.low, state.low, o.left, state.left};
    place(solved, threads);
    const std::lock_guard guard(lock);
    if (q.stop && q.stop->load()) return;
    sink(solved);
    if (head.diverges_at) out.divergences.push_back({n, h, *head.diverges_at});
    ++out.tiers[head.tier];
    add(out.o_decided, head.o_decided);
    add(out.state_decided, head.state_decided);
    add(out.fallbacks, head.fallbacks);
    if (!head.answered) ++out.unanswered;
    ++done;
    if (q.progress) q.progress(done, jobs);
  };
  // A head to a thread as long as there is one for each; the last heads share the threads by rows.
  const std::size_t whole = jobs / workers * workers;
  parallel_for(whole, workers, [&](std::size_t job) { run(job, 1); });
  for (std::size_t job = whole; job < jobs; ++job) run(job, workers);
  out.stopped = q.stop && q.stop->load();
  std::sort(out.divergences.begin(), out.divergences.end(), [](const divergence& a, const divergence& b) {
    return a.sequence != b.sequence ? a.sequence < b.sequence : a.value_head < b.value_head;
  });
  return out;
}

}  // namespace

reference solve_by_head(const problem& p, const question& q, const std::function<void(const solved_head&)>& sink) {
  return answer_heads(p, q, [](const solved_head&, unsigned) {}, sink);
}

reference solve(const problem& p, const question& q) {
  const auto sequences = p.sequences();
  const std::size_t heads = p.value_heads(), cols = p.value_dim(), keys = p.key_dim();
  reference_tensor o, state;
  reserve(o, {p.batch(), p.tokens(), heads, cols}, workers_of(q));
  reserve(state, {sequences.size(), heads, keys, cols}, workers_of(q));
  /// f(whole tensor, its element, the head's tensor, the head's element) for each run of elements that lie together in both.
  const auto each_row = [&](const solved_head& head, unsigned threads, const auto& f) {
    const sequence_range& range = sequences[head.sequence];
    const std::size_t first = range.batch * p.tokens() + range.first_token;
    if (head.o.value.empty() && range.tokens > 0) return;  // no tier lies between the bits asked for
    parallel_for(threads, threads, [&](std::size_t i) {
      for (std::size_t t = range.tokens * i / threads; t < range.tokens * (i + 1) / threads; ++t) {
        f(o, ((first + t) * heads + head.value_head) * cols, head.o, t * cols, cols);
      }
    });
    if (!head.final_state.value.empty())
      f(state, (head.sequence * heads + head.value_head) * keys * cols, head.final_state, 0, keys * cols);
  };
  // Heads lie apart, so threads copy theirs at the same time; only a new component changes the tensors themselves.
  reference out = answer_heads(
      p, q, [&](const solved_head& head, unsigned threads) { each_row(head, threads, place); },
      [&](const solved_head& head) {
        if (!head.o.low.empty() || !head.final_state.low.empty()) each_row(head, 1, place_low);
      });
  out.o = std::move(o);
  out.final_state = std::move(state);
  return out;
}

}  // namespace deltaproof
