// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT

#include "deltaproof/check/suite.hpp"

#include <algorithm>
#include <chrono>
#include <mutex>
#include <span>
#include <thread>

#include "deltaproof/check/witness.hpp"
#include "deltaproof/files/text_hash.hpp"
#include "deltaproof/oracle/lower.hpp"
#include "support/parallel.hpp"
#include "support/text.hpp"

namespace deltaproof {
namespace {

/// The cases of one problem, by its bytes.
struct same_problem {
  std::string sha256;
  std::vector<std::size_t> cases;
};

bool is_missing(const std::filesystem::path& file) {
  std::error_code none;
  return !std::filesystem::exists(file, none);
}

std::vector<plan> plans_for(const suite_case& c, const problem& p, const result& r) {
  if (c.no_plan) return {};
  if (c.plan.empty()) return plans_of(r, p, "plan = \"...\"", "or measure errors only with no_plan = true");
  std::vector<plan> one{plan_named(c.plan)};
  require_fit(one.front(), p, path_of(r), r.chunk_size.value_or(0));
  return one;
}

/// Reads everything once before anything is judged: what cannot be is known at once, and by whom the others share a problem.
std::vector<same_problem> look_before(const suite& s, const suite_options& options, std::vector<case_report>& cases) {
  struct known_problem {
    std::optional<problem> p;
    std::string sha256, wrong;
  };
  std::map<std::filesystem::path, known_problem> problems;
  std::vector<same_problem> groups;
  std::vector<std::size_t> order(s.cases.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  // One problem is held at a time: its cases one after another, in the order of the first of each.
  std::map<std::filesystem::path, std::size_t> first;
  for (std::size_t i = 0; i < order.size(); ++i) first.try_emplace(s.cases[i].problem, i);
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return std::pair(first[s.cases[a].problem], a) < std::pair(first[s.cases[b].problem], b);
  });

  const auto fail = [&](std::size_t i, const std::string& why) {
    cases[i].state = case_state::failed;
    const bool can_skip = problems[s.cases[i].problem].p && is_missing(s.cases[i].result);
    cases[i].reason = why + (can_skip ? "; --skip-missing skips cases without a result file" : "");
  };
  const std::filesystem::path* held = nullptr;
  for (const std::size_t i : order) {
    const suite_case& c = s.cases[i];
    cases[i].what = c;
    cases[i].reason = "not begun, because the suite was stopped earlier";
    if (options.stop != nullptr && *options.stop) continue;
    known_problem& known = problems[c.problem];
    if (held == nullptr || *held != c.problem) {
      if (held != nullptr) problems[*held].p.reset();
      held = &c.problem;
      try {
        notes_list unread;
        const safetensors_file file = read_safetensors(c.problem);
        known.p = parse_problem(file, unread);
        known.sha256 = sha256_hex(file.bytes());
      } catch (const std::exception& e) {
        known.wrong = e.what();
      }
    }
    if (!known.p) {
      fail(i, known.wrong);
      continue;
    }
    cases[i].problem_sha256 = known.sha256;
    if (is_missing(c.result) && options.skip_missing) {
      cases[i].state = case_state::skipped;
      cases[i].reason = c.result.string() + " does not exist";
      continue;
    }
    try {
      notes_list unread;
      (void)plans_for(c, *known.p, read_result(c.result, *known.p, known.sha256, unread));
    } catch (const std::exception& e) {
      fail(i, e.what());
      continue;
    }
    const auto group =
        std::find_if(groups.begin(), groups.end(), [&](const same_problem& g) { return g.sha256 == known.sha256; });
    if (group == groups.end()) {
      groups.push_back({known.sha256, {i}});
    } else {
      group->cases.push_back(i);
    }
  }
  return groups;
}

/// What the cases of one problem share: the oracle's answers, a finer one for a coarser question too, and the runs of each plan.
class answers {
 public:
  answers(std::atomic<std::size_t>& asked, bool several) : asked_(asked), several_(several) {}
  reference operator()(const problem& p, const question& q) {
    for (const auto& [was, reply] : known_) {
      const bool same_range = was.range.output == q.range.output && was.range.state == q.range.state;
      if (same_range && was.max_bits == q.max_bits && was.relative_radius <= q.relative_radius) return reply;
    }
    ++asked_;
    reference reply = solve(p, q);
    if (!reply.stopped) known_.emplace_back(q, reply);
    return reply;
  }

