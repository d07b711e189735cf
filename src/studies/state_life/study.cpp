// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// Servers on trial: for each invariant a correct one and faulty ones, each run over the calls that `gen --for` would ask for,
// then judged by the invariant.

#include "deltaproof/check/invariant.hpp"
#include "deltaproof/check/invariant_set.hpp"
#include "deltaproof/emulate/emulate_gradients.hpp"
#include "deltaproof/emulate/faults.hpp"
#include "deltaproof/inputs/regimes.hpp"
#include "studies/state_life/servers.hpp"

namespace deltaproof {
namespace {

using namespace detail::state_life;

/// What stands in a trial's place of a fault where the server is correct, and where its inputs can show nothing.
constexpr std::string_view correct = "correct", silent = "silent";

struct trial {
  invariant_kind kind;
  std::string_view fault;  ///< or `correct`, or `silent`: a correct server on inputs that make the invariant vacuous
};

/// A gate that remembers, and one that forgets at once.
constexpr const char* slow = "-0.01";
constexpr const char* quick = "-20";
constexpr std::size_t key_dim = 16, value_dim = 12, heads = 2, chunk = 64;
constexpr std::size_t few_tokens = 70, some_tokens = 160, many_tokens = 200;

problem drawn(std::size_t tokens, std::uint64_t seed, const std::string& gate = slow, std::size_t batch = 1,
              bool cotangents = false) {
  generation g;
  g.op = op_kind::gated_delta_rule;
  g.gate = gate;
  g.batch = batch;
  g.tokens = tokens;
  g.key_dim = key_dim;
  g.value_dim = value_dim;
  g.key_heads = g.value_heads = heads;
  g.initial_state = "normal";
  g.cotangents = cotangents;
  g.seed = seed;
  return generate(g);
}

tensor changed(const tensor& t, const std::function<double(std::size_t, double)>& by) {
  std::vector<double> values = t.to_doubles();
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = by(i, values[i]);
  return tensor_of(t.element_format(), t.shape(), std::move(values), t.name());
}
tensor zeros_like(const tensor& t) {
  return changed(t, [](std::size_t, double) { return 0.0; });
}
/// Entry i is what stood `by` entries later, round and round.
tensor rotated(const tensor& t, std::size_t by) {
  return changed(t, [&](std::size_t i, double) { return t.at((i + by) % t.size()); });
}
/// Nothing to read, nothing written: outputs are zero.
problem without_values(problem p) {
  p.v = zeros_like(p.v);
  p.initial_state = zeros_like(*p.initial_state);
  return p;
}

using calls_done = std::map<std::string, recorded_run>;
/// A kernel: what one call gives. A server: the state that a call starts from.
using kernel = std::function<recorded_run(const problem&, const set_call&, const calls_done&)>;
using server = std::function<tensor(const recorded_run& before, const set_call& next)>;

recorded_run called(const problem& p, const set_call& call) {
  const bool recurrent = call.path == path_kind::recurrent;
  return emulated(p, recurrent ? "fla-recurrent-gdn" : "fla-chunk-gdn", recurrent ? 0 : chunk, call.name);
}
recorded_run correct_call(const problem& p, const set_call& call, const calls_done&) { return called(p, call); }
/// A call that reads another problem than it was given.
recorded_run misread(const problem& given, const problem& read, const set_call& call) {
  recorded_run out = called(read, call);
  out.given = given;
  return out;
}
tensor state_after(const recorded_run& before, std::size_t tokens) {
  return *called(cut(before.given, 0, tokens, before.given.initial_state), {"", "", before.given}).gave.final_state;
}
tensor correct_state(const recorded_run& before, const set_call& next) { return state_after(before, next.kept.front()); }

/// The calls in their order, as `record_set` makes them.
recorded_set recorded(invariant_kind kind, const std::vector<set_call>& calls, const kernel& run, const server& restore) {
  calls_done done;
  recorded_set out{kind, {}, {}};
  for (const set_call& c : calls) {
    problem p = c.given;
    if (!c.after.empty()) p.initial_state = restore(done.at(c.after), c).named("initial_state");
    const recorded_run& made = done[c.name] = run(p, c, done);
    if (c.name == "whole") {
      out.whole = made;
    } else {
      out.parts.push_back(made);
    }
  }
  return out;
}

struct faulty {
  std::string_view name;
  kernel run = correct_call;
  server restore = correct_state;
};

/// The fault is made in the call of that name alone.
kernel in_call(std::string name, kernel wrong) {
  return [name = std::move(name), wrong = std::move(wrong)](const problem& p, const set_call& c, const calls_done& done) {
    return c.name == name ? wrong(p, c, done) : called(p, c);
  };
}
/// The last call's result, changed after the kernel made it.
kernel afterwards(std::string name, const std::function<void(result&)>& spoil) {
  return in_call(std::move(name), [spoil](const problem& p, const set_call& c, const calls_done&) {
    recorded_run out = called(p, c);
    spoil(out.gave);
    return out;
  });
}

/// Of a batch, in the call that has its sequences in another order.
std::vector<faulty> batch_faults() {
  const std::size_t state = heads * key_dim * value_dim, outputs = few_tokens * heads * value_dim;
  return {{"slot-reused", in_call("turned",
                                  [=](const problem& p, const set_call& c, const calls_done&) {
                                    problem read = p;
                                    read.initial_state = rotated(*p.initial_state, state);
                                    return misread(p, read, c);
                                  })},
          {"state-runs-on", in_call("turned",
                                    [=](const problem& p, const set_call& c, const calls_done&) {
                                      problem read = p;
                                      const tensor left = *called(p, c).gave.final_state;
                                      read.initial_state = changed(*p.initial_state, [&](std::size_t i, double x) {
                                        return i < state ? x : left.at(i - state);
                                      });
                                      return misread(p, read, c);
                                    })},
          {"output-of-neighbour", afterwards("turned", [=](result& r) { r.o = rotated(r.o, outputs); })},
          {"state-of-neighbour", afterwards("turned", [=](result& r) { r.final_state = rotated(*r.final_state, state); })}};
}

std::vector<faulty> repeat_faults() {
  return {{"state-left-over", in_call("again-2",
                                      [](const problem& p, const set_call& c, const calls_done& done) {
                                        problem read = p;
                                        read.initial_state = done.at("again-1").gave.final_state->named("initial_state");
                                        return misread(p, read, c);
                                      })},
          {"other-chunk", in_call("again-2",
                                  [](const problem& p, const set_call& c, const calls_done&) {
                                    recorded_run out = emulated(p, "fla-chunk-gdn", chunk / 2, c.name);
                                    out.gave.chunk_size = chunk;
                                    return out;
                                  })},
          {"unwritten-row", afterwards("again-2",
                                       [](result& r) {
                                         const std::size_t from = r.o.size() - value_dim;
                                         r.o = changed(r.o, [&](std::size_t i, double x) { return i < from ? x : 0; });
                                       })},
          {"one-last-bit", afterwards("again-2", [](result& r) {
             r.final_state = changed(*r.final_state, [](std::size_t i, double x) { return i == 7 ? x * (1 + 0x1p-22) : x; });
           })}};
}

std::vector<faulty> path_faults() {
  std::vector<faulty> out;
  for (const char* name : {"token-decays-after-write", "token-reads-before-write", "token-predicts-nothing",
                           "token-beta-on-v-only", "token-state-stored-late"}) {
    out.push_back({name, in_call("recurrent", [name](const problem& p, const set_call& c, const calls_done&) {
                     recorded_run r = called(p, c);
                     emulation_options how;
                     how.planted = &fault_named(name);
                     const plan declared = plan_named("fla-recurrent-gdn");
                     const std::string kernel = r.gave.kernel;
                     r.gave = emulate(p, variants(declared, p, path_kind::recurrent, 0).front(), how);
                     r.gave.kernel = kernel;
                     return r;
                   })});
  }
  return out;
}

tensor transposed(const tensor& s) {
  // The bytes of a [V, K] slot read as [K, V].
  return changed(s, [&](std::size_t i, double) {
    const std::size_t in = i % (key_dim * value_dim);
    return s.at(i - in + in % value_dim * key_dim + in / value_dim);
  });
}

std::vector<faulty> rollback_faults() {
  /// The state after so many of the tokens.
  const auto after = [](std::string_view name, const std::function<std::size_t(std::size_t kept)>& tokens) -> faulty {
    return {name, correct_call, [tokens](const recorded_run& before, const set_call& next) {
              return state_after(before, tokens(next.kept.front()));
            }};
  };
  return {{"draft-kept", correct_call, [](const recorded_run& before, const set_call&) { return *before.gave.final_state; }},
          after("one-token-early", [](std::size_t kept) { return kept - 1; }),
          after("one-token-late", [](std::size_t kept) { return kept + 1; }),
          after("whole-chunks-only", [](std::size_t kept) { return kept / chunk * chunk; }),
          {"begins-again", correct_call, [](const recorded_run& before, const set_call&) { return *before.given.initial_state; }},
          {"gate-twice", correct_call, [](const recorded_run& before, const set_call& next) {
             return changed(correct_state(before, next), [](std::size_t, double x) { return x * std::exp(-0.01); });
           }}};
}

/// Of the last call alone, where the state before is of the tokens of several calls.
faulty at_last(std::string_view name, const server& wrong) {
  return {name, correct_call, [wrong](const recorded_run& before, const set_call& next) {
            return next.name == "call-3" ? wrong(before, next) : correct_state(before, next);
          }};
}
/// Likewise: the right state, spoilt.
faulty spoilt_at_last(std::string_view name, const std::function<tensor(const tensor&)>& by) {
  return at_last(name, [by](const recorded_run& before, const set_call& next) { return by(correct_state(before, next)); });
}
faulty spoilt_at_last(std::string_view name, const std::function<double(std::size_t, double)>& by) {
  return spoilt_at_last(name, [by](const tensor& s) { return changed(s, by); });
}

std::vector<faulty> snapshot_faults(std::uint64_t seed) {
  return {at_last("slot-of-another-sequence",
                  [seed](const recorded_run&, const set_call& next) {
                    return *called(drawn(some_tokens, seed + 2), {"", "", next.given}).gave.final_state;
                  }),
          spoilt_at_last("slot-of-another-head", [](const tensor& s) { return rotated(s, key_dim * value_dim); }),
          spoilt_at_last("never-restored", zeros_like),
          spoilt_at_last("never-written", [](std::size_t, double) { return std::nan(""); }),
          at_last("call-before", [](const recorded_run& before, const set_call&) { return *before.given.initial_state; }),
          at_last("saved-before-last-token",
                  [](const recorded_run& before, const set_call& next) { return state_after(before, next.kept.front() - 1); }),
          spoilt_at_last("transposed", transposed),
          spoilt_at_last("scale-of-another-tile", [](std::size_t i, double x) { return i / value_dim == 5 ? 1.5 * x : x; }),
          spoilt_at_last("undeclared-e4m3", [](std::size_t, double x) { return round_nearest(x, e4m3); })};
}

constexpr std::pair<std::string_view, ring_fault> ring_faults[] = {{"lost-flush", ring_fault::lost_flush},
                                                                   {"last-entry-lost", ring_fault::last_entry_lost},
                                                                   {"gate-twice", ring_fault::gate_twice},
                                                                   {"entry-of-last-lap", ring_fault::entry_of_last_lap},
                                                                   {"scale-of-another-row", ring_fault::foreign_scale},
                                                                   {"unsaved-tail", ring_fault::unsaved_tail},
                                                                   {"flush-early", ring_fault::flush_early}};
constexpr std::pair<std::string_view, rank_fault> rank_faults[] = {{"transition-transposed", rank_fault::transposed},
                                                                   {"gate-twice", rank_fault::gate_twice},
                                                                   {"history-lost", rank_fault::history_lost},
                                                                   {"rank-skipped", rank_fault::rank_skipped},
                                                                   {"summary-of-another-head", rank_fault::foreign_head},
                                                                   {"summary-without-last-token", rank_fault::tail_token_lost},
                                                                   {"summary-not-from-zeros", rank_fault::not_from_zeros}};
constexpr const char* gradient_faults[] = {"dht-ignored", "do-of-next-head", "do-late-by-a-token", "dh0-unwritten",
                                           "dg-without-cumsum"};

std::vector<faulty> faults_of(invariant_kind kind, std::uint64_t seed) {
  if (kind == invariant_kind::batch) return batch_faults();
  if (kind == invariant_kind::repeat) return repeat_faults();
  if (kind == invariant_kind::path) return path_faults();
  return kind == invariant_kind::rollback ? rollback_faults() : snapshot_faults(seed);
}

/// The fault of that name, or none.
template <class Fault, std::size_t N>
Fault fault_in(const std::pair<std::string_view, Fault> (&list)[N], std::string_view name) {
  for (const auto& [known, fault] : list) {
    if (known == name) return fault;
  }
  return Fault::none;
}

invariant_report ask(const recorded_set& set) {
  invariant_options how;
  how.check.judge.power = false;
  return check_invariant(set.kind, set.whole, set.parts, how);
}

invariant_report judged_calls(const trial& t, std::uint64_t seed) {
  const bool batch = t.kind == invariant_kind::batch;
  const bool kept = t.kind == invariant_kind::rollback || t.kind == invariant_kind::snapshot;
  const std::size_t tokens = kept ? some_tokens : few_tokens;
  problem p = drawn(tokens, seed, slow, batch ? 3 : 1);
  const bool nothing = t.fault == silent;
  if (nothing && t.kind != invariant_kind::rollback) p = without_values(p);
  std::vector<set_call> calls = problems_for(t.kind, p, drawn(tokens, seed + 1), {});
  if (nothing && t.kind == invariant_kind::rollback) calls = problems_for(invariant_kind::snapshot, p, p, {2, 1});
  faulty now{t.fault};
  for (const faulty& f : faults_of(t.kind, seed)) {
    if (f.name == t.fault) now = f;
  }
  return ask(recorded(t.kind, calls, now.run, now.restore));
}

invariant_report judged_ring(const trial& t, std::uint64_t seed) {
  const problem p = t.fault == silent ? drawn(12, seed) : drawn(few_tokens, seed);
  const ring_fault fault = fault_in(ring_faults, t.fault);
  return ask({t.kind, ring_decode(p, {}, "plain"), {ring_decode(p, {16, bf16, fp32, fp32, fp32, fault}, "ring")}});
}

invariant_report judged_ranks(const trial& t, std::uint64_t seed) {
  const problem p = drawn(many_tokens, seed, t.fault == silent ? quick : slow);
  const rank_fault fault = fault_in(rank_faults, t.fault);
  return ask(
      {t.kind, emulated(p, rank_plan, chunk, "whole"), split_over_ranks(p, {{70, 140}, fold_kind::sequential, {}, fault})});
}

invariant_report judged_gradients(const trial& t, std::uint64_t seed) {
  problem p = drawn(few_tokens, seed, slow, 1, true);
  if (t.fault == silent) {
    p.d_o = zeros_like(*p.d_o);
    p.d_final_state = zeros_like(*p.d_final_state);
  }
  recorded_run run = emulated(p, "fla-chunk-gdn", chunk, "whole");
  emulation_options how;
  if (t.fault != correct && t.fault != silent) how.planted = &fault_named(t.fault);
  const std::string kernel = run.gave.kernel;
  run.gave = emulate_gradients(p, variants(plan_named("fla-chunk-gdn"), p, path_kind::chunk, chunk).front(), how);
  run.gave.kernel = kernel;
  return ask({t.kind, run, {}});
}

std::vector<trial> trials() {
  std::vector<trial> out;
  const auto add = [&](invariant_kind kind, const auto& list, const auto& name_in) {
    out.push_back({kind, correct});
    for (const auto& f : list) out.push_back({kind, name_in(f)});
    out.push_back({kind, silent});
  };
  for (const invariant_kind kind :
       {invariant_kind::batch, invariant_kind::repeat, invariant_kind::path, invariant_kind::rollback, invariant_kind::snapshot})
    add(kind, faults_of(kind, 0), [](const faulty& f) { return f.name; });
  const auto first = [](const auto& f) { return f.first; };
  add(invariant_kind::flush, ring_faults, first);
  add(invariant_kind::cp, rank_faults, first);
  add(invariant_kind::gradients, gradient_faults, [](const char* f) { return std::string_view(f); });
  return out;
}

invariant_report judged(const trial& t, std::uint64_t seed) {
  switch (t.kind) {
    case invariant_kind::flush:
      return judged_ring(t, seed);
    case invariant_kind::cp:
      return judged_ranks(t, seed);
    case invariant_kind::gradients:
      return judged_gradients(t, seed);
    default:
      return judged_calls(t, seed);
  }
}

/// What of a refuted report does not hold: its equations or identities, else the first of its runs, else tensors whose bits
/// differ.
std::string refuted_by(const invariant_report& report) {
  std::string out;
  const auto add = [&](const std::string& name) {
    if (out.find(name) == std::string::npos) out += (out.empty() ? "" : ", ") + name;
  };
  if (report.judged != verdict::refuted) return out;
  for (const state_equation& e : report.equations) {
    if (e.judged == verdict::refuted) add(e.name);
  }
  if (report.gradients) {
    for (const identity_report& i : report.gradients->identities) {
      if (i.judged == verdict::refuted) add(i.name);
    }
  }
  if (!out.empty()) return out;
  for (const judged_run& run : report.runs) {
    if (run.report.judged == verdict::refuted) return run.what;
  }
  for (const bit_comparison& c : report.bits) {
    if (c.differing > 0) add("bits of " + c.tensor);
  }
  return out;
}

/// One row a trial.
struct named_trial {
  std::string name;
  trial of;
};

void add_servers(const run_options& options, results& r) {
  grid_axis<named_trial> all{"trial", {}};
  for (const trial& t : trials()) all.quick.push_back({std::string(name_of(t.kind)) + " " + std::string(t.fault), t});
  const auto row_of = [&](const named_trial& t) -> frame_row {
    const invariant_report report = judged(t.of, options.seed);
    return {name_of(t.of.kind), t.of.fault, t.of.fault, name_of(report.judged), refuted_by(report)};
  };
  const frame& found = r.table("servers", grid(options, "servers", {"invariant", "fault", "what", "verdict", "by"}, row_of, all));
  const frame right = found.where("fault", correct), quiet = found.where("fault", silent);
  const frame planted =
      found.where([](const auto& row) { return row["fault"] != cell(correct) && row["fault"] != cell(silent); });
  const double fewest = planted.by({"invariant"}, {{"faults", "verdict", size_of}}).over("faults", least);
  r.values("verdicts", {{"fewest", static_cast<std::size_t>(fewest)},
                        {"invariants", right.size()},
                        {"hold", right.where("verdict", "holds").size()},
                        {"faults", planted.size()},
                        {"refuted", planted.where("verdict", "refuted").size()},
                        {"silent", quiet.size()},
                        {"vacuous", quiet.where("verdict", "vacuous").size()}});
}

results run(const run_options& options) { return in_parts(options, {{"servers", &add_servers}}); }

}  // namespace

extern const study state_life_study{"state-life", &run};

}  // namespace deltaproof
