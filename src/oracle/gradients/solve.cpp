// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
#include <algorithm>
#include <cmath>
#include <limits>
#include <mutex>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include "oracle/gradients/by_group.hpp"
#include "oracle/gradients/elements.hpp"
#include "oracle/gradients/exact_bits.hpp"
#include "oracle/gradients/group.hpp"
#include "oracle/lower_mpfr.hpp"
#include "support/parallel.hpp"

namespace deltaproof {
namespace {

constexpr int tiers[] = {128, 256, 512, 1024};  // behind fp64 and double-double
/// Of runs in which nothing is rounded: of a whole group, whose states are kept, and of elements.
constexpr int most_exact_bits_of_groups = 2048, most_exact_bits = widest_bits;

/// So many bits in whole limbs, 0 where they are none or too many.
int whole_bits(std::optional<double> bits) {
  return bits && *bits <= most_exact_bits ? static_cast<int>(std::ceil(std::max(*bits, 1.0) / 64)) * 64 : 0;
}

/// An element that does not answer the question, and what its radius may be at most.
struct open_element {
  gradient_element at;
  double allowed;
};

/// One group of heads, and what is asked of it.
class asked_group {
 public:
  asked_group(const problem& p, const question& q, gradient_form form, std::size_t tokens)
      : p_{p}, q_{q}, rounds_{form == gradient_form::roundings}, tokens_{tokens} {}

  solved_group best;
  bool some = false;

  [[nodiscard]] bool answered() const { return some && open_.empty() && !many_; }

  /// What a run of the whole group gave.
  void take(solved_group now) {
    best = std::move(now);
    some = true;
    open_.clear();
    many_ = false;
    std::size_t until = tokens_, from = 0;
    for (std::size_t h = 0; h < best.heads.size(); ++h) {
      auto& head = best.heads[h];
      until = std::min(until, head.states_until);
      from = std::max(from, head.cotangents_from);
      for (const std::size_t tensor : {2U, 3U, 4U}) look(tensor, h, head.cotangents_from, head.states_until);
      look(5, h, 0, head.cotangents_from == 0 ? tokens_ : 0);
    }
    // dq needs the states alone.
    look(0, 0, 0, until);
    look(1, 0, from, until);
    whole_ = until == tokens_ && from == 0;
  }

  /// Whether what is open is so little that its elements are run by themselves.
  [[nodiscard]] bool is_little(int bits) const {
    if (!some || !whole_ || many_) return false;
    std::size_t vectors = 0;
    for (const auto& e : open_) vectors += vectors_of(p_, e.at);
    return vectors * (bits <= 106 ? 4 : 1) <= std::max<std::size_t>(p_.value_dim(), 16);
  }
  void refine(std::size_t sequence_index, std::size_t key_head, int bits) {
    std::vector<gradient_element> elements;
    for (const auto& e : open_) elements.push_back(e.at);
    head_part found;
    if (!run_elements(p_, sequence_index, key_head, bits, elements, q_.stop, found)) return;
    std::vector<open_element> left;
    for (std::size_t n = 0; n < open_.size(); ++n) {
      if (!place(open_[n], found, n)) left.push_back(open_[n]);
    }
    open_ = std::move(left);
    const bool exact = bits > 106 && std::all_of(found.radius.begin(), found.radius.end(), [](double r) { return r == 0; });
    best.elements = exact ? "exact" : bits <= 106 ? "double-double" : "mpfr-" + std::to_string(bits);
  }

 private:
  static constexpr std::size_t most_open = 1000;

  [[nodiscard]] head_part& part(std::size_t tensor, std::size_t h) {
    if (tensor == 0) return best.q;
    if (tensor == 1) return best.k;
    auto& head = best.heads[h];
    return tensor == 2 ? head.v : tensor == 3 ? head.beta : tensor == 4 ? head.g : head.initial_state;
  }
  [[nodiscard]] const std::optional<format>& format_of(std::size_t tensor) const {
    return tensor == 5 ? q_.round_state : q_.round_output;
  }
  /// What an element certainly rounds to, NaN where that is open: a double, as copies of what may hold one take longer than the
  /// rest.
  [[nodiscard]] static double rounded(const head_part& from, std::size_t i, const format& to) {
    if (const auto far = rounded_far_from_a_tie(from, i, to)) return *far;
    return decided_rounding(from, i, to).value_or(std::numeric_limits<double>::quiet_NaN());
  }