  /// Runs of a plan depend on what the result says of itself, and on nothing else of it. Nothing where nobody else would read it.
  std::shared_ptr<referee_memory> runs_of(const std::vector<plan>& plans, const result& r, const suite_case& c) {
    if (!several_ || plans.size() != 1) return nullptr;
    std::string key = plans.front().name + " " + std::string(name_of(path_of(r))) + " " +
                      std::to_string(r.chunk_size.value_or(0)) + " " + r.o.dtype() + " " +
                      (r.final_state ? r.final_state->dtype() : "-");
    // Two files may hold plans of one name.
    key += " " + c.plan + " " + (c.accuracy ? detail::general(*c.accuracy, 17) : "-");
    std::shared_ptr<referee_memory>& kept = runs_[key];
    if (!kept) kept = make_referee_memory();
    return kept;
  }

 private:
  std::atomic<std::size_t>& asked_;
  bool several_;
  std::map<std::string, std::shared_ptr<referee_memory>> runs_;
  std::vector<std::pair<question, reference>> known_;
};

void judge_case(const problem& p, const std::string& sha256, const notes_list& notes, answers& oracle, unsigned threads,
                const suite_options& options, case_report& out) {
  const suite_case& c = out.what;
  check_identity identity;
  identity.notes = notes;
  const safetensors_file file = read_safetensors(c.result);
  const result r = parse_result(file, p, sha256, identity.notes);
  identity.version = options.version;
  identity.problem_path = c.problem.string();
  identity.problem_sha256 = sha256;
  identity.result_path = c.result.string();
  identity.result_sha256 = out.result_sha256 = sha256_hex(file.bytes());
  identity.kernel = r.kernel;
  identity.producer = r.producer;
  if (r.path) identity.path = name_of(*r.path);
  if (options.reproduce) identity.reproduce = options.reproduce(c);

  check_options how;
  how.judge = options.judge;
  how.judge.bounds.clear();
  how.judge.accuracy = c.accuracy;
  how.plans = plans_for(c, p, r);
  how.memory = oracle.runs_of(how.plans, r, c);
  how.threads = threads;
  how.stop = options.stop;
  how.solver = [&oracle](const problem& asked, const question& q) { return oracle(asked, q); };
  check_record record{c.no_plan, how.judge, {}};
  for (const plan& one : how.plans) record.plans.push_back(source_of(c.plan.empty() ? one.name : c.plan));
  const std::vector<plan_source> sources = record.plans;
  identity.record = std::move(record);
  const check_report report = check(p, r, how);

  out.judged = report.judged;
  out.reason = report.reason;
  out.not_judged = not_judged_text(report);
  if (report.conformance) {
    out.plan = report.conformance->plan;
    const auto judged_by = std::find_if(sources.begin(), sources.end(), [&](const plan_source& x) { return x.name == out.plan; });
    if (judged_by != sources.end()) out.plan_sha256 = sha256_hex(judged_by->text);
    out.first_bad_stage = report.conformance->first_bad_stage;
    out.first_bad_is_stage = report.conformance->first_bad_is_stage;
    out.shares = shares_of(*report.conformance);
  }
  out.verdict_json = to_json(report, identity);
  out.verdict_text = to_text(report, identity);
  out.state = report.stopped && report.judged == verdict::undecided ? case_state::stopped : case_state::judged;
}

double share_of(const judged_statistic& s) { return s.limit.value > 0 ? s.got / s.limit.value : s.got > 0 ? HUGE_VAL : 0; }

}  // namespace

