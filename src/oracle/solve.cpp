// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT

#include <mpfr.h>

#include <algorithm>
#include <cmath>
#include <mutex>
#include <numeric>

#include "deltaproof/number/rounding.hpp"
#include "deltaproof/oracle/reference.hpp"
#include "oracle/lower_mpfr.hpp"
#include "oracle/mpfr_value.hpp"
#include "oracle/parallel.hpp"
#include "oracle/tiers/double_double_rows.hpp"
#include "oracle/tiers/fp64_rows.hpp"
#include "oracle/tiers/lower_double_double.hpp"

namespace deltaproof {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

/// One tensor of one head, elements in the order o: T x V, state: K x V; no shape.
using head_part = reference_tensor;

struct head_answer {
  head_part o;
  head_part state;
  std::optional<std::size_t> diverges_at;
  std::string tier;
  bool answered = false;
};

/// The most components a value is split into: 1024 bits fill 20 doubles.
constexpr std::size_t most_components = 20;

/// |x| > radius / 64, and not 0.
bool exceeds(mpfr_srcptr x, double radius) {
  return mpfr_zero_p(x) == 0 && std::fabs(mpfr_get_d(x, MPFR_RNDA)) > radius / 64;
}

/// Element i as an unevaluated sum; what is left out is small beside the radius, or joins it.
void split(head_part& part, std::size_t i, mpfr_srcptr x, mpfr_ptr rest, double radius) {
  part.value[i] = mpfr_get_d(x, MPFR_RNDN);
  if (!std::isfinite(part.value[i])) {
    part.radius[i] = infinity;
    return;
  }
  mpfr_sub_d(rest, x, part.value[i], MPFR_RNDN);  // exact: the leading bits of x are gone
  for (std::size_t c = 0; c < most_components && exceeds(rest, radius); ++c) {
    if (c == part.low.size()) part.low.emplace_back(part.value.size(), 0.0);
    part.low[c][i] = mpfr_get_d(rest, MPFR_RNDN);
    mpfr_sub_d(rest, rest, part.low[c][i], MPFR_RNDN);
  }
  const double left = std::fabs(mpfr_get_d(rest, MPFR_RNDA));
  part.radius[i] = left == 0 ? radius : detail::finite_or_infinite((radius + left) * detail::radius_slack);
}

head_part gather(std::vector<double> values, std::vector<double> radius) { return {{}, std::move(values), {}, std::move(radius)}; }

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

bool small_enough(const head_part& part, double relative, std::size_t count) {
  double largest = 0, radius = 0;
  for (std::size_t i = 0; i < count; ++i) {
    largest = std::max(largest, std::fabs(part.value[i]));
    radius = std::max(radius, part.radius[i]);
  }
  // Infinite magnitudes cannot be compared; an infinite radius answers only the question that asks for none.
  if (relative == infinity) return radius < infinity;
  return radius <= relative * largest || radius == 0;
}

bool all_decided(const head_part& part, const std::optional<format>& to, std::size_t count) {
  if (!to) return true;
  for (std::size_t i = 0; i < count; ++i) {
    if (!decided_rounding(part, i, *to)) return false;
  }
  return true;
}

template <class Field>
head_answer answer_with(const Field& field, double u, const lowered<typename Field::value>& in, const question& q, std::string tier) {
  certifier<Field> engine(field, u, in);
  auto run = engine.run(q.range, q.stop);
  head_answer out;
  out.tier = std::move(tier);
  out.diverges_at = run.diverges_at;
  const std::size_t judged = run.diverges_at.value_or(in.scan.tokens) * in.scan.value_dim;
  const std::size_t entries = in.scan.key_dim * in.scan.value_dim;
  out.o = gather(std::move(run.o), std::move(run.o_radius));
  bool answered = !run.divergence_undecided && small_enough(out.o, q.relative_radius, judged) && all_decided(out.o, q.round_output, judged);
  if (!run.diverges_at && run.final_state.size() == entries) {
    out.state = gather(std::move(run.final_state), spread(run.state_radius, entries));
    answered = answered && small_enough(out.state, q.relative_radius, entries) && all_decided(out.state, q.round_state, entries);
  }
  out.answered = answered;
  return out;
}

/// Nothing is known of such a head.
void make_void(head_answer& head) {
  std::fill(head.o.radius.begin(), head.o.radius.end(), infinity);
  std::fill(head.state.radius.begin(), head.state.radius.end(), infinity);
  head.answered = false;
}

constexpr int double_double_bits = 106;

/// The rows of one head that a question leaves open, answered tier after tier; a row that is decided stays as it is.
class row_by_row {
 public:
  row_by_row(const question& q, const sequence<double>& scan)
      : q_{q}, tokens_{scan.tokens}, keys_{scan.key_dim}, cols_{scan.value_dim} {
    open_.resize(cols_);
    std::iota(open_.begin(), open_.end(), std::size_t{0});
    for (const auto& [part, count] : {std::pair{&out_.o, tokens_}, std::pair{&out_.state, keys_}}) {
      part->value.assign(count * cols_, std::numeric_limits<double>::quiet_NaN());
      part->radius.assign(count * cols_, infinity);
    }
  }

