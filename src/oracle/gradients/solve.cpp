// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
#include <algorithm>
#include <array>
#include <cmath>
#include <deque>
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

/// An element that does not answer the question, its radius, and what that may be at most.
struct open_element {
  gradient_element at;
  double radius, allowed;
};

/// What is known of the elements of a run.
struct known_elements {
  std::vector<open_element> open;
  std::size_t open_count = 0;  ///< of which `open` lists no more than most_open
  std::size_t nan_count = 0;   ///< of roundings
  std::array<double, 6> radius{-1, -1, -1, -1, -1, -1};

  static constexpr std::size_t most_open = 1000;
  [[nodiscard]] bool many() const { return open_count > most_open; }
  void leave(const open_element& e) {
    if (open_count++ < most_open) open.push_back(e);
  }
  void note_rounding(std::size_t tensor, double rounded, double left) {
    if (std::isnan(rounded))
      ++nan_count;
    else
      radius[tensor] = std::max(radius[tensor], left);
  }
};

/// One group of heads, and what is asked of it. Of roundings nothing is held.
class asked_group {
 public:
  asked_group(const problem& p, const question& q, gradient_form form, std::size_t sequence_index, std::size_t key_head,
              const gradient_sinks& sinks)
      : p_{p},
        q_{q},
        rounds_{form == gradient_form::roundings},
        sequence_{sequence_index},
        key_head_{key_head},
        tokens_{sequence_at(p, sequence_index).tokens},
        group_{p.value_heads() / p.key_heads()},
        sinks_{sinks} {}

  group_outcome best;
  std::string elements;  ///< the tier of those that were run by themselves after that, if any
  bool some = false;

  [[nodiscard]] bool answered() const { return some && known_.open.empty() && !known_.many(); }

  /// Runs the whole group.
  void run(int bits, const std::filesystem::path* beside) {
    group_outcome now;
    next_turn_ = some ? 1 - turn_ : 0;
    if (!run_group(p_, sequence_, key_head_, bits, q_.range.state, q_.stop, beside, sink_, now)) return;
    best = std::move(now);
    elements.clear();
    some = true;
    turn_ = next_turn_;
    known_ = std::move(next_);
    parts_ = std::move(next_parts_);
    for (gradient_slice& s : parts_) look(s, known_);
    whole_ = std::all_of(best.heads.begin(), best.heads.end(), [&](const group_outcome::head& head) {
      return head.states_until == tokens_ && head.cotangents_from == 0;
    });
  }

  /// Whether what is open is so little that its elements are run by themselves.
  [[nodiscard]] bool is_little(int bits) const {
    if (!some || !whole_ || known_.many()) return false;
    std::size_t vectors = 0;
    for (const auto& e : known_.open) vectors += vectors_of(p_, e.at);
    return vectors * (bits <= 106 ? 4 : 1) <= std::max<std::size_t>(p_.value_dim(), 16);
  }
  void refine(int bits) {
    std::vector<gradient_element> asked;
    for (const auto& e : known_.open) asked.push_back(e.at);
    head_part found;
    if (!run_elements(p_, sequence_, key_head_, bits, asked, q_.stop, found)) return;
    std::vector<open_element> left;
    for (std::size_t n = 0; n < known_.open.size(); ++n) {
      if (!place(known_.open[n], found, n)) left.push_back(known_.open[n]);
    }
    known_.open = std::move(left);
    known_.open_count = known_.open.size();
    const bool exact = bits > 106 && std::all_of(found.radius.begin(), found.radius.end(), [](double r) { return r == 0; });
    elements = exact ? "exact" : bits <= 106 ? "double-double" : "mpfr-" + std::to_string(bits);
  }

  /// Gives what there is.
  void settle() {
    for (const gradient_slice& s : parts_) sinks_.part(solved(s.tensor, s.head, 0, s.part));
    sinks_.settled({sequence_, key_head_, turn_, some, some && known_.nan_count == 0, known_.radius});
  }