  /// Notes what is open between two tokens (of an initial state: all, if there is one), and rounds what lies outside too.
  void look(std::size_t tensor, std::size_t h, std::size_t from, std::size_t until) {
    head_part& x = part(tensor, h);
    const auto& to = format_of(tensor);
    const std::size_t count = x.value.size(), width = tokens_ == 0 || tensor == 5 ? 0 : count / tokens_;
    const std::size_t first = tensor == 5 ? 0 : from * width,
                      last = tensor == 5 ? (until == tokens_ ? count : 0) : std::max(from, until) * width;
    double allowed = std::numeric_limits<double>::max();
    if (q_.relative_radius < std::numeric_limits<double>::infinity()) {
      double most = 0;
      for (std::size_t i = first; i < last; ++i) most = std::max(most, std::fabs(x.value[i]));
      allowed = std::min(allowed, q_.relative_radius * most);
    }
    for (std::size_t i = rounds_ ? 0 : first; i < (rounds_ ? count : last); ++i) {
      bool is_known = x.radius[i] <= allowed;
      if (to && (is_known || rounds_)) {
        const double one = rounded(x, i, *to);
        is_known = is_known && !std::isnan(one);
        if (rounds_) x.value[i] = one;
      }
      if (is_known || i < first || i >= last) continue;
      if (open_.size() < most_open) {
        open_.push_back({{tensor, h, i}, allowed});
      } else {
        many_ = true;
        if (!rounds_) return;
      }
    }
    if (rounds_) x.low.clear();
  }

  /// Puts number n of `from` where it belongs; whether it answers.
  [[nodiscard]] bool place(const open_element& e, const head_part& from, std::size_t n) {
    head_part& x = part(e.at.tensor, e.at.head);
    const auto& to = format_of(e.at.tensor);
    const std::size_t i = e.at.index;
    if (!(from.radius[n] <= x.radius[i])) return false;
    const double one = to ? rounded(from, n, *to) : 0;
    x.radius[i] = from.radius[n];
    if (rounds_) {
      x.value[i] = one;
      return !std::isnan(one);
    }
    x.value[i] = from.value[n];
    while (x.low.size() < from.low.size()) x.low.emplace_back(x.value.size(), 0.0);
    for (std::size_t c = 0; c < x.low.size(); ++c) x.low[c][i] = c < from.low.size() ? from.low[c][n] : 0.0;
    return from.radius[n] <= e.allowed && !std::isnan(one);
  }