  [[nodiscard]] const std::vector<std::size_t>& open() const { return open_; }
  [[nodiscard]] head_answer& answer() { return out_; }

  /// Whether the rows of a table certainly stay within `range` and none left its tier.
  [[nodiscard]] bool within(const range_limits& range, const tiers::tier_rows& rows) const {
    for (std::size_t r = 0; r < rows.rows; ++r) {
      if (rows.left[r] != 0 || !(rows.largest_norm[r] <= range.state)) return false;
    }
    for (std::size_t r = 0; r < rows.rows; ++r) {
      for (std::size_t t = 0; t < tokens_; ++t) {
        if (!(std::fabs(rows.o[tiers::tier_rows::panel(t, r, tokens_)]) + rows.radius(t, r) <= range.output)) return false;
      }
    }
    return true;
  }

  /// Rows of a table replace the open ones; those that left their tier stay as they were.
  void adopt(const tiers::tier_rows& rows, std::string tier) {
    for (std::size_t r = 0; r < rows.rows; ++r) {
      if (rows.left[r] != 0) continue;
      const auto radius = [&](std::size_t t) { return rows.radius(t, r); };
      const auto state_radius = [&](std::size_t) { return rows.state_radius[r]; };
      adopt_column(out_.o, open_[r], tokens_, rows.o, rows.o_low, radius, r);
      adopt_column(out_.state, open_[r], keys_, rows.final_state, rows.final_state_low, state_radius, r);
    }
    settle(std::move(tier));
  }

  /// Columns of parts as wide as the open rows replace them.
  void adopt(const head_part& o, const head_part& state, std::string tier) {
    for (std::size_t r = 0; r < open_.size(); ++r) {
      copy_column(out_.o, o, open_[r], r, tokens_);
      copy_column(out_.state, state, open_[r], r, keys_);
    }
    settle(std::move(tier));
  }

 private:
  template <class Radius>
  void adopt_column(head_part& part, std::size_t column, std::size_t count, const tiers::table& high, const tiers::table& low,
                    const Radius& radius, std::size_t r) {
    if (!low.empty() && part.low.empty()) part.low.emplace_back(part.value.size(), 0.0);
    for (std::size_t i = 0; i < count; ++i) {
      const std::size_t from = tiers::tier_rows::panel(i, r, count), to = i * cols_ + column;
      part.value[to] = high[from];
      part.radius[to] = radius(i);
      if (!low.empty()) part.low[0][to] = low[from];
    }
  }

  void copy_column(head_part& to, const head_part& from, std::size_t column, std::size_t r, std::size_t count) {
    const std::size_t width = open_.size();
    while (to.low.size() < from.low.size()) to.low.emplace_back(to.value.size(), 0.0);
    for (std::size_t i = 0; i < count; ++i) {
      to.value[i * cols_ + column] = from.value[i * width + r];
      to.radius[i * cols_ + column] = from.radius[i * width + r];
      for (std::size_t c = 0; c < to.low.size(); ++c) {
        to.low[c][i * cols_ + column] = c < from.low.size() ? from.low[c][i * width + r] : 0.0;
      }
    }
  }

