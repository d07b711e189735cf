// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT

#include "deltaproof/check/check.hpp"
#include "deltaproof/emulate/emulate.hpp"
#include "deltaproof/emulate/faults.hpp"
#include "deltaproof/inputs/regimes.hpp"
#include "studies/shared/common.hpp"

namespace deltaproof {
namespace {

constexpr std::size_t chunk = 64, heads = 2;

struct shape {
  op_kind op;
  format x;
  std::size_t tokens, dim;
};

double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }
double softplus(double x) { return std::max(x, 0.0) + std::log1p(std::exp(-std::fabs(x))); }

/// Standard normal numbers and what is made of them, each rounded to its format.
class source {
 public:
  source(const shape& s, std::uint64_t seed) : s_{s}, random_(seed, 0xbe4c) {
    p.op = s.op;
    p.scale = default_scale(s.dim);
  }

  problem p;  ///< to be filled

  double normal() { return random_.normal(); }
  tensor filled(const char* name, const format& f, std::size_t width, const std::function<double(std::size_t)>& value) {
    std::vector<std::size_t> dims{1, s_.tokens, heads};
    if (width > 0) dims.push_back(width);
    std::vector<double> x(s_.tokens * heads * std::max<std::size_t>(width, 1));
    for (std::size_t i = 0; i < x.size(); ++i) x[i] = round_nearest(value(i), f);
    return tensor::from_doubles(f, std::move(dims), x, name);
  }
  tensor normals(const char* name, double size = 1) {
    return filled(name, s_.x, s_.dim, [&](std::size_t) { return size * normal(); });
  }
  /// Rows of norm 1.
  tensor unit_rows(const char* name) {
    std::vector<double> row;
    return filled(name, s_.x, s_.dim, [&](std::size_t i) {
      if (i % s_.dim == 0) {
        row.resize(s_.dim);
        for (double& x : row) x = round_nearest(normal(), s_.x);
        shared::normalise(row);
      }
      return row[i % s_.dim];
    });
  }

