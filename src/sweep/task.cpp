// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
#include <cmath>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "deltaproof/check/request.hpp"
#include "deltaproof/emulate/emulate.hpp"
#include "deltaproof/emulate/faults.hpp"
#include "deltaproof/files/text_hash.hpp"
#include "deltaproof/inputs/regimes.hpp"
#include "deltaproof/oracle/lower.hpp"
#include "deltaproof/referee/inverse_cost.hpp"
#include "deltaproof/sweep/sweep.hpp"
#include "support/json_number.hpp"

namespace deltaproof {
namespace {

using json = nlohmann::ordered_json;

/// A combination of axes that is no problem, or that the plan does not cover.
struct no_such_task : error {
  using error::error;
};

generation generation_of(const sweep_task& t) {
  generation g;
  g.regime = t.on("regime");
  const auto size = [&t](std::string_view axis, std::optional<std::size_t>& to) {
    if (const std::string word = t.on(axis); !word.empty()) to = std::stoull(word);
  };
  const auto word = [&t](std::string_view axis, std::optional<std::string>& to) {
    if (const std::string found = t.on(axis); !found.empty()) to = found;
  };
  if (const std::string seed = t.on("seed"); !seed.empty()) g.seed = std::stoull(seed);
  if (const std::string op = t.on("op"); !op.empty()) g.op = op_named(op);
  if (const std::string rule = t.on("rule"); !rule.empty()) g.rule = rule_named(rule);
  if (const std::string dtype = t.on("dtype"); !dtype.empty()) g.dtype = format_named(dtype);
  size("B", g.batch);
  size("T", g.tokens);
  size("K", g.key_dim);
  size("V", g.value_dim);
  size("H", g.key_heads);
  size("HV", g.value_heads);
  size("num_householder", g.num_householder);
  word("beta", g.beta);
  word("gate", g.gate);
  word("initial_state", g.initial_state);
  word("law", g.law);
  return g;
}

/// How a task's kernel is emulated, as the options of `emulate` state it.
struct emulated_kernel {
  plan declared;
  path_kind path = path_kind::chunk;
  std::size_t chunk = 0, variant = 0;
  emulation_options options;
};

emulated_kernel kernel_of(const campaign& c, const sweep_task& t) {
  emulated_kernel k{plan_of(c, t.on("plan")), path_kind::chunk, 0, 0, {}};
  k.path = t.on("path").empty() ? k.declared.path.front() : path_named(t.on("path"));
  k.chunk = t.on("chunk").empty() ? usual_chunk(k.declared, k.path) : std::stoull(t.on("chunk"));
  if (const std::string variant = t.on("variant"); !variant.empty()) k.variant = std::stoull(variant);
  k.options.stages = true;
  // Another build of the same arithmetic than the one that limits are drawn from, which is what a kernel is.
  k.options.noise_ulps = t.on("noise").empty() ? 1 : std::strtod(t.on("noise").c_str(), nullptr);
  if (const std::string seed = t.on("seed"); !seed.empty()) k.options.seed = std::stoull(seed);
  if (const std::string fault = t.on("fault"); !fault.empty()) k.options.planted = &fault_named(fault);
  return k;
}

result run_kernel(const emulated_kernel& k, const problem& p, const std::string& problem_sha256, const std::atomic<bool>* stop) {
  const std::vector<plan_variant> allowed = variants(k.declared, p, k.path, k.chunk);
  if (k.variant >= allowed.size())
    throw no_such_task(
        "variant " + std::to_string(k.variant) + ": on this problem the plan has " +
        (allowed.size() == 1 ? "1 variant, number 0" : std::to_string(allowed.size()) + " variants, numbered from 0"));
  emulation_options how = k.options;
  const std::string why = how.planted == nullptr ? "" : why_impossible(*how.planted, p, k.path);
  if (!why.empty()) throw no_such_task("the fault " + std::string(how.planted->name) + " cannot happen here: " + why);
  how.stop = stop;
  result out = emulate(p, allowed[k.variant], how, 1);
  if (!k.declared.kernels.empty()) out.kernel = k.declared.kernels.front();
  out.problem_sha256 = problem_sha256;
  return out;
}

/// What is judged, and by what.
struct judged_pair {
  problem p;
  result r;
  std::string problem_sha256, result_sha256;
  std::vector<plan> plans;
};

judged_pair drawn_pair(const campaign& c, const sweep_task& t, const std::atomic<bool>* stop) {
  try {
    judged_pair out;
    out.p = generate(generation_of(t));
    out.problem_sha256 = sha256_hex(problem_bytes(out.p));
    const emulated_kernel k = kernel_of(c, t);
    require_fit(k.declared, out.p, k.path, k.chunk);
    out.r = run_kernel(k, out.p, out.problem_sha256, stop);
    out.plans.push_back(plan_of(c, t.plan));
    require_fit(out.plans.back(), out.p, k.path, k.chunk);
    return out;
  } catch (const error& e) {
    throw no_such_task(refusal_in("", e.what()));
  }
}

judged_pair recorded_pair(const campaign& c, const sweep_task& t) {
  const suite_case& recorded = c.cases[t.recording];
  const std::filesystem::path folder = c.file.parent_path();
  judged_pair out;
  notes_list unread;
  const safetensors_file problem_file = read_safetensors(folder / recorded.problem);
  out.p = parse_problem(problem_file, unread);
  out.problem_sha256 = sha256_hex(problem_file.bytes());
  const safetensors_file result_file = read_safetensors(folder / recorded.result);
  out.r = parse_result(result_file, out.p, out.problem_sha256, unread);
  out.result_sha256 = sha256_hex(result_file.bytes());
  if (recorded.no_plan) return out;
  if (t.plan.empty()) {
    out.plans = plans_of(out.r, out.p);
  } else {
    out.plans.push_back(plan_of(c, t.plan));
    require_fit(out.plans.back(), out.p, path_of(out.r), out.r.chunk_size.value_or(0));
  }
  return out;
}

json worst_of(const plan_report& plan) {
  const limit_share* worst = nullptr;
  const std::vector<limit_share> shares = shares_of(plan);
  for (const limit_share& s : shares) {
    if (worst == nullptr || !(s.share <= worst->share)) worst = &s;
  }
  if (worst == nullptr) return nullptr;
  return {{"tensor", worst->tensor}, {"norm", name_of(worst->norm)}, {"share", detail::json_number(worst->share)}};
}

void add_verdict(json& j, const check_report& report) {
  j["verdict"] = name_of(report.judged);
  j["reason"] = report.reason;
  const bool planned = report.conformance.has_value();
  j["plan"] = planned ? json(report.conformance->plan) : json(nullptr);
  j["first_bad"] =
      planned && !report.conformance->first_bad_stage.empty() ? json(report.conformance->first_bad_stage) : json(nullptr);
  j["worst"] = planned ? worst_of(*report.conformance) : json(nullptr);
  j["adequate"] = planned && report.conformance->adequacy.judged ? json(report.conformance->adequacy.adequate) : json(nullptr);
  json errors = json::object();
  for (const tensor_report& tensor : report.tensors) {
    errors[tensor.name] = {{"max_abs", detail::json_number(tensor.errors.max_abs.upper)},
                           {"rel_fro", detail::json_number(tensor.errors.rel_fro.upper)}};
  }
  j["errors"] = std::move(errors);
}

/// The largest of errors in units of something, of several tensors or ranges.
class largest_score {
 public:
  explicit largest_score(search_goal goal) : goal_(goal) {}
  void take(const std::string& what, double share) {
    // A NaN is as far off as anything can be.
    const double value = std::isnan(share) ? HUGE_VAL : share;
    if (share_ && value <= *share_) return;
    what_ = what;
    share_ = value;
  }
  [[nodiscard]] json as_json() const {
    if (!share_) return nullptr;
    return {{"tensor", what_}, {"norm", name_of(goal_)}, {"share", detail::json_number(*share_)}};
  }