  /// Keeps the rows open that do not answer the question yet.
  void settle(std::string tier) {
    out_.tier = std::move(tier);
    std::vector<std::size_t> open;
    const double o = largest(out_.o), state = largest(out_.state);
    for (const std::size_t column : open_) {
      const bool both = decided(out_.o, o, column, tokens_, q_.round_output) && decided(out_.state, state, column, keys_, q_.round_state);
      if (!both) open.push_back(column);
    }
    open_ = std::move(open);
    out_.answered = open_.empty();
  }

  [[nodiscard]] static double largest(const head_part& part) {
    double most = 0;
    for (const double x : part.value) most = std::max(most, std::fabs(x));
    return most;
  }

  [[nodiscard]] bool decided(const head_part& part, double most, std::size_t column, std::size_t count,
                             const std::optional<format>& to) const {
    for (std::size_t i = column; i < count * cols_; i += cols_) {
      const double radius = part.radius[i];
      const bool small = q_.relative_radius == infinity ? radius < infinity : radius <= q_.relative_radius * most || radius == 0;
      if (!small || (to && !decided_rounding(part, i, *to))) return false;
    }
    return true;
  }

  const question& q_;
  std::size_t tokens_;
  std::size_t keys_;
  std::size_t cols_;
  std::vector<std::size_t> open_;
  head_answer out_;
};

/// The head with these columns only.
lowered<mpfr_value> columns_of(lowered<mpfr_value> in, const std::vector<std::size_t>& columns) {
  auto& s = in.scan;
  if (columns.size() == s.value_dim) return in;
  std::vector<mpfr_value> v;
  v.reserve(s.rows() * columns.size());
  for (std::size_t r = 0; r < s.rows(); ++r) {
    for (const std::size_t c : columns) v.push_back(s.v[r * s.value_dim + c]);
  }
  matrix<mpfr_value> start(s.key_dim, columns.size());
  for (std::size_t j = 0; j < s.key_dim; ++j) {
    for (std::size_t i = 0; i < columns.size(); ++i) start(j, i) = s.initial_state(j, columns[i]);
  }
  s.v = std::move(v);
  s.initial_state = std::move(start);
  s.value_dim = columns.size();
  return in;
}

constexpr int mpfr_tiers[] = {128, 256, 512, 1024};

/// A head whose magnitudes may leave its formats or the vectorised tiers: entry by entry, all rows at one precision.
head_answer answer_whole(const problem& p, const question& q, std::size_t sequence_index, std::size_t value_head) {
  std::optional<head_answer> best;
  if (q.min_bits <= 53) {
    const auto in = lower(p, sequence_index, value_head);
    if (!in.underflowed || q.max_bits <= 53) {
      best = answer_with(fp64_field{}, fp64_field::unit_roundoff, in, q, "fp64");
      if (in.underflowed) make_void(*best);
      if (best->answered) return std::move(*best);
    }
  }
  for (const int bits : mpfr_tiers) {
    if (bits < q.min_bits || bits > q.max_bits) continue;
    if (q.stop && q.stop->load()) break;
    best = answer_with(mpfr_field{bits}, std::ldexp(1.0, -bits), lower_mpfr(p, sequence_index, value_head, bits), q,
                       "mpfr-" + std::to_string(bits));
    if (best->answered) break;
  }
  return best ? std::move(*best) : head_answer{};
}

head_answer answer(const problem& p, const question& q, std::size_t sequence_index, std::size_t value_head) {
  const int most = std::max(q.max_bits, 53);
  const bool in_fp64 = q.min_bits <= 53, in_pairs = q.min_bits <= double_double_bits && most >= double_double_bits;
  if (!in_fp64 && !in_pairs) return answer_whole(p, q, sequence_index, value_head);
  const auto head = tiers::lower_double_double(p, sequence_index, value_head);
  if (head.underflowed) return answer_whole(p, q, sequence_index, value_head);
  row_by_row rows(q, head.high.scan);
  tiers::tier_rows table;
  bool bounded = false;  // the first tier that ran says that no magnitude leaves its format
  if (in_fp64) {
    tiers::run_fp64(head.high, rows.open(), table, q.stop);
    if (q.stop && q.stop->load()) return {};
    if (!rows.within(q.range, table)) return answer_whole(p, q, sequence_index, value_head);
    bounded = true;
    rows.adopt(table, "fp64");
  }
  if (in_pairs && !rows.open().empty()) {
    tiers::run_double_double(head, rows.open(), table, q.stop);
    if (q.stop && q.stop->load()) return {};
    if (!bounded && !rows.within(q.range, table)) return answer_whole(p, q, sequence_index, value_head);
    rows.adopt(table, "double-double");
  }
  for (const int bits : mpfr_tiers) {
    if (rows.open().empty() || bits < q.min_bits || bits > most) continue;
    if (q.stop && q.stop->load()) return {};
    const auto in = columns_of(lower_mpfr(p, sequence_index, value_head, bits), rows.open());
    certifier<mpfr_field> engine(mpfr_field{bits}, std::ldexp(1.0, -bits), in);
    auto run = engine.run({}, q.stop);
    if (q.stop && q.stop->load()) return {};
    const std::size_t entries = in.scan.key_dim * in.scan.value_dim;
    const head_part state = gather(run.final_state, spread(run.state_radius, entries));
    rows.adopt(gather(run.o, run.o_radius), state, "mpfr-" + std::to_string(bits));
  }
  return std::move(rows.answer());
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

void reserve(reference_tensor& t, std::vector<std::size_t> shape) {
  const std::size_t n = element_count(shape);
  t.shape = std::move(shape);
  t.value.assign(n, std::numeric_limits<double>::quiet_NaN());
  t.radius.assign(n, infinity);
}

void place(reference_tensor& t, std::size_t at, const head_part& part, std::size_t from, std::size_t count) {
  std::copy_n(part.value.begin() + static_cast<std::ptrdiff_t>(from), count, t.value.begin() + static_cast<std::ptrdiff_t>(at));
  std::copy_n(part.radius.begin() + static_cast<std::ptrdiff_t>(from), count, t.radius.begin() + static_cast<std::ptrdiff_t>(at));
  for (std::size_t c = 0; c < part.low.size(); ++c) {
    if (c == t.low.size()) t.low.emplace_back(t.value.size(), 0.0);
    std::copy_n(part.low[c].begin() + static_cast<std::ptrdiff_t>(from), count, t.low[c].begin() + static_cast<std::ptrdiff_t>(at));
  }
}

}  // namespace

std::optional<double> decided_rounding(const reference_tensor& t, std::size_t i, const format& to) {
  const double value = t.value[i], radius = t.radius[i];
  if (!std::isfinite(value) || !(radius < infinity)) return std::nullopt;
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

reference solve(const problem& p, const question& q) {
  const auto sequences = p.sequences();
  const std::size_t heads = p.value_heads(), cols = p.value_dim(), keys = p.key_dim();
  reference out;
  reserve(out.o, {p.batch(), p.tokens(), heads, cols});
  reserve(out.final_state, {sequences.size(), heads, keys, cols});

  std::mutex lock;
  std::size_t done = 0;
  const std::size_t jobs = sequences.size() * heads;
  parallel_for(jobs, q.threads, [&](std::size_t job) {
    const std::size_t n = job / heads, h = job % heads;
    if (q.stop && q.stop->load()) return;
    const head_answer head = answer(p, q, n, h);
    const std::lock_guard guard(lock);
    if (q.stop && q.stop->load()) return;
    const std::size_t first = sequences[n].batch * p.tokens() + sequences[n].first_token;
    for (std::size_t t = 0; t < sequences[n].tokens; ++t) place(out.o, ((first + t) * heads + h) * cols, head.o, t * cols, cols);
    if (!head.state.value.empty()) place(out.final_state, job * keys * cols, head.state, 0, keys * cols);
    if (head.diverges_at) out.divergences.push_back({n, h, *head.diverges_at});
    ++out.tiers[head.tier];
    if (!head.answered) ++out.unanswered;
    ++done;
    if (q.progress) q.progress(done, jobs);
  });
  out.stopped = q.stop && q.stop->load();
  std::sort(out.divergences.begin(), out.divergences.end(), [](const divergence& a, const divergence& b) {
    return a.sequence != b.sequence ? a.sequence < b.sequence : a.value_head < b.value_head;
  });
  return out;
}

}  // namespace deltaproof