 private:
  shape s_;
  philox random_;
};

// The laws of the tasks, as their sources state them.

problem of_kernelbench(const shape& s, std::uint64_t seed) {
  source from(s, seed);
  problem& p = from.p;
  p.q = from.normals("q", 0.1);
  p.k = from.normals("k", 0.1);
  p.v = from.normals("v", 0.1);
  p.g = from.filled("g", fp32, s.dim, [&](std::size_t) { return 0.1 * from.normal() - 0.05; });
  p.beta = from.filled("beta", s.x, 0, [&](std::size_t) { return sigmoid(from.normal()); });
  return from.p;
}

problem of_gpu_mode(const shape& s, std::uint64_t seed) {
  source from(s, seed);
  problem& p = from.p;
  p.q = from.normals("q");
  p.k = from.unit_rows("k");
  p.v = from.normals("v");
  const bool channels = gates_of(s.op) == gate_axes::channels;  // there g is normal; elsewhere its logarithm of the sigmoid
  p.g = from.filled("g", fp32, channels ? s.dim : 0,
                    [&](std::size_t) { return channels ? from.normal() : -softplus(-from.normal()); });
  p.beta = from.filled("beta", fp32, 0, [&](std::size_t) { return sigmoid(from.normal()); });
  return from.p;
}

problem of_flashinfer(const shape& s, std::uint64_t seed) {
  source from(s, seed);
  problem& p = from.p;
  p.q = from.normals("q");
  p.k = from.unit_rows("k");
  p.v = from.normals("v");
  std::vector<double> rate(heads), bias(heads);
  for (std::size_t h = 0; h < heads; ++h) {
    rate[h] = std::exp(0.1 * from.normal());
    bias[h] = 0.1 * from.normal();
  }
  p.g = from.filled("g", fp32, 0, [&](std::size_t i) {
    return -rate[i % heads] * softplus(round_nearest(from.normal(), bf16) + bias[i % heads]);
  });
  p.beta = from.filled("beta", fp32, 0, [&](std::size_t) { return sigmoid(round_nearest(from.normal(), bf16)); });
  return from.p;
}

// Tolerances, each of one element.

bool all_close(double got, double want, double absolute, double relative) {
  return std::fabs(got - want) <= absolute + relative * std::fabs(want);
}
bool either(double got, double want, double absolute, double relative) {
  const double error = std::fabs(got - want);
  return error <= absolute || error / (std::fabs(want) + 1e-8) <= relative;
}

struct task {
  std::string name;
  shape of;
  problem (*draw)(const shape&, std::uint64_t);
  bool (*close)(double got, double want, double absolute, double relative);
  double absolute, relative;
  std::vector<std::string> compared;  ///< tensors
  const char* plan;                   ///< of a kernel that does the task
};

std::vector<task> all_tasks(const run_options& options) {
  const std::size_t many = options.size(128, 256);
  constexpr op_kind kda = op_kind::kda, gdn = op_kind::gated_delta_rule;
  return {
      {"kernelbench-hard-kda", {kda, bf16, many, 128}, &of_kernelbench, &all_close, 0.05, 0.05, {"o"}, "fla-chunk-kda"},
      {"gpu-mode-kda", {kda, fp32, 128, 64}, &of_gpu_mode, &all_close, 1e-3, 1e-3, {"o"}, "public-fp32-chunk"},
      {"gpu-mode-gdn-h", {gdn, fp32, many, 64}, &of_gpu_mode, &all_close, 0.01, 0.01, {"h", "v_new"}, "public-fp32-chunk"},
      {"gpu-mode-gdn-o", {gdn, fp32, many, 64}, &of_gpu_mode, &all_close, 0.01, 0.01, {"o"}, "public-fp32-chunk"},
      {"flashinfer-bench-gdn", {gdn, bf16, 128, 128}, &of_flashinfer, &either, 0.01, 0.01, {"o", "final_state"}, "fla-chunk-gdn"},
      {"flashinfer-test-gdn", {gdn, bf16, 128, 128}, &of_flashinfer, &all_close, 0.1, 0, {"o", "final_state"}, "fla-chunk-gdn"}};
}

/// Inputs that can tell: one key, all but repeated, slow gates, a state to begin with, packed sequences, whole and partial
/// chunks, fewer heads of q and k; and keys that the kernel normalises, of norms down to 0.
std::vector<problem> telling_inputs(const task& t, std::uint64_t seed) {
  generation g;
  g.op = t.of.op;
  g.dtype = t.of.x;
  g.key_dim = t.of.dim;
  g.value_dim = t.of.dim / 2;
  g.key_heads = 1;
  g.value_heads = 2;
  g.seed = seed;
  g.initial_state = "normal";
  g.regime = "near-repeated";
  g.gate = "-0.01";
  g.tokens = 3 * chunk + 9;
  g.cu_seqlens = std::vector<std::int64_t>{0, 1, chunk + 6, 3 * chunk + 9};
  std::vector<problem> out{generate(g)};
  g.regime = "tiny-keys";
  g.gate = "typical";
  g.cu_seqlens = std::vector<std::int64_t>{};
  g.tokens = 2 * chunk + 9;
  out.push_back(generate(g));
  return out;
}

std::map<std::string, tensor> tensors_of(const result& r) {
  std::map<std::string, tensor> all(r.stages.begin(), r.stages.end());
  all.emplace("o", r.o);
  if (r.final_state) all.emplace("final_state", *r.final_state);
  return all;
}

/// A run of the plan, or of everything in fp64: what a task takes as its truth.
std::map<std::string, tensor> run_of(const problem& p, const char* plan, const fault* planted = nullptr) {
  emulation_options how;
  how.stages = true;
  how.planted = planted;
  return tensors_of(emulate(p, variants(plan_named(plan), p, path_kind::chunk, chunk).front(), how));
}

/// Whether the task accepts these tensors; zeros where there are none.
bool accepts(const task& t, const std::map<std::string, tensor>* got, const std::map<std::string, tensor>& want) {
  return std::all_of(t.compared.begin(), t.compared.end(), [&](const std::string& name) {
    const std::vector<double> due = want.at(name).to_doubles();
    const std::vector<double> is = got == nullptr ? std::vector<double>(due.size(), 0.0) : got->at(name).to_doubles();
    for (std::size_t i = 0; i < due.size(); ++i) {
      const bool same = is[i] == due[i];  // infinities too
      if (!same && !t.close(is[i], due[i], t.absolute, t.relative)) return false;
    }
    return true;
  });
}

bool same_bits(const task& t, const std::map<std::string, tensor>& a, const std::map<std::string, tensor>& b) {
  return std::all_of(t.compared.begin(), t.compared.end(), [&](const std::string& name) {
    const std::vector<double> x = a.at(name).to_doubles(), y = b.at(name).to_doubles();
    return std::equal(x.begin(), x.end(), y.begin(),
                      [](double u, double v) { return u == v || (std::isnan(u) && std::isnan(v)); });
  });
}

/// Names of the faults that a check by the plan would refute on these inputs.
std::vector<std::string> refuted_by_plan(const task& t, const problem& p) {
  const plan declared = plan_named(t.plan);
  result r = emulate(p, variants(declared, p, path_kind::chunk, chunk).front());
  r.path = path_kind::chunk;
  r.chunk_size = chunk;
  check_options how;
  how.plans = {declared};
  const check_report found = check(p, r, how);
  std::vector<std::string> out;
  if (!found.conformance) return out;
  for (const fault* f : found.conformance->power.visible) out.emplace_back(f->name);
  return out;
}

struct on_inputs {
  problem p;
  std::map<std::string, tensor> truth, clean;
  std::vector<std::string> by_plan;
};

on_inputs prepared(const task& t, problem p) {
  on_inputs in{std::move(p), {}, {}, {}};
  in.truth = run_of(in.p, "fp64");
  in.clean = run_of(in.p, t.plan);
  in.by_plan = refuted_by_plan(t, in.p);
  return in;
}

// Outcomes in the order of what they say, and answers that no fault made.
constexpr const char *no_chance = "not there", *silent = "no bit differs", *accepted = "accepted", *refused = "refused";
constexpr std::array<std::string_view, 4> outcomes{no_chance, silent, accepted, refused};
constexpr const char *correct_answer = "correct", *zero_answer = "zeros";

/// What the task's comparison says of a fault on these inputs.
std::string outcome_of(const task& t, const on_inputs& in, const fault& f) {
  if (!applies(f, in.p, path_kind::chunk)) return no_chance;
  const std::map<std::string, tensor> wrong = run_of(in.p, t.plan, &f);
  if (same_bits(t, wrong, in.clean)) return silent;
  return accepts(t, &wrong, in.truth) ? accepted : refused;
}

std::vector<frame_row> judged(const task& t, std::uint64_t seed) {
  const on_inputs own = prepared(t, t.draw(t.of, seed));
  std::vector<on_inputs> better;
  for (problem& p : telling_inputs(t, seed)) better.push_back(prepared(t, std::move(p)));
  const auto caught = [](const on_inputs& in, const fault& f) {
    return std::find(in.by_plan.begin(), in.by_plan.end(), f.name) != in.by_plan.end();
  };
  std::vector<frame_row> rows;
  for (const fault& f : faults(pass_kind::forward)) {
    if (!f.chunk) continue;
    std::string elsewhere = no_chance;
    bool plan_elsewhere = false;
    for (const on_inputs& in : better) {
      const std::string one = outcome_of(t, in, f);
      const auto rank = [](const std::string& word) { return std::find(outcomes.begin(), outcomes.end(), word); };
      if (rank(one) > rank(elsewhere)) elsewhere = one;
      plan_elsewhere = plan_elsewhere || caught(in, f);
    }
    rows.push_back({t.name, f.name, outcome_of(t, own, f), caught(own, f), elsewhere, plan_elsewhere});
  }
  const auto said = [&](const auto* got, const on_inputs& in) { return accepts(t, got, in.truth) ? accepted : refused; };
  const std::map<std::string, tensor>* const zeros = nullptr;
  rows.push_back({t.name, correct_answer, said(&own.clean, own), false, accepted, false});
  rows.push_back({t.name, zero_answer, said(zeros, own), true, said(zeros, better.front()), true});
  return rows;
}

void add_tasks(const run_options& options, results& r) {
  const grid_axis<task> tasks{"task", all_tasks(options)};
  const auto rows_of = [&](const task& t) { return judged(t, options.seed); };
  const frame& all = r.table(
      "faults", grid(options, "faults", {"task", "fault", "outcome", "by_plan", "elsewhere", "plan_elsewhere"}, rows_of, tasks));
  frame table({"task", "shown", "silent", "accepted", "missed", "zeros", "correct", "shown_elsewhere", "accepted_elsewhere",
               "missed_elsewhere"});
  for (const task& t : tasks.quick) {
    const frame of_task = all.where("task", t.name);
    const auto count = [&](bool answer, const auto& wanted) {
      const auto counts = [&](const auto& row) {
        return (row["fault"] == cell(correct_answer) || row["fault"] == cell(zero_answer)) == answer && wanted(row);
      };
      return of_task.where(counts).size();
    };
    const auto shown = [](const cell& word) { return word == cell(accepted) || word == cell(refused); };
    const auto passes = [&](const char* answer) {
      return count(true, [&](const auto& row) { return row["fault"] == cell(answer) && row["outcome"] == cell(accepted); });
    };
    const auto with = [&](const char* column, const char* word) {
      return count(false, [&](const auto& row) { return row[column] == cell(word); });
    };
    const auto missed = [&](const char* column, const char* by) {
      return count(false, [&](const auto& row) { return shown(row[column]) && row.number(by) == 0; });
    };
    table.add({t.name, count(false, [&](const auto& row) { return shown(row["outcome"]); }), with("outcome", silent),
               with("outcome", accepted), missed("outcome", "by_plan"), passes(zero_answer), passes(correct_answer),
               count(false, [&](const auto& row) { return shown(row["elsewhere"]); }), with("elsewhere", accepted),
               missed("elsewhere", "plan_elsewhere")});
  }
  const auto of = [&](const char* name, const char* column) { return table.find({{"task", name}}, column); };
  r.values("zeros",
           {{"tasks", table.size()}, {"accepting", table.over("zeros", total)}, {"correct", table.over("correct", total)}});
  r.values("faults", {{"accepted", table.over("accepted", total)},
                      {"shown", table.over("shown", total)},
                      {"missed", table.over("missed", total)},
                      {"kernelbench", of("kernelbench-hard-kda", "accepted")},
                      {"kernelbench_shown", of("kernelbench-hard-kda", "shown")}});
  r.values("inputs", {{"accepted", table.over("accepted_elsewhere", total)},
                      {"shown", table.over("shown_elsewhere", total)},
                      {"missed", table.over("missed_elsewhere", total)}});
  r.table("tasks", table);
}

results run(const run_options& options) { return in_parts(options, {{"faults", &add_tasks}}); }

}  // namespace

extern const study benchmarks_study{"benchmarks", &run};

}  // namespace deltaproof