 private:
  search_goal goal_;
  std::string what_;
  std::optional<double> share_;
};

double distance(const tensor& a, const tensor& b) {
  const std::vector<double> first = a.to_doubles(), second = b.to_doubles();
  double apart = 0, size = 0;
  for (std::size_t i = 0; i < second.size(); ++i) {
    apart += (first[i] - second[i]) * (first[i] - second[i]);
    size += second[i] * second[i];
  }
  return apart == 0 ? 0 : std::sqrt(apart / size);
}

/// |a - b| / |b| of the outputs of a kernel of `plan` and one of `against`.
void take_distance(const campaign& c, const sweep_task& t, const judged_pair& pair, const std::atomic<bool>* stop,
                   largest_score& out) {
  sweep_task other = t;
  for (auto& [name, value] : other.at) {
    if (name == "plan") value = t.on("against");
  }
  const result second = [&] {
    try {
      const emulated_kernel k = kernel_of(c, other);
      require_fit(k.declared, pair.p, k.path, k.chunk);
      return run_kernel(k, pair.p, pair.problem_sha256, stop);
    } catch (const error& e) {
      throw no_such_task(e.what());
    }
  }();
  if (pair.r.has_outputs() && second.has_outputs()) out.take("o", distance(pair.r.o, second.o));
  if (pair.r.final_state && second.final_state)
    out.take("final_state", distance(*pair.r.final_state_kv(), *second.final_state_kv()));
}

/// What the search makes large, of a task that was judged.
json score_of(const campaign& c, const sweep_task& t, const judged_pair& pair, const check_report& report,
              const std::atomic<bool>* stop) {
  largest_score out(c.search->goal);
  if (c.search->goal == search_goal::distance) {
    take_distance(c, t, pair, stop, out);
    return out.as_json();
  }
  if (!report.conformance) return nullptr;
  const adequacy_report& adequacy = report.conformance->adequacy;
  if (c.search->goal == search_goal::limits) {
    for (const limit_share& s : shares_of(*report.conformance)) out.take(s.tensor, s.share);
  } else if (c.search->goal == search_goal::error && adequacy.judged) {
    out.take(adequacy.worst_tensor.empty() ? "o" : adequacy.worst_tensor,
             t.judge.accuracy ? adequacy.worst_error / *t.judge.accuracy : adequacy.worst_ratio / allowed_ratio);
  } else if (c.search->goal == search_goal::intermediate) {
    for (const range_report& r : adequacy.ranges) {
      if (r.known != "bound" && std::isfinite(r.limit) && r.limit != 0) out.take(r.what, r.reaches / r.limit);
    }
  }
  return out.as_json();
}

json head_of(const campaign& c, const sweep_task& t) {
  json axes = json::object();
  for (const auto& [name, value] : t.at) axes[name] = value;
  return {{"key", t.key},     {"build", c.build}, {"task", t.line}, {"axes", std::move(axes)}, {"expect", name_of(t.expect)},
          {"state", "judged"}};
}

}  // namespace

std::string payload_head(const campaign& c, const sweep_task& t) { return head_of(c, t).dump(); }

std::string command_of(const campaign& c, const sweep_task& t) {
  const auto option = [](const std::string& name, const std::string& value) {
    return value.empty() ? "" : " --" + name + " " + shell_quoted(value);
  };
  if (c.kind == campaign_kind::recordings) {
    const suite_case& recorded = c.cases[t.recording];
    return "deltaproof check " + shell_quoted(recorded.problem.string()) + " " + shell_quoted(recorded.result.string()) +
           (recorded.no_plan ? " --no-plan" : "") + option("plan", t.plan) + options_text(t.judge);
  }
  if (c.kind == campaign_kind::study)
    return "deltaproof study " + shell_quoted(t.on("study")) + (t.on("mode") == "full" ? " --full" : "") +
           option("seed", t.on("seed"));
  std::string gen = "deltaproof gen";
  for (const char* const axis : {"regime", "op", "rule", "dtype", "beta", "gate", "law", "initial_state", "B", "T", "K", "V", "H",
                                 "HV", "num_householder", "seed"}) {
    std::string name = axis;
    for (char& letter : name) letter = letter == '_' ? '-' : letter;
    gen += option(name, t.on(axis));
  }
  std::string emulate = "deltaproof emulate problem.safetensors";
  for (const char* const axis : {"plan", "fault", "path", "chunk", "variant"}) {
    if (std::string_view(axis) == "chunk" && !t.on(axis).empty() && kernel_of(c, t).path != path_kind::chunk)
      continue;  // which emulate refuses
    emulate += option(axis, t.on(axis));
  }
  emulate += option("noise", t.on("noise").empty() ? "1" : t.on("noise")) + option("seed", t.on("seed"));
  return gen + " -o problem.safetensors && " + emulate + " -o result.safetensors && deltaproof check problem.safetensors" +
         " result.safetensors" + option("plan", t.plan) + options_text(t.judge);
}

std::optional<std::string> run_task(const campaign& c, const sweep_task& t, const std::atomic<bool>* stop) {
  if (c.kind == campaign_kind::study)
    throw format_error(c.file.string() +
                       ": campaigns of kind study are run by the program, not by this library; use deltaproof sweep");
  json j = head_of(c, t);
  const auto without_verdict = [&j, &c](const char* state, std::string why) {
    // A result says nothing of where the campaign lay.
    const std::string folder = c.file.parent_path().string() + "/";
    for (std::size_t found = why.find(folder); folder.size() > 1 && found != std::string::npos; found = why.find(folder, found))
      why.erase(found, folder.size());
    j["state"] = state;
    j["verdict"] = nullptr;
    j["reason"] = why;
  };
  const auto stopped = [stop] { return stop != nullptr && *stop; };
  try {
    const judged_pair pair = c.kind == campaign_kind::recordings ? recorded_pair(c, t) : drawn_pair(c, t, stop);
    if (stopped()) return {};
    check_options how;
    how.judge = t.judge;
    how.plans = pair.plans;
    how.threads = 1;
    how.stop = stop;
    const check_report report = check(pair.p, pair.r, how);
    add_verdict(j, report);
    if (c.search && !stopped()) j["score"] = score_of(c, t, pair, report, stop);
    j["problem_sha256"] = pair.problem_sha256;
    j["result_sha256"] = pair.result_sha256.empty() ? json(nullptr) : json(pair.result_sha256);
  } catch (const no_such_task& e) {
    without_verdict("skipped", e.what());
  } catch (const error& e) {
    without_verdict("failed",
                    refusal_in(c.kind == campaign_kind::recordings ? c.cases[t.recording].problem.string() : "", e.what()));
  }
  if (stopped()) return {};
  j["command"] = command_of(c, t);
  return j.dump(-1, ' ', false, json::error_handler_t::replace);
}

}  // namespace deltaproof