  const problem& p_;
  const question& q_;
  bool rounds_;
  std::size_t tokens_;
  std::vector<open_element> open_;
  bool many_ = false;   // more are open than those
  bool whole_ = false;  // nothing diverges
};

/// Whether fp64 may answer: many numbers to be rounded to 24 bits and more hold some whose radius contains a tie.
bool is_worth_fp64(const problem& p, std::size_t tokens, const question& q) {
  constexpr std::size_t many = 1 << 16;
  const bool fine = q.round_output && q.round_output->precision >= 24 && q.max_bits > 53;
  return !fine || tokens * p.num_householder * p.key_dim() < many;
}

void place(reference_tensor& to, const solved_gradient& from) {
  const reference_tensor& part = from.part;
  while (to.low.size() < part.low.size()) to.low.emplace_back(to.value.size(), 0.0);
  for (std::size_t i = 0; i < part.value.size(); ++i) {
    const std::size_t where = from.first + i / from.width * from.stride + i % from.width;
    to.value[where] = part.value[i];
    to.radius[where] = part.radius[i];
    for (std::size_t c = 0; c < part.low.size(); ++c) to.low[c][where] = part.low[c][i];
  }
}

void give_group(const problem& p, std::size_t sequence_index, std::size_t key_head, const solved_group& g,
                const std::function<void(const solved_gradient&)>& sink) {
  const sequence_range range = sequence_at(p, sequence_index);
  const std::size_t H = p.key_heads(), HV = p.value_heads(), K = p.key_dim(), V = p.value_dim(), group = HV / H;
  const std::size_t token = range.batch * p.tokens() + range.first_token,
                    row = range.batch * p.steps() + range.first_token * p.num_householder;
  sink({"dq", g.q, (token * H + key_head) * K, H * K, K});
  sink({"dk", g.k, (row * H + key_head) * K, H * K, K});
  for (std::size_t i = 0; i < g.heads.size(); ++i) {
    const std::size_t h = key_head * group + i, channels = p.gate_per_channel() ? K : 1;
    sink({"dv", g.heads[i].v, (row * HV + h) * V, HV * V, V});
    sink({"dbeta", g.heads[i].beta, row * HV + h, HV, 1});
    if (p.g) sink({"dg", g.heads[i].g, (token * HV + h) * channels, HV * channels, channels});
    if (p.initial_state) sink({"dinitial_state", g.heads[i].initial_state, (sequence_index * HV + h) * K * V, K * V, K * V});
  }
}

reference_tensor zeros_like(const tensor& t) {
  return {t.shape(), std::vector<double>(t.size()), {}, std::vector<double>(t.size(), std::numeric_limits<double>::infinity())};
}

}  // namespace

reference_gradients solve_gradients(const problem& p, const question& q) {
  std::map<std::string, reference_tensor, std::less<>> tensors;
  tensors.emplace("dq", zeros_like(p.q));
  tensors.emplace("dk", zeros_like(p.k));
  tensors.emplace("dv", zeros_like(p.v));
  tensors.emplace("dbeta", zeros_like(p.beta));
  if (p.g) tensors.emplace("dg", zeros_like(*p.g));
  if (p.initial_state) tensors.emplace("dinitial_state", zeros_like(*p.initial_state));
  std::mutex lock;  // a new component changes the tensors themselves
  reference_gradients out = solve_gradients_by_group(p, q, gradient_form::numbers, [&](const solved_gradient& part) {
    const std::lock_guard guard(lock);
    place(tensors.find(part.name)->second, part);
  });
  out.tensors = std::move(tensors);
  return out;
}

reference_gradients solve_gradients_by_group(const problem& p, const question& q, gradient_form form,
                                             const std::function<void(const solved_gradient&)>& sink) {
  reference_gradients out;
  const std::size_t jobs = p.sequence_count() * p.key_heads();
  std::mutex lock;
  std::size_t done = 0;
  parallel_for(jobs, q.threads, [&](std::size_t job) {
    const std::size_t n = job / p.key_heads(), h = job % p.key_heads(), tokens = sequence_at(p, n).tokens;
    asked_group asked(p, q, form, tokens);
    const auto open = [&] { return !asked.answered() && !(q.stop && q.stop->load()); };
    const auto run = [&](int bits) {
      solved_group now;
      if (asked.is_little(bits)) return asked.refine(n, h, bits);
      if (run_group(p, n, h, bits, q.range.state, q.stop, now)) asked.take(std::move(now));
    };
    for (const int bits : {53, 106}) {
      const bool tried = bits == 53 ? is_worth_fp64(p, tokens, q) : true;
      if (tried && bits <= q.max_bits && open()) run(bits);
    }
    // What two tiers leave open is most likely a tie or a zero, which exact numbers alone decide.
    int exact = 0;
    if (open() && (q.always_exact || q.max_bits >= tiers[0])) exact = whole_bits(bits_of_exact_run(p, n, h));
    if (exact > 0 && exact <= most_exact_bits_of_groups) run(exact);
    for (const int bits : tiers) {
      if (bits <= q.max_bits && open()) run(bits);
    }
    if (exact > most_exact_bits_of_groups && open() && asked.is_little(exact)) asked.refine(n, h, exact);
    if (q.stop && q.stop->load()) return;
    const solved_group& best = asked.best;
    if (asked.some) give_group(p, n, h, best, sink);
    const std::lock_guard guard(lock);
    if (asked.some) {
      for (std::size_t i = 0; i < best.heads.size(); ++i) {
        const auto& head = best.heads[i];
        if (head.states_until == tokens && head.cotangents_from == 0) continue;
        out.divergences.push_back({n, h * best.heads.size() + i, head.states_until, head.cotangents_from});
      }
      ++out.tiers[best.elements.empty() ? best.tier : best.tier + " and elements in " + best.elements];
    }
    if (!asked.answered()) ++out.unanswered;
    if (q.progress) q.progress(++done, jobs);
  });
  std::sort(out.divergences.begin(), out.divergences.end(), [](const gradient_divergence& a, const gradient_divergence& b) {
    return std::tie(a.sequence, a.value_head) < std::tie(b.sequence, b.value_head);
  });
  out.stopped = q.stop && q.stop->load();
  return out;
}

}  // namespace deltaproof
