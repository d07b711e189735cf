// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstddef>
#include <functional>
#include <limits>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "deltaproof/oracle/reference.hpp"
#include "oracle/solve/answer.hpp"
#include "oracle/solve/fresh.hpp"
#include "oracle/solve/stream.hpp"
#include "support/parallel.hpp"

namespace deltaproof {
namespace {

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

unsigned workers_of(const question& q) { return q.threads == 0 ? std::max(1U, std::thread::hardware_concurrency()) : q.threads; }

void require_parts(const question& q) {
  if (q.parts == 0) return;
  if (q.parts > most_parts) {
    throw domain_error("solve: parts = " + std::to_string(q.parts) + "; give at most " + std::to_string(most_parts) +
                       ": a sum of that many fp64 numbers already holds 1024 bits, the most that the reference computes");
  }
  for (const auto& to : {q.round_output, q.round_state}) {
    if (to && !(*to == fp64)) {
      throw format_error(
          "solve: with parts, each value is a sum of fp64 numbers; set round_output and round_state to fp64, not to " +
          std::string(name_of(*to)));
    }
  }
}

/// Answers every head by `one(sequence, head, threads)`; `place` is called with each and the threads it may use by the thread
/// that has it, as soon as it has it, `sink` by one at a time.
template <class One, class Place, class Sink>
reference answer_heads(const problem& p, const question& q, const One& one, const Place& place, const Sink& sink) {
  const std::size_t heads = p.value_heads(), jobs = p.sequences().size() * heads;
  const unsigned workers = workers_of(q);
  require_parts(q);
  reference out;
  std::mutex lock;
  const auto add = [](counts& to, const counts& from) {
    for (const auto& [name, count] : from) to[name] += count;
  };
  const auto run = [&](std::size_t job, unsigned threads) {
    const std::size_t n = job / heads, h = job % heads;
    if (q.stop && q.stop->load()) return;
    const head_answer head = one(n, h, threads);
    if (q.stop && q.stop->load()) return;
    place(n, h, head, threads);
    const std::lock_guard guard(lock);
    if (q.stop && q.stop->load()) return;
    sink(n, h, head);
    if (head.diverges_at) out.divergences.push_back({n, h, *head.diverges_at});
    ++out.tiers[head.tier];
    add(out.o_decided, head.o_decided);
    add(out.state_decided, head.state_decided);
    add(out.fallbacks, head.fallbacks);
    if (!head.answered) ++out.unanswered;
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

/// The same of answers that are kept as wholes.
template <class Place, class Sink>
reference answer_whole_heads(const problem& p, const question& q, const Place& place, const Sink& sink) {
  const auto as_solved = [](std::size_t n, std::size_t h, const head_answer& head) {
    const rounded_part &o = head.rounded_o, &state = head.rounded_state;
    return solved_head{n, h, head.o, head.state, o.value, state.value, o.low, state.low, o.left, state.left};
  };
  // Heads that are done, and of those at work the part that is: a large one is more than a step of a few.
  constexpr std::size_t parts = 1000;
  std::mutex lock;
  double done = 0;
  const std::size_t jobs = p.sequences().size() * p.value_heads();
  const auto advance = [&](double& own, double now) {
    const std::lock_guard guard(lock);
    done += now - own;
    own = now;
    if (q.progress) q.progress(std::min(parts * jobs, static_cast<std::size_t>(std::lround(done * parts))), parts * jobs);
  };
  return answer_heads(
      p, q,
      [&](std::size_t n, std::size_t h, unsigned threads) {
        // A pass over the tokens may leave another to do, and nothing says how many: each counts half of what was left.
        const auto tokens = static_cast<double>(std::max<std::size_t>(p.sequences()[n].tokens, 1));
        double own = 0, before = 0;
        std::size_t last = 0;
        const auto passed = [&](std::size_t through) {
          if (through <= last) before = own;
          last = through;
          advance(own, before + (1 - before) / 2 * static_cast<double>(through) / tokens);
        };
        head_answer head = answer(p, q, n, h, threads, {0, {}, passed});
        advance(own, 1);
        return head;
      },
      [&](std::size_t n, std::size_t h, const head_answer& head, unsigned threads) { place(as_solved(n, h, head), threads); },
      [&](std::size_t n, std::size_t h, const head_answer& head) { sink(as_solved(n, h, head)); });
}

/// Tokens that were passed over, of all heads: a pass over one counts half of what was left of it.
class token_progress {
 public:
  token_progress(const problem& p, const question& q) : q_{q} {
    for (const sequence_range& range : p.sequences()) all_ += range.tokens * p.value_heads();
  }

  struct head {
    std::size_t tokens = 0, last = 0;
    double before = 0, now = 0;
  };
  void passed(head& h, std::size_t tokens) {
    if (tokens <= h.last) h.before = h.now;
    h.last = tokens;
    const double all = static_cast<double>(h.tokens);
    advance(h, h.before + (all - h.before) / 2 * static_cast<double>(tokens) / std::max(all, 1.0));
  }
  void done(head& h) { advance(h, static_cast<double>(h.tokens)); }

 private:
  void advance(head& h, double now) {
    const std::lock_guard guard(lock_);
    done_ += now - h.now;
    h.now = now;
    if (q_.progress && all_ > 0) q_.progress(std::min(all_, static_cast<std::size_t>(done_)), all_);
  }

  const question& q_;
  std::mutex lock_;
  std::size_t all_ = 0;
  double done_ = 0;
};

}  // namespace

reference solve_by_head(const problem& p, const question& q, const std::function<void(const solved_head&)>& sink) {
  return answer_whole_heads(p, q, [](const solved_head&, unsigned) {}, sink);
}

reference solve_by_block(const problem& p, const question& q, const stream_sinks& sinks, std::size_t block_tokens) {
  if (block_tokens == 0 || block_tokens % chunk_tokens != 0) {
    throw domain_error("solve_by_block: blocks of " + std::to_string(block_tokens) + " tokens; give a multiple of " +
                       std::to_string(chunk_tokens) + ", at least " + std::to_string(chunk_tokens));
  }
  constexpr double infinity = std::numeric_limits<double>::infinity();
  if (!q.round_output || !q.round_state || q.relative_radius < infinity || q.range.output < infinity ||
      q.range.state < infinity) {
    throw domain_error(
        "solve_by_block: set round_output and round_state, and leave relative_radius and range infinite; for a radius or a range "
        "use solve");
  }
  const auto sequences = p.sequences();
  token_progress progress(p, q);
  return answer_heads(
      p, q,
      [&](std::size_t n, std::size_t h, unsigned threads) {
        token_progress::head own{sequences[n].tokens};
        const auto passed = [&](std::size_t tokens) { progress.passed(own, tokens); };
        const auto chunk = [&](std::size_t first, std::size_t count, const rounded_part& rounded, std::size_t base,
                               auto were_open) { sinks.chunk({n, h, first, count, rounded, base, were_open}); };
        head_answer head = answer(p, q, n, h, threads, {block_tokens, chunk, passed});
        if (q.stop && q.stop->load()) return head;
        // What was run whole takes the place of what was handed over before.
        if (head.run_whole && head.rounded_o.value.empty()) head.rounded_o.reset(own.tokens * p.value_dim(), q.parts);
        for (std::size_t t = 0; t < own.tokens && head.run_whole; t += chunk_tokens) {
          sinks.chunk({n, h, t, std::min(chunk_tokens, own.tokens - t), head.rounded_o, t * p.value_dim(), std::nullopt, true});
        }
        progress.done(own);
        return head;
      },
      [](std::size_t, std::size_t, const head_answer&, unsigned) {},
      [&](std::size_t n, std::size_t h, const head_answer& head) {
        sinks.head({n, h, head.rounded_state, head.rounded_o.left, head.rounded_state.left});
      });
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
  reference out = answer_whole_heads(
      p, q, [&](const solved_head& head, unsigned threads) { each_row(head, threads, place); },
      [&](const solved_head& head) {
        if (!head.o.low.empty() || !head.final_state.low.empty()) each_row(head, 1, place_low);
      });
  out.o = std::move(o);
  out.final_state = std::move(state);
  return out;
}

}  // namespace deltaproof