std::vector<limit_share> shares_of(const plan_report& plan) {
  std::vector<limit_share> out;
  for (const judged_statistic& s : plan.statistics) {
    const auto same =
        std::find_if(out.begin(), out.end(), [&](const limit_share& x) { return x.tensor == s.tensor && x.norm == s.norm; });
    if (same == out.end()) {
      out.push_back({s.tensor, s.norm, share_of(s)});
    } else if (!(share_of(s) <= same->share)) {
      same->share = share_of(s);
    }
  }
  return out;
}

verdict case_report::counts_as() const {
  if (state == case_state::skipped || as_expected()) return verdict::holds;
  return judged == verdict::holds || judged == verdict::measured ? verdict::refuted : judged;
}

std::size_t suite_report::count(case_state state) const {
  return static_cast<std::size_t>(
      std::count_if(cases.begin(), cases.end(), [&](const case_report& c) { return c.state == state; }));
}

std::size_t suite_report::unexpected() const {
  return static_cast<std::size_t>(std::count_if(
      cases.begin(), cases.end(), [](const case_report& c) { return c.state == case_state::judged && !c.as_expected(); }));
}

suite_report run_suite(const suite& s, const suite_options& options) {
  require_valid(options.judge, options.threads);
  suite_report out;
  out.file = s.file.string();
  out.version = options.version;
  out.false_alarm = options.judge.false_alarm;
  out.drawn = "seed " + std::to_string(options.judge.seed) + (options.judge.power ? ", with" : ", without") +
              " power, false alarm " + detail::general(out.false_alarm, 17) + ", at most " +
              std::to_string(options.judge.max_bits) + " bits, version " + options.version;
  out.cases.resize(s.cases.size());
  const std::vector<same_problem> groups = look_before(s, options, out.cases);
  out.problems = groups.size();
  const std::size_t all = s.cases.size() - out.count(case_state::skipped) - out.count(case_state::failed);

  const unsigned threads = options.threads == 0 ? std::max(1U, std::thread::hardware_concurrency()) : options.threads;
  // Problems side by side while there are enough of them; what is left of the threads goes to each check.
  const unsigned each =
      groups.empty() ? 1 : std::max(1U, threads / static_cast<unsigned>(std::min<std::size_t>(groups.size(), threads)));
  std::atomic<std::size_t> asked{0};
  std::mutex report_lock;
  std::size_t done = 0;
  if (options.progress) options.progress(0, all);
  const auto report_progress = [&] {
    const std::lock_guard lock(report_lock);
    ++done;
    if (options.progress) options.progress(done, all);
  };
  const auto stopped = [&] { return options.stop != nullptr && *options.stop; };
  parallel_for(groups.size(), threads, [&](std::size_t g) {
    const same_problem& group = groups[g];
    std::optional<problem> p;
    notes_list notes;
    answers oracle(asked, group.cases.size() > 1);
    for (const std::size_t i : group.cases) {
      case_report& c = out.cases[i];
      if (stopped()) continue;
      const auto began = std::chrono::steady_clock::now();
      try {
        if (!p) {
          const safetensors_file file = read_safetensors(c.what.problem);
          if (sha256_hex(file.bytes()) != group.sha256)
            throw format_error(c.what.problem.string() + ": changed while the suite ran; run the suite again");
          p = parse_problem(file, notes);
        }
        judge_case(*p, group.sha256, notes, oracle, each, options, c);
      } catch (const std::exception& e) {
        c.state = case_state::failed;
        c.reason = refusal_in(c.what.problem.string(), e.what());
      }
      c.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
      report_progress();
    }
  });
  out.solved = asked;
  if (out.count(case_state::skipped) == out.cases.size()) out.judged = verdict::vacuous;
  for (const case_report& c : out.cases) out.judged = combine(out.judged, c.counts_as());
  return out;
}

}  // namespace deltaproof