 private:
  [[nodiscard]] solved_gradient solved(std::size_t tensor, std::size_t head, std::size_t first, const head_part& part) const {
    return {tensor, sequence_, tensor < 2 ? key_head_ : key_head_ * group_ + head, first, part, turn_};
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

  void take(gradient_slice&& s) {
    if (!rounds_) return collect(std::move(s));
    look(s, next_);
    s.part.low.clear();
    const std::size_t head = s.tensor < 2 ? key_head_ : key_head_ * group_ + s.head;
    sinks_.part({s.tensor, sequence_, head, s.first, s.part, next_turn_});
  }
  /// Numbers are kept until the whole group is known.
  void collect(gradient_slice&& s) {
    gradient_slice& whole = part_at(next_parts_, s.tensor, s.head);
    if (whole.part.value.empty()) {
      const gradient_layout at = layout_of(p_, s.tensor);
      const std::size_t count = at.rows * at.width * (s.tensor == 5 ? 1 : tokens_);
      whole = {s.tensor, s.head, 0, {}, s.states_until, s.cotangents_from};
      if (s.part.value.size() == count) {
        whole.part = std::move(s.part);
        return;
      }
      whole.part.value.resize(count);
      whole.part.radius.resize(count);
    }
    const auto copy = [&](const std::vector<double>& from, std::vector<double>& to) {
      std::copy(from.begin(), from.end(), to.begin() + static_cast<std::ptrdiff_t>(s.first));
    };
    copy(s.part.value, whole.part.value);
    copy(s.part.radius, whole.part.radius);
    while (whole.part.low.size() < s.part.low.size()) whole.part.low.emplace_back(whole.part.value.size(), 0.0);
    for (std::size_t c = 0; c < s.part.low.size(); ++c) copy(s.part.low[c], whole.part.low[c]);
  }
  [[nodiscard]] static gradient_slice& part_at(std::deque<gradient_slice>& parts, std::size_t tensor, std::size_t head) {
    const auto same = [&](const gradient_slice& s) { return s.tensor == tensor && s.head == head; };
    const auto found = std::find_if(parts.begin(), parts.end(), same);
    return found != parts.end() ? *found : parts.emplace_back();
  }

  /// Notes what is open between two tokens (of an initial state: all, if there is one), and rounds what lies outside too.
  void look(gradient_slice& s, known_elements& to) const {
    head_part& x = s.part;
    const auto& rounds_to = format_of(s.tensor);
    const gradient_layout at = layout_of(p_, s.tensor);
    const std::size_t count = x.value.size(), width = at.rows * at.width, from = s.tensor == 0 ? 0 : s.cotangents_from;
    const auto local = [&](std::size_t i) { return std::clamp(i, s.first, s.first + count) - s.first; };
    // dq needs the states alone.
    const std::size_t first = s.tensor == 5 ? 0 : local(from * width),
                      last = s.tensor == 5 ? (from == 0 ? count : 0) : local(std::max(from, s.states_until) * width);
    double allowed = std::numeric_limits<double>::max();
    if (q_.relative_radius < std::numeric_limits<double>::infinity()) {
      double most = 0;
      for (std::size_t i = first; i < last; ++i) most = std::max(most, std::fabs(x.value[i]));
      allowed = std::min(allowed, q_.relative_radius * most);
    }
    for (std::size_t i = rounds_ ? 0 : first; i < (rounds_ ? count : last); ++i) {
      bool is_known = x.radius[i] <= allowed;
      if (rounds_to && (is_known || rounds_)) {
        const double one = rounded(x, i, *rounds_to);
        is_known = is_known && !std::isnan(one);
        if (rounds_) {
          x.value[i] = one;
          to.note_rounding(s.tensor, one, x.radius[i]);
        }
      }
      if (is_known || i < first || i >= last) continue;
      to.leave({{s.tensor, s.head, s.first + i}, x.radius[i], allowed});
      if (!rounds_ && to.many()) return;
    }
  }

  /// Puts number n of `from` where it belongs; whether it answers.
  [[nodiscard]] bool place(open_element& e, const head_part& from, std::size_t n) {
    const auto& rounds_to = format_of(e.at.tensor);
    const double left = from.radius[n];
    if (!(left <= e.radius)) return false;
    const double one = rounds_to ? rounded(from, n, *rounds_to) : 0;
    e.radius = left;
    if (rounds_) {
      if (std::isnan(one)) return false;
      --known_.nan_count;
      known_.note_rounding(e.at.tensor, one, left);
      sinks_.part(solved(e.at.tensor, e.at.head, e.at.index, {{}, {one}, {}, {left}}));
      return true;
    }
    head_part& x = part_at(parts_, e.at.tensor, e.at.head).part;
    const std::size_t i = e.at.index;
    x.radius[i] = left;
    x.value[i] = from.value[n];
    while (x.low.size() < from.low.size()) x.low.emplace_back(x.value.size(), 0.0);
    for (std::size_t c = 0; c < x.low.size(); ++c) x.low[c][i] = c < from.low.size() ? from.low[c][n] : 0.0;
    return left <= e.allowed && !std::isnan(one);
  }

  const problem& p_;
  const question& q_;
  bool rounds_;
  std::size_t sequence_, key_head_, tokens_, group_;
  const gradient_sinks& sinks_;
  unsigned turn_ = 0, next_turn_ = 0;
  known_elements known_, next_;  // of the last run that was taken, of one at work
  std::deque<gradient_slice> parts_, next_parts_;
  bool whole_ = false;  // nothing diverges
  const slice_sink sink_{[this] {
                           next_ = {};
                           next_parts_.clear();
                         },
                         [this](gradient_slice&& s) { take(std::move(s)); }};
};

/// Whether fp64 may answer: many numbers to be rounded to 24 bits and more hold some whose radius contains a tie.
bool is_worth_fp64(const problem& p, std::size_t tokens, const question& q) {
  constexpr std::size_t many = 1 << 16;
  const bool fine = q.round_output && q.round_output->precision >= 24 && q.max_bits > 53;
  return !fine || tokens * p.num_householder * p.key_dim() < many;
}

/// Puts elements of a head into the whole tensor.
void place(const problem& p, reference_tensor& to, const solved_gradient& from) {
  const gradient_layout at = layout_of(p, from.tensor);
  const sequence_range range = sequence_at(p, from.sequence);
  const std::size_t row = from.tensor == 5 ? from.sequence : (range.batch * p.tokens() + range.first_token) * at.rows;
  const reference_tensor& part = from.part;
  while (to.low.size() < part.low.size()) to.low.emplace_back(to.value.size(), 0.0);
  for (std::size_t i = 0; i < part.value.size(); ++i) {
    const std::size_t own = from.first + i;
    const std::size_t where = ((row + own / at.width) * at.heads + from.head) * at.width + own % at.width;
    to.value[where] = part.value[i];
    to.radius[where] = part.radius[i];
    for (std::size_t c = 0; c < part.low.size(); ++c) to.low[c][where] = part.low[c][i];
  }
}

reference_tensor zeros_like(const tensor& t) {
  return {t.shape(), std::vector<double>(t.size()), {}, std::vector<double>(t.size(), std::numeric_limits<double>::infinity())};
}

}  // namespace

