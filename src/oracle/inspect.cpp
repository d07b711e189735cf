// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT

#include "deltaproof/oracle/inspect.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>

#include "deltaproof/number/rational.hpp"
#include "deltaproof/oracle/lower.hpp"
#include "support/text.hpp"

namespace deltaproof {
namespace {

/// Collects one precondition while the rows go by.
class tally {
 public:
  explicit tally(std::string name) { p_.name = std::move(name); }

  /// `outside` marks the rows that `says` will speak of; how far out a value is, is `distance`.
  void add(double value, const row_location& at, bool outside, double distance) {
    if (p_.rows++ == 0) p_.least = p_.largest = value;
    p_.least = std::min(p_.least, value);
    p_.largest = std::max(p_.largest, value);
    if (outside) {
      if (p_.count++ == 0) p_.first = at;
    }
    if (!p_.worst_at || distance > worst_) {
      worst_ = distance;
      p_.worst_at = at;
    }
  }
  [[nodiscard]] const precondition& so_far() const { return p_; }
  [[nodiscard]] precondition says(remark level, std::string text) && {
    p_.level = level;
    p_.says = std::move(text);
    return std::move(p_);
  }

 private:
  precondition p_;
  double worst_ = 0;
};

double squared_norm(std::span<const double> x) {
  double n = 0;
  for (const double xi : x) n += xi * xi;
  return n;
}

/// Whether |1 - b |k|^2| > 1: in fp64 where that decides, in rationals where the lowering is exact; else only what is
/// certain counts.
bool is_expansive(double b, std::span<const double> k, bool exact_lowering) {
  const double x = b * squared_norm(k);
  const double slack = (static_cast<double>(k.size()) + 16) * 0x1p-52 * std::fabs(x);
  if (x > 2 + slack || x < -slack) return true;
  if ((x < 2 - slack && x > slack) || x == 0 || !exact_lowering) return false;
  rational n = 0;
  for (const double ki : k) n += exact(ki) * exact(ki);
  n *= exact(b);
  return n > 2 || n < 0;
}

std::string text(double x) { return detail::general(x, 6); }

std::string of(std::size_t count, std::size_t rows, const char* what) {
  return std::to_string(count) + " of " + std::to_string(rows) + " " + what;
}

precondition key_norms(const problem& p) {
  tally t("key_norm");
  bool zero = false;
  const std::size_t n = p.num_householder, heads = p.key_heads();
  std::vector<double> k(p.key_dim());
  const auto sequences = p.sequences();
  for (std::size_t s = 0; s < sequences.size(); ++s) {
    for (std::size_t row = 0; row < sequences[s].tokens * n; ++row) {
      for (std::size_t h = 0; h < heads; ++h) {
        const std::size_t at = sequences[s].batch * p.steps() + sequences[s].first_token * n + row;
        p.k.read((at * heads + h) * p.key_dim(), k);
        const double norm = std::sqrt(squared_norm(k));
        zero = zero || norm == 0;
        t.add(norm, {sequences[s].batch, s, h, row / n, row % n}, norm != 0 && std::fabs(norm - 1) > 0.05, std::fabs(norm - 1));
      }
    }
  }
  const auto& seen = t.so_far();
  if (p.qk_l2norm) return std::move(t).says(remark::fine, "|k| as given; the kernel normalises it");
  if (seen.count == 0) return std::move(t).says(remark::fine, zero ? "|k| is 1 within 5 %, or 0" : "|k| is 1 within 5 %");
  return std::move(t).says(remark::notice, "|k| differs from 1 by more than 5 % in " + of(seen.count, seen.rows, "rows") +
                                               ": these keys are not normalised");
}

precondition betas(const problem& p) {
  tally t("beta");
  const std::size_t heads = p.value_heads(), n = p.num_householder;
  const auto sequences = p.sequences();
  std::size_t negative = 0;
  for (std::size_t s = 0; s < sequences.size(); ++s) {
    for (std::size_t row = 0; row < sequences[s].tokens * n; ++row) {
      for (std::size_t h = 0; h < heads; ++h) {
        const double beta = p.beta.at((sequences[s].batch * p.steps() + sequences[s].first_token * n + row) * heads + h);
        if (beta < 0) ++negative;
        t.add(beta, {sequences[s].batch, s, h, row / n, row % n}, beta < 0, -beta);
      }
    }
  }
  const auto& seen = t.so_far();
  if (p.beta_activation != activation_kind::none) return std::move(t).says(remark::fine, "beta before its activation");
  if (negative * 20 > seen.rows) {
    return std::move(t).says(remark::warning,
                             of(negative, seen.rows, "steps have beta < 0") +
                                 ": this looks like a logit; set beta_activation = sigmoid if the kernel applies it");
  }
  if (negative > 0) return std::move(t).says(remark::notice, of(negative, seen.rows, "steps have beta < 0"));
  return std::move(t).says(remark::fine, "beta >= 0");
}

/// Preconditions of the lowered steps: x = b |k|^2 and the factor 1 - x.
std::vector<precondition> steps(const problem& p) {
  tally stretch("step_stretch"), factor("transition_factor"), padding("padding");
  const auto sequences = p.sequences();
  const std::size_t n = p.num_householder;
  bool signal = false;
  // Decays have no part in this, and their exponentials would cost more than all the rest.
  problem ungated = p;
  ungated.g.reset();
  for (std::size_t s = 0; s < sequences.size(); ++s) {
    for (std::size_t h = 0; h < p.value_heads(); ++h) {
      const auto in = lower(ungated, s, h);
      const bool exact_lowering = in.error.key == 0 && in.error.step == 0;
      for (const double state : in.scan.initial_state.entries()) signal = signal || state != 0;
      for (std::size_t row = 0; row < in.scan.rows(); ++row) {
        const row_location at{sequences[s].batch, s, h, row / n, row % n};
        const auto k = in.scan.k_row(row);
        const double b = in.scan.step[row], x = b * squared_norm(k);
        stretch.add(x, at, x > 2, x);
        factor.add(1 - x, at, is_expansive(b, k, exact_lowering), std::fabs(1 - x));
        const auto v = in.scan.v_row(row);
        const bool writes = b != 0 && std::any_of(v.begin(), v.end(), [](double vi) { return vi != 0; });
        const bool zero_key = std::all_of(k.begin(), k.end(), [](double ki) { return ki == 0; });
        padding.add(zero_key ? 0 : 1, at, zero_key, zero_key ? 1 : 0);
        signal = signal || (writes && !zero_key);
      }
    }
  }
  std::vector<precondition> out;
  out.push_back(
      std::move(stretch).says(remark::fine,
                              "b |k|^2, where b is the effective step and k is normalised if the kernel does that: each update "
                              "multiplies the state along k by 1 - b |k|^2"));
  const auto expansive = factor.so_far().count, rows = factor.so_far().rows;
  out.push_back(expansive == 0
                    ? std::move(factor).says(remark::fine, "every step is non-expansive: |1 - b |k|^2| <= 1")
                    : std::move(factor).says(remark::warning,
                                             of(expansive, rows, "steps are expansive, |1 - b |k|^2| > 1") +
                                                 (p.has_cotangents() ? "; they expand the cotangent of the state too" : "")));
  const auto zero_keys = padding.so_far().count;
  out.push_back(zero_keys == 0
                    ? std::move(padding).says(remark::fine, "no key is zero")
                    : std::move(padding).says(remark::notice, of(zero_keys, rows, "steps have a zero key, as padding rows do")));
  if (!signal) {
    precondition nothing;
    nothing.name = "nothing_to_see";
    nothing.level = remark::warning;
    nothing.says =
        "no step writes to the state and it starts at 0: every exact output is 0, and a faulty kernel would give 0 too";
    out.push_back(std::move(nothing));
  }
  return out;
}

/// What the backward pass is given: |do| of each token.
precondition cotangents(const problem& p) {
  tally t("cotangent");
  const std::size_t heads = p.value_heads();
  std::vector<double> x(p.value_dim());
  const auto sequences = p.sequences();
  for (std::size_t s = 0; p.d_o && s < sequences.size(); ++s) {
    for (std::size_t token = 0; token < sequences[s].tokens; ++token) {
      for (std::size_t h = 0; h < heads; ++h) {
        p.d_o->read(((sequences[s].batch * p.tokens() + sequences[s].first_token + token) * heads + h) * p.value_dim(), x);
        const bool none = std::all_of(x.begin(), x.end(), [](double xi) { return xi == 0; });
        t.add(std::sqrt(squared_norm(x)), {sequences[s].batch, s, h, token, 0}, none, none ? 1 : 0);
      }
    }
  }
  const auto& seen = t.so_far();
  bool state = false;
  for (std::size_t i = 0; p.d_final_state && i < p.d_final_state->size(); ++i) state = state || p.d_final_state->at(i) != 0;
  if (seen.count == seen.rows) {
    return state ? std::move(t).says(remark::notice, "the tensor do is absent or all 0: gradients come from dfinal_state alone")
                 : std::move(t).says(remark::warning,
                                     "the tensors do and dfinal_state are absent or all 0: every exact gradient is 0, and a "
                                     "faulty kernel would give 0 too");
  }
  if (seen.count > 0)
    return std::move(t).says(
        remark::notice,
        "norm of each row of do: " + of(seen.count, seen.rows, "rows are 0, and these tokens add nothing to the gradients"));
  return std::move(t).says(remark::fine,
                           state ? "|do| of each token; dfinal_state contributes to the gradients too" : "|do| of each token");
}

precondition gates(const problem& p) {
  constexpr std::size_t window = 64;        // the field's chunk length
  constexpr double factored_limit = -88.7;  // ln of the largest fp32, negated
  tally t("gate");
  const auto sequences = p.sequences();
  const std::size_t channels = p.gate_per_channel() ? p.key_dim() : 1, heads = p.value_heads();
  std::size_t grows = 0, resets = 0;
  double lowest_sum = 0;
  std::vector<double> g(channels), sum(channels);
  for (std::size_t s = 0; s < sequences.size(); ++s) {
    for (std::size_t h = 0; h < heads; ++h) {
      for (std::size_t token = 0; token < sequences[s].tokens; ++token) {
        p.g->read(((sequences[s].batch * p.tokens() + sequences[s].first_token + token) * heads + h) * channels, g);
        if (token % window == 0) std::fill(sum.begin(), sum.end(), 0.0);
        for (std::size_t c = 0; c < channels; ++c) {
          t.add(g[c], {sequences[s].batch, s, h, token, 0}, g[c] > 0, g[c] > 0 ? g[c] : 0);
          if (g[c] > 0) ++grows;
          if (std::isinf(g[c])) ++resets;
          sum[c] += g[c];
          lowest_sum = std::min(lowest_sum, sum[c]);
        }
      }
    }
  }
  const std::size_t rows = t.so_far().rows;
  if (grows > 0)
    return std::move(t).says(
        remark::warning,
        of(grows, rows, "log decays g are > 0: there the state grows; if g holds decays e^g, store their logarithms"));
  std::string says = "log decays";
  if (resets > 0)
    says += ", " + of(resets, rows,
                      p.has_cotangents() ? "are -inf (each resets the state, and in the backward pass its cotangent)"
                                         : "are -inf (the state is reset)");
  if (lowest_sum < factored_limit && std::isfinite(lowest_sum)) {
    says += "; their sum over a chunk of 64 reaches " + text(lowest_sum) + ": a kernel that forms exp(-G) overflows fp32";
    return std::move(t).says(remark::notice, says);
  }
  return std::move(t).says(remark::fine, says);
}

}  // namespace

std::string_view name_of(remark r) {
  switch (r) {
    case remark::fine:
      return "fine";
    case remark::notice:
      return "notice";
    case remark::warning:
      return "warning";
  }
  return "";
}

/// What a weight e^{g_j+1 + ... + g_i} of the rows of a chunk loses at most, in units of the sums' roundoff: as e^{G_i - G_j} of
/// rounded cumulative sums, by the rounding of G_i alone (of neighbours, where it is largest); and as a product of decays, each
/// rounded. The first is much more where it is above 8 times the second, the bits that a plan's own error may cost, and above the
/// length of the chunk, which sums over a chunk may lose anyway.
std::optional<precondition> inspect_gate_sums(const problem& p) {
  if (!p.g) return std::nullopt;
  constexpr std::size_t window = 64;
  constexpr double much = 8;
  tally t("gate_sums");
  const auto sequences = p.sequences();
  const std::size_t channels = p.gate_per_channel() ? p.key_dim() : 1, heads = p.value_heads();
  double by_sums = 0, by_products = 0, largest = 0;
  std::vector<double> g(channels), sum(channels);
  for (std::size_t s = 0; s < sequences.size(); ++s) {
    for (std::size_t h = 0; h < heads; ++h) {
      for (std::size_t token = 0; token < sequences[s].tokens; ++token) {
        p.g->read(((sequences[s].batch * p.tokens() + sequences[s].first_token + token) * heads + h) * channels, g);
        if (token % window == 0) std::fill(sum.begin(), sum.end(), 0.0);
        for (std::size_t c = 0; c < channels; ++c) {
          const double weight = std::exp(std::min(g[c], 0.0));
          const bool inside = token % window != 0;
          sum[c] += g[c];
          const double lost = inside && weight > 0 ? std::fabs(sum[c]) * weight : 0;  // infinite after a decay of 0: NaN
          by_products = std::max(by_products, weight > 0 ? (1 + std::fabs(g[c])) * weight : 0);
          largest = std::max(largest, std::fabs(sum[c]));
          by_sums = std::max(by_sums, lost);
          t.add(lost, {sequences[s].batch, s, h, token, 0}, lost > static_cast<double>(window), lost);
        }
      }
    }
  }
  if (!(by_sums > std::max(much * by_products, static_cast<double>(window)))) return std::nullopt;
  const std::string chunked = "a chunk kernel that forms e^(G_i - G_j) from cumulative sums ";
  if (std::isinf(by_sums))
    return std::move(t).says(remark::warning, "a decay of 0 makes the cumulative sums G -inf: " + chunked +
                                                  "returns NaN from there on, the recurrence does not");
  return std::move(t).says(remark::warning,
                           "cumulative log decays reach |G| = " + text(largest) + " within 64 tokens: " + chunked +
                               "is off by up to " + text(by_sums) +
                               " u in the decay between neighbouring rows (u: the unit roundoff of the format of "
                               "G), a kernel that applies the decays token by token by up to " +
                               text(by_products) + " u");
}

std::vector<precondition> inspect(const problem& p) {
  std::vector<precondition> out;
  out.push_back(key_norms(p));
  out.push_back(betas(p));
  for (auto& found : steps(p)) out.push_back(std::move(found));
  if (p.g) out.push_back(gates(p));
  if (p.has_cotangents()) out.push_back(cotangents(p));
  if (auto sums = inspect_gate_sums(p)) out.push_back(std::move(*sums));
  return out;
}

}  // namespace deltaproof
