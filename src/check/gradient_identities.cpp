// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
#include "deltaproof/check/gradient_identities.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "check/identity_equations.hpp"
#include "deltaproof/number/random.hpp"
#include "deltaproof/number/visit_format.hpp"
#include "deltaproof/oracle/gradients.hpp"
#include "deltaproof/oracle/reference.hpp"
#include "support/text.hpp"

namespace deltaproof {
namespace {

using namespace check_detail;

constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr double formats_cost = 8;  // times what is expected: as adequacy
constexpr double of_one = 4;        // times that again for a single equation: there are thousands
constexpr std::size_t spread_runs = 4;
constexpr std::size_t neighbours = 8;  // tokens on each side whose spread stands for that of one

/// Each element off by up to `unit` of itself, as one more rounding of it.
tensor rounded_once_more(const tensor& t, double unit, std::uint64_t seed, std::uint64_t stream) {
  philox random(seed, stream);
  std::vector<double> values = t.to_doubles();
  for (double& x : values) {
    const double moved = x * (1 + unit * (2 * random.uniform() - 1));
    if (std::isfinite(moved)) x = moved;
  }
  return tensor::from_doubles(fp64, t.shape(), values, t.name());
}

problem perturbed(const problem& p, std::uint64_t seed, std::size_t run) {
  const double unit = unit_roundoff(p.q.element_format()), of_gate = std::min(unit, unit_roundoff(fp32));
  std::uint64_t stream = 16 * run;
  const auto apply = [&](tensor& t, double u) { t = rounded_once_more(t, u, seed, stream++); };
  problem out = p;
  for (tensor* t : {&out.q, &out.k, &out.v, &out.beta}) apply(*t, unit);
  for (std::optional<tensor>* t : {&out.initial_state, &out.d_o, &out.d_final_state}) {
    if (*t) apply(**t, unit);
  }
  if (out.g) apply(*out.g, of_gate);
  return out;
}

answers answers_of(const result& r) {
  answers out;
  const auto take = [&](quantity x, const tensor& t) {
    out.value[x] = t.to_doubles();
    out.stored[x] = t.element_format();
  };
  if (r.has_outputs()) take(of_o, r.o);
  if (const auto state = r.final_state_kv()) take(of_final_state, *state);
  for (std::size_t x = of_dq; x < quantities; ++x) {
    const auto found = r.gradients.find(std::string(quantity_names[x]));
    if (found != r.gradients.end()) take(static_cast<quantity>(x), found->second);
  }
  return out;
}

/// The exact answers to p of the kinds that `like` has; nothing where `options.stop` was set.
std::optional<answers> exact_answers(const problem& p, const answers& like, const identity_options& options) {
  question ask;
  int precision = 0;
  bool wide = false;
  for (const auto& stored : like.stored) {
    if (!stored) continue;
    precision = std::max(precision, stored->precision);
    wide = wide || *stored == fp64;
  }
  ask.relative_radius = std::ldexp(1.0, -precision - 6);
  ask.range.state = largest(wide ? fp64 : fp32);
  ask.max_bits = options.judge.max_bits;
  ask.threads = options.threads;
  ask.stop = options.stop;
  answers out;
  const auto take = [&](quantity x, const std::vector<double>& values) {
    if (!like.has(x)) return;
    out.stored[x] = like.stored[x];
    out.value[x] = values;
  };
  if (like.has(of_o) || like.has(of_final_state)) {
    const reference forward = solve(p, ask);
    if (forward.stopped) return std::nullopt;
    take(of_o, forward.o.value);
    take(of_final_state, forward.final_state.value);
  }
  const reference_gradients backward = solve_gradients(p, ask);
  if (backward.stopped) return std::nullopt;
  for (std::size_t x = of_dq; x < quantities; ++x) {
    const auto found = backward.tensors.find(quantity_names[x]);
    if (found != backward.tensors.end()) take(static_cast<quantity>(x), found->second.value);
  }
  return out;
}

/// Fills the variances of `given`: how far each exact number moves from one rounding of the inputs to another; infinite where it
/// is beyond its format. The mean of these exact answers; nothing where `options.stop` was set.
std::optional<answers> measure_spread(const problem& p, answers& given, const identity_options& options) {
  std::vector<answers> runs;
  for (std::size_t run = 0; run < spread_runs; ++run) {
    auto exact = exact_answers(perturbed(p, options.judge.seed, run), given, options);
    if (!exact) return std::nullopt;
    runs.push_back(std::move(*exact));
  }
  answers mean = given;
  for (std::size_t x = 0; x < quantities; ++x) {
    given.variance[x].resize(given.value[x].size());
    for (std::size_t i = 0; i < given.value[x].size(); ++i) {
      double sum = 0, squares = 0;
      for (const answers& run : runs) sum += run.value[x][i] / static_cast<double>(spread_runs);
      for (const answers& run : runs) squares += (run.value[x][i] - sum) * (run.value[x][i] - sum);
      const bool held = std::isfinite(round_nearest(sum, *given.stored[x]));
      given.variance[x][i] = held && std::isfinite(squares) ? squares / static_cast<double>(spread_runs - 1) : infinity;
      mean.value[x][i] = held ? sum : 0;
    }
  }
  return mean;
}

/// What comes of one head's equations.
struct judged_head {
  double size = 0, residual = 0, rounding = 0, expected = 0, limit = 0;  // root mean squares
  std::optional<std::size_t> first_nonfinite, nearest;
  double nearest_share = 0, nearest_limit = infinity;  // of its own limit
  [[nodiscard]] bool blind() const { return !(limit < size); }
  [[nodiscard]] double share() const {
    return std::max(limit > 0 ? residual / limit : residual > 0 ? infinity : 0, nearest_share);
  }
};

/// Means of the variances of each equation and of its neighbours in time; an equation in which no number is known has none.
std::vector<double> around(const std::vector<double>& variance, std::size_t reach) {
  std::vector<double> sum(variance.size() + 1, 0), count(variance.size() + 1, 0), out(variance.size());
  for (std::size_t i = 0; i < variance.size(); ++i) {
    sum[i + 1] = sum[i] + (std::isfinite(variance[i]) ? variance[i] : 0);
    count[i + 1] = count[i] + (std::isfinite(variance[i]) ? 1 : 0);
  }
  for (std::size_t i = 0; i < variance.size(); ++i) {
    const std::size_t from = i - std::min(i, reach), until = std::min(variance.size(), i + reach + 1);
    out[i] = std::isfinite(variance[i]) ? std::max(0.0, (sum[until] - sum[from]) / (count[until] - count[from])) : infinity;
  }
  return out;
}

judged_head judged(const identity_equations& of, const head_equations& got, std::optional<double> accuracy) {
  judged_head out;
  const auto count = static_cast<double>(got.residual.size());
  const std::vector<double> near = around(got.expected, neighbours * of.steps);
  const bool known = of.by_token || std::isfinite(got.expected_sum);
  double sum = 0, expected = 0;
  std::size_t equations = 0;
  for (std::size_t i = 0; i < got.residual.size() && known; ++i) {
    if (of.by_token && !std::isfinite(near[i])) continue;  // the exact numbers are beyond their formats
    if (!std::isfinite(got.residual[i])) {
      if (!out.first_nonfinite) out.first_nonfinite = i;
      continue;
    }
    sum += got.residual[i] * got.residual[i];
    if (of.by_token) expected += got.expected[i];
    ++equations;
  }
  if (equations == 0) return out;
  out.size = std::sqrt(got.terms() / count);
  out.residual = std::sqrt(sum / static_cast<double>(equations));
  out.rounding = std::sqrt(got.rounding_sum / count);
  out.expected = std::sqrt(of.by_token ? expected / static_cast<double>(equations) : got.expected_sum / count);
  out.limit = accuracy ? *accuracy * out.size : formats_cost * out.expected;
  if (!of.by_token) return out;
  const double times = of_one * (out.expected > 0 ? out.limit / out.expected : 0);
  for (std::size_t i = 0; i < got.residual.size(); ++i) {
    if (!std::isfinite(got.residual[i]) || !std::isfinite(near[i])) continue;
    const double limit = times * std::sqrt(std::max(near[i], got.expected[i]));
    const double off = std::fabs(got.residual[i]), share = limit > 0 ? off / limit : off > 0 ? infinity : 0;
    if (out.nearest && share <= out.nearest_share) continue;
    out.nearest = i;
    out.nearest_share = share;
    out.nearest_limit = limit;
  }
  return out;
}

identity_place place_of(const identity_equations& of, const head_equations& got, const judged_head& j) {
  identity_place at{got.sequence, got.head, {}, j.residual, j.limit};
  const bool one = j.first_nonfinite || (j.nearest && j.nearest_share >= j.residual / j.limit);
  if (j.first_nonfinite) {
    at.residual = got.residual[*j.first_nonfinite];
    at.limit = infinity;
  } else if (of.by_token && one) {
    at.residual = got.residual[*j.nearest];
    at.limit = j.nearest_limit;
  }
  if (!of.by_token || !one) return at;
  at.token = (j.first_nonfinite ? *j.first_nonfinite : *j.nearest) / of.steps;
  if (of.name != "I3" || *at.token + 1 < of.tokens(got)) return at;
  at.equation = "dg_t - <final_state, dfinal_state> = o_t . do_t - v_t . dv_t";
  if (*at.token == of.tokens(got)) {
    at.equation = "dg_0 = <initial_state, dinitial_state>";
    at.token.reset();
  }
  return at;
}

identity_report report_on(const identity_equations& of, std::optional<double> accuracy, std::vector<judged_head>& heads) {
  identity_report out;
  out.name = of.name;
  out.statement = of.statement;
  out.missing = of.missing;
  out.by_key_head = of.by_key_head;
  out.heads = of.heads.size();
  std::optional<std::size_t> worst;
  const auto rank = [](const judged_head& x) {
    return x.first_nonfinite ? infinity : x.blind() && x.share() <= 1 ? -1 : x.share();
  };
  for (std::size_t h = 0; h < of.heads.size(); ++h) {
    heads.push_back(judged(of, of.heads[h], accuracy));
    const judged_head& j = heads.back();
    out.equations += of.heads[h].residual.size();
    if (j.blind()) ++out.blind_heads;
    if (j.first_nonfinite || j.share() > 1) out.judged = verdict::refuted;
    if (!worst || rank(j) > rank(heads[*worst])) worst = h;
  }
  if (!worst) return out;
  const judged_head& j = heads[*worst];
  if (out.judged != verdict::refuted && out.blind_heads < out.heads) out.judged = verdict::holds;
  const double size = j.size > 0 ? j.size : 1;
  out.residual = j.residual / size;
  out.rounding = j.rounding / size;
  out.expected = j.expected / size;
  out.limit = j.limit / size;
  out.worst = place_of(of, of.heads[*worst], j);
  return out;
}

/// The least relative error of each gradient that an identity shows, in the head where that is largest. `equations`: those of the
/// exact answers, for a faulty gradient may be 0.
std::map<std::string, double> visible_errors(const std::vector<identity_equations>& equations,
                                             const std::vector<std::vector<judged_head>>& judged, const answers& given) {
  std::map<std::string, double> out;
  for (std::size_t x = of_dq; x < quantities; ++x) {
    if (!given.has(static_cast<quantity>(x))) continue;
    std::map<std::pair<bool, std::pair<std::size_t, std::size_t>>, double> least;  // by head of q and k, or of v
    for (std::size_t i = 0; i < equations.size(); ++i) {
      for (std::size_t h = 0; h < equations[i].heads.size(); ++h) {
        const head_equations& of = equations[i].heads[h];
        const double terms = std::sqrt(of.squares[x] / static_cast<double>(std::max<std::size_t>(1, of.residual.size())));
        if (!(terms > 0)) continue;
        const auto key = std::pair(equations[i].by_key_head, std::pair(of.sequence, of.head));
        const auto known = least.try_emplace(key, infinity).first;
        known->second = std::min(known->second, judged[i][h].limit / terms);
      }
    }
    // By heads of q and k or by those of v, whichever shows more.
    double by[2] = {0, 0};
    bool any[2] = {false, false};
    for (const auto& [key, error] : least) {
      by[key.first] = std::max(by[key.first], error);
      any[key.first] = true;
    }
    const double seen = std::min(any[0] ? by[0] : infinity, any[1] ? by[1] : infinity);
    out[std::string(quantity_names[x])] = seen;
  }
  return out;
}

/// Chunks, and those over which the gates leave less of a state than a rounding of it.
std::pair<std::size_t, std::size_t> chunks_cut_off(const problem& p, std::size_t chunk) {
  const std::vector<double> g = p.g->to_doubles();
  const std::size_t width = p.gate_per_channel() ? p.key_dim() : 1, heads = p.value_heads();
  const double least = std::log(unit_roundoff(p.q.element_format()));
  std::pair<std::size_t, std::size_t> out{0, 0};
  for (const sequence_range& s : p.sequences()) {
    for (std::size_t from = 0; from < s.tokens; from += chunk) {
      for (std::size_t h = 0; h < heads; ++h) {
        double most = -infinity;
        for (std::size_t c = 0; c < width; ++c) {
          double sum = 0;
          for (std::size_t t = from; t < std::min(s.tokens, from + chunk); ++t)
            sum += g[((s.batch * p.tokens() + s.first_token + t) * heads + h) * width + c];
          most = std::max(most, sum);
        }
        ++out.first;
        if (most < least) ++out.second;
      }
    }
  }
  return out;
}

std::vector<std::string> blind_spots(const problem& p, const result& r, const gradient_identities& found) {
  std::vector<std::string> out;
  if (!p.g) {
    out.push_back("the problem has no gate: dg is not checked");
  } else {
    const std::size_t chunk = std::max<std::size_t>(1, r.chunk_size.value_or(64) / p.num_householder);
    const auto [all, cut] = chunks_cut_off(p, chunk);
    if (cut > 0) {
      out.push_back("strong decays: in " + detail::share_text(cut, all) + " of the chunks of " + std::to_string(chunk) +
                    " tokens the gates shrink the state to less than its own rounding error; a kernel that passes nothing from "
                    "one chunk to the next (neither dh nor the <h, dh> term of dg) gives the same numbers there");
    }
    if (p.gate_per_channel())
      out.push_back(
          "gate per channel: only the sum of dg over the channels is checked; errors that cancel in the sum are not detected");
  }
  if (p.qk_l2norm)
    out.push_back(
        "l2norm in the kernel: nearly all of dq and dk is orthogonal to q and k, and I1 and I2 do not detect errors in these "
        "directions; only I5 does");
  for (const auto& [name, error] : found.visible) {
    if (error >= 1) out.push_back(name + ": an error of 100 % would not be detected by the equations that are checked");
  }
  return out;
}

std::string why_refuted(const identity_report& i) {
  const identity_place& at = *i.worst;
  std::string text = i.name + " (" + (at.equation.empty() ? i.statement : at.equation) + ") fails in sequence " +
                     std::to_string(at.sequence) + (i.by_key_head ? ", key head " : ", head ") + std::to_string(at.head);
  if (at.token) text += ", token " + std::to_string(*at.token);
  if (!std::isfinite(at.residual)) return text + ": an infinity or NaN where the exact numbers are finite";
  if (at.token || !at.equation.empty())
    return text + ": the two sides are " + detail::general(std::fabs(at.residual), 3) + " apart, " +
           detail::general(std::fabs(at.residual) / at.limit, 3) + " times the limit";
  return text + ": the two sides differ by " + detail::general(i.residual, 3) + " relative to the size of their terms, " +
         detail::general(i.residual / i.limit, 3) + " times the limit";
}

void conclude(const identity_options& options, gradient_identities& out) {
  std::size_t formed = 0;
  std::string holding, failing;
  for (const identity_report& i : out.identities) {
    if (!i.missing.empty()) continue;
    ++formed;
    if (i.judged == verdict::refuted && out.judged == verdict::refuted) {
      failing += (failing.empty() ? "; also beyond their limits: " : ", ") + i.name;
    } else if (i.judged == verdict::refuted) {
      out.judged = verdict::refuted;
      out.reason = why_refuted(i);
    }
    if (i.judged == verdict::holds) holding += (holding.empty() ? "" : ", ") + i.name;
  }
  out.reason += failing;
  if (out.judged == verdict::refuted) return;
  if (!holding.empty()) {
    out.judged = verdict::holds;
    out.reason = "the two sides of " + holding + " differ by no more than their limits allow";
    std::string unseen;
    for (const auto& [name, error] : out.visible) {
      if (error >= 1) unseen += (unseen.empty() ? "" : ", ") + name;
    }
    if (!unseen.empty()) out.reason += "; errors of " + unseen + " would not be detected";
    return;
  }
  out.reason = formed == 0 ? "no identity could be formed; the list of identities says what each lacks"
                           : "on these inputs, gradients with errors as large as themselves would satisfy every identity too";
  out.remedy = formed == 0 ? "record dq, dk, dv, dbeta, dg and dinitial_state beside o and final_state"
               : options.judge.accuracy
                   ? "give a smaller --accuracy, or record a run with other cotangents: do and dfinal_state that are not 0"
                   : "record a run with other cotangents: do and dfinal_state that are not 0";
}

}  // namespace

gradient_identities check_gradient_identities(const problem& p, const result& r, const identity_options& options) {
  require_valid(options.judge, options.threads);
  if (!p.has_cotangents())
    throw format_error(
        "invariant gradients: the problem has neither do nor dfinal_state; record in the problem file the cotangents that the "
        "backward pass was given");
  if (r.gradients.empty())
    throw format_error(
        "invariant gradients: the result has none of dq, dk, dv, dbeta, dg and dinitial_state; record those that the backward "
        "pass returned");
  gradient_identities out;
  answers given = answers_of(r);
  const std::optional<answers> exact = measure_spread(p, given, options);
  if (!exact) {
    out.stopped = true;
    out.judged = verdict::undecided;
    out.reason =
        "the check was stopped before the exact gradients were computed; without them the equations have no limits, so nothing "
        "was judged";
    out.remedy = "allow more time: give a larger --max-seconds, or leave it out";
    return out;
  }
  const inputs_as_doubles inputs(p);
  const std::vector<identity_equations> equations = equations_of(inputs, given);
  std::vector<std::vector<judged_head>> judged(equations.size());
  for (std::size_t i = 0; i < equations.size(); ++i)
    out.identities.push_back(report_on(equations[i], options.judge.accuracy, judged[i]));
  out.visible = visible_errors(equations_of(inputs, *exact), judged, given);
  conclude(options, out);
  out.blind = blind_spots(p, r, out);
  return out;
}

}  // namespace deltaproof
