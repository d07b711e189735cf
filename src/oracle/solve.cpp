// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT

#include <mpfr.h>

#include <algorithm>
#include <cmath>
#include <mutex>

#include "deltaproof/number/rounding.hpp"
#include "deltaproof/oracle/reference.hpp"
#include "oracle/lower_mpfr.hpp"
#include "oracle/mpfr_value.hpp"
#include "oracle/parallel.hpp"

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

head_answer answer(const problem& p, const question& q, std::size_t sequence_index, std::size_t value_head) {
  constexpr int tiers[] = {53, 128, 256, 512, 1024};
  std::optional<head_answer> best;
  for (const int bits : tiers) {
    if (bits < q.min_bits || bits > std::max(q.max_bits, 53)) continue;
    if (q.stop && q.stop->load()) break;
    if (bits == 53) {
      const auto in = lower(p, sequence_index, value_head);
      if (in.underflowed && q.max_bits > bits) continue;
      best = answer_with(fp64_field{}, fp64_field::unit_roundoff, in, q, "fp64");
      if (in.underflowed) make_void(*best);
    } else {
      best = answer_with(mpfr_field{bits}, std::ldexp(1.0, -bits), lower_mpfr(p, sequence_index, value_head, bits), q,
                         "mpfr-" + std::to_string(bits));
    }
    if (best->answered) break;
  }
  return best ? std::move(*best) : head_answer{};
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