gradient_layout layout_of(const problem& p, std::size_t tensor) {
  const std::size_t n = p.num_householder, H = p.key_heads(), HV = p.value_heads(), K = p.key_dim(), V = p.value_dim();
  const gradient_layout all[] = {{1, H, K},     {n, H, K}, {n, HV, V}, {n, HV, 1}, {1, HV, p.gate_per_channel() ? K : 1},
                                 {1, HV, K * V}};
  return all[tensor];
}

const tensor* given_of(const problem& p, std::size_t tensor) {
  const auto optional = [](const std::optional<deltaproof::tensor>& t) { return t ? &*t : nullptr; };
  const deltaproof::tensor* const all[] = {&p.q, &p.k, &p.v, &p.beta, optional(p.g), optional(p.initial_state)};
  return all[tensor];
}

reference_gradients solve_gradients(const problem& p, const question& q) {
  std::map<std::string, reference_tensor, std::less<>> tensors;
  for (std::size_t i = 0; i < gradient_names.size(); ++i) {
    if (const tensor* given = given_of(p, i)) tensors.emplace(gradient_names[i], zeros_like(*given));
  }
  std::mutex lock;  // a new component changes the tensors themselves
  const auto part = [&](const solved_gradient& found) {
    const std::lock_guard guard(lock);
    place(p, tensors.find(gradient_names[found.tensor])->second, found);
  };
  reference_gradients out = solve_gradients_by_group(p, q, gradient_form::numbers, {part, [](const settled_group&) {}});
  out.tensors = std::move(tensors);
  return out;
}

reference_gradients solve_gradients_by_group(const problem& p, const question& q, gradient_form form, const gradient_sinks& sinks,
                                             const std::filesystem::path* beside) {
  reference_gradients out;
  const std::size_t jobs = p.sequence_count() * p.key_heads();
  std::mutex lock;
  std::size_t done = 0;
  parallel_for(jobs, q.threads, [&](std::size_t job) {
    const std::size_t n = job / p.key_heads(), h = job % p.key_heads(), tokens = sequence_at(p, n).tokens;
    asked_group asked(p, q, form, n, h, sinks);
    const auto open = [&] { return !asked.answered() && !(q.stop && q.stop->load()); };
    const auto run = [&](int bits) { asked.is_little(bits) ? asked.refine(bits) : asked.run(bits, beside); };
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
    if (exact > most_exact_bits_of_groups && open() && asked.is_little(exact)) asked.refine(exact);
    if (q.stop && q.stop->load()) return;
    asked.settle();
    const group_outcome& best = asked.best;
    const std::lock_guard guard(lock);
    if (asked.some) {
      for (std::size_t i = 0; i < best.heads.size(); ++i) {
        const auto& head = best.heads[i];
        if (head.states_until == tokens && head.cotangents_from == 0) continue;
        out.divergences.push_back({n, h * best.heads.size() + i, head.states_until, head.cotangents_from});
      }
      ++out.tiers[asked.elements.empty() ? best.tier : best.tier + " and elements in " + asked.elements];
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
