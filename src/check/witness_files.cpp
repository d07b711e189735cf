// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
#include <fcntl.h>
#include <stdio.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "check/check_parts.hpp"
#include "check/record_json.hpp"
#include "deltaproof/check/request.hpp"
#include "deltaproof/check/witness.hpp"
#include "deltaproof/files/text_hash.hpp"
#include "deltaproof/support/errors.hpp"
#include "deltaproof/support/read_file.hpp"
#include "deltaproof/support/write_file.hpp"
#include "support/text.hpp"

namespace deltaproof {
namespace {

using json = nlohmann::ordered_json;
namespace fs = std::filesystem;

constexpr std::array<std::string_view, 5> witness_files{"problem.safetensors", "result.safetensors", "plan.toml", "verdict.json",
                                                        "README.txt"};

json json_of(std::string_view text, const fs::path& file) {
  detail::require_shallow_json(text, file.string());
  return json::parse(text, nullptr, false);
}

/// "DIR/" is DIR.
fs::path without_slash(const fs::path& folder) {
  const fs::path plain = folder.lexically_normal();
  return plain.has_filename() ? plain : plain.parent_path();
}

bool is_empty_folder(const fs::path& folder) { return fs::is_directory(folder) && fs::is_empty(folder); }

bool is_witness(const fs::path& folder) {
  if (!fs::is_regular_file(folder / "verdict.json")) return false;
  const json j = json_of(read_file(folder / "verdict.json", verdict_limit), folder / "verdict.json");
  return j.is_object() && j.contains("witness") && j["witness"].is_object();
}

/// Where a `witness` object says its head was; nothing: it holds the whole problem.
std::optional<original_head> origin_of(const json& witness) {
  const auto number = [&witness](const char* key) -> std::optional<std::size_t> {
    const json value = witness.value(key, json());
    return value.is_number_unsigned() ? std::optional(value.get<std::size_t>()) : std::nullopt;
  };
  if (!number("head") || !number("sequence")) return std::nullopt;
  const std::size_t head = *number("head");
  return original_head{number("batch").value_or(0), *number("sequence"), head, number("key_head").value_or(head)};
}

json witness_json(const small_failure& kept, const check_identity& whole, const std::string& earlier) {
  json j;
  if (!earlier.empty()) j = json::parse(earlier);
  if (earlier.empty()) {
    j["of"] = {{"problem", {{"path", whole.problem_path}, {"sha256", whole.problem_sha256}}},
               {"result", {{"path", whole.result_path}, {"sha256", whole.result_sha256}}},
               {"reproduce", whole.reproduce}};
    for (const char* key : {"batch", "sequence", "head", "key_head"}) j[key] = nullptr;
  }
  if (kept.at && j["head"].is_null()) {
    j["batch"] = kept.from.batch;
    j["sequence"] = kept.from.sequence;
    j["head"] = kept.from.head;
    j["key_head"] = kept.from.key_head;
  }
  j["tokens"] = kept.given.tokens();
  const auto of = origin_of(j);
  // Of a witness of a witness the slice is head 0 of sequence 0; of the original it has said its numbers already.
  j["says"] = of && !earlier.empty() ? renumbered(kept.says, *of) : kept.says;
  return j;
}

const plan_source* judged_plan(const check_report& report, const check_record& record) {
  for (const plan_source& source : record.plans) {
    if (report.conformance && source.name == report.conformance->plan) return &source;
  }
  return record.plans.empty() ? nullptr : &record.plans.front();
}

std::string readme(const fs::path& folder, const std::string& reason, const std::string& says, const check_identity& whole,
                   bool has_plan) {
  return "A result that deltaproof " + whole.version +
         " refutes, or a part of it (see \"part\") that is still refuted.\n\n    deltaproof replay " +
         shell_quoted(folder.string()) +
         "\n\njudges it again and says whether verdict, reason and first bad stage are the same.\n\nkernel   " +
         (whole.kernel.empty() ? "not stated" : whole.kernel) + "\nreason   " + reason + "\npart     " + says + "\nof       " +
         (whole.problem_path.empty() ? "tensors in memory" : whole.problem_path + " and " + whole.result_path) +
         "\n\nproblem.safetensors  what the kernel was given\nresult.safetensors   what it returned\n" +
         (has_plan ? "plan.toml            the precision plan it was judged by\n" : "") +
         "verdict.json         the verdict, its options and the hashes of these files\n";
}

/// Moves a finished folder to its place in one step, where the system can; what is not ours in the old one stays.
void move_into_place(const fs::path& finished, const fs::path& folder) {
  if (!fs::exists(folder)) {
    fs::rename(finished, folder);
    return;
  }
  fs::path old = finished;
  if (renameat2(AT_FDCWD, finished.c_str(), AT_FDCWD, folder.c_str(), RENAME_EXCHANGE) != 0) {
    old = finished.string() + ".old";
    fs::rename(folder, old);
    fs::rename(finished, folder);
  }
  for (const auto& entry : fs::directory_iterator(old)) {
    const std::string name = entry.path().filename().string();
    if (!is_witness_file(name)) fs::rename(entry.path(), folder / name);
  }
  fs::remove_all(old);
}

std::string dumped(const json& j) { return j.dump(-1, ' ', false, json::error_handler_t::replace); }

/// A file as recorded: beside the verdict, else where it was. Throws: format_error if it is not there.
fs::path located(const fs::path& recorded, const fs::path& verdict_file) {
  if (recorded.empty())
    throw format_error(
        verdict_file.string() +
        ": this verdict names no files: it is of tensors in memory, which replay cannot read; record them in files, check the "
        "files, and replay the new verdict");
  const fs::path beside = verdict_file.parent_path() / recorded;
  if (fs::exists(beside)) return beside;
  if (fs::exists(recorded)) return recorded;
  if (recorded.is_absolute() || is_witness(verdict_file.parent_path()))
    throw format_error(beside.string() + ": there is no such file; " + verdict_file.string() + " judges it, so put it back");
  throw format_error(
      verdict_file.string() + ": " + recorded.string() +
      " is neither in the folder of this verdict nor in the current folder; run replay in the folder where the check was run");
}

void require_hash(const fs::path& file, const std::string& got, const std::string& recorded) {
  if (got != recorded)
    throw format_error(file.string() + ": its sha256 is " + got + ", but " + recorded +
                       " was recorded: the file has changed; restore it, or run the check again");
}

/// The plan's own file as it was, and a note where a preset of this version reads otherwise.
void require_plans(const recorded_verdict& v, notes_list& notes) {
  for (const plan_source& source : v.identity.record->plans) {
    if (!source.path.empty()) {
      const fs::path file = located(source.path, v.file);
      require_hash(file, sha256_hex(read_file(file, plan_limit)), sha256_hex(source.text));
      continue;
    }
    std::string_view now;
    try {
      now = plan_text(source.name);
    } catch (const format_error&) {
      notes.push_back("this version of deltaproof has no plan " + source.name + "; the plan as recorded is used");
      continue;
    }
    if (now != source.text)
      notes.push_back("plan " + source.name + " differs in this version of deltaproof; the plan as recorded is used");
  }
}

}  // namespace

plan_source source_of(const std::string& plan) {
  if (plan.ends_with(".toml")) {
    const std::string text = read_file(plan, plan_limit);
    return {parse_plan(text, plan).name, plan, text};
  }
  return {plan, "", std::string(plan_text(plan))};
}

bool is_witness_file(const std::string& name) {
  return std::find(witness_files.begin(), witness_files.end(), name) != witness_files.end();
}

void require_witness_place(const fs::path& where) {
  const fs::path folder = without_slash(where);
  if (fs::exists(folder) && !is_empty_folder(folder) && !is_witness(folder))
    throw format_error(folder.string() + ": exists and is not a witness; name a folder that is empty or does not exist yet");
  const fs::path parent = folder.has_parent_path() ? folder.parent_path() : fs::path(".");
  if (!fs::is_directory(parent))
    throw format_error(folder.string() + ": its parent folder " + parent.string() +
                       (fs::exists(parent) ? " is not a folder; name another place" : " does not exist; create it first"));
}

void require_new_witness_place(const fs::path& where) {
  require_witness_place(where);
  const fs::path folder = without_slash(where);
  if (is_witness(folder))
    throw format_error(folder.string() + ": holds a witness already; name another folder, or remove it first");
}

void require_witness(const fs::path& where) {
  const fs::path folder = without_slash(where);
  if (!is_witness(folder))
    throw format_error(folder.string() + ": there is no witness; make one with deltaproof check PROBLEM RESULT --witness " +
                       shell_quoted(folder.string()));
}

void write_witness(const fs::path& where, const small_failure& kept, const check_identity& whole, const std::string& earlier) {
  require_witness_place(where);
  if (!whole.record)
    throw format_error(
        "write_witness: the check_identity holds no record of the options and plans of its check; set check_identity::record");
  const fs::path folder = without_slash(where);
  const fs::path part = new_folder_beside(folder);
  try {
    check_identity identity = whole;
    identity.problem_path = "problem.safetensors";
    identity.result_path = "result.safetensors";
    identity.reproduce = "deltaproof replay " + shell_quoted(folder.string());
    const std::string given = problem_bytes(kept.given);
    identity.problem_sha256 = sha256_hex(given);
    write_file(part / identity.problem_path, given);
    result gave = kept.gave;
    gave.problem_sha256 = identity.problem_sha256;
    write_result(part / identity.result_path, gave);
    identity.result_sha256 = read_safetensors(part / identity.result_path).sha256();
    if (!gave.final_state)
      std::erase_if(identity.record->judge.bounds, [](const tensor_bound& b) { return b.tensor == "final_state"; });
    for (plan_source& source : identity.record->plans) {
      if (!source.path.empty()) source.path = "plan.toml";
    }
    const plan_source* plan = judged_plan(kept.report, *identity.record);
    if (plan != nullptr) write_file(part / "plan.toml", plan->text);
    const json witness = witness_json(kept, whole, earlier);
    const auto of = origin_of(witness);
    const check_report shown = of ? renumbered(kept.report, *of) : kept.report;
    json j = json::parse(to_json(shown, identity));
    j["witness"] = witness;
    write_file(part / "verdict.json", j.dump(2, ' ', false, json::error_handler_t::replace) + "\n");
    write_file(part / "README.txt", readme(folder, shown.reason, witness["says"], whole, plan != nullptr));
    move_into_place(part, folder);
  } catch (const fs::filesystem_error& e) {
    std::error_code ignored;
    fs::remove_all(part, ignored);
    throw format_error(folder.string() + ": the witness could not be written: " + e.what());
  } catch (const format_error& e) {
    std::error_code ignored;
    fs::remove_all(part, ignored);
    std::string says = e.what();
    if (const auto at = says.find(part.string()); at != std::string::npos)
      says.replace(at, part.string().size(), folder.string());
    throw format_error(says);
  } catch (...) {
    std::error_code ignored;
    fs::remove_all(part, ignored);
    throw;
  }
}

recorded_verdict read_verdict(const fs::path& where) {
  const fs::path file = fs::is_directory(where) ? where / "verdict.json" : where;
  recorded_verdict out = parse_verdict(read_file(file, verdict_limit), file);
  if (!out.plan_sha256.empty()) {
    const fs::path plan = file.parent_path() / "plan.toml";
    require_hash(plan, sha256_hex(read_file(plan, plan_limit)), out.plan_sha256);
  }
  return out;
}

recorded_verdict parse_verdict(std::string_view text, const fs::path& file) {
  recorded_verdict out;
  out.file = file;
  const json j = json_of(text, file);
  if (j.is_discarded())
    throw format_error(out.file.string() +
                       ": not valid JSON; give a verdict.json that `deltaproof check --json` or `--witness` wrote");
  if (const json& schema = check_detail::key_of(j, "schema", out.file); schema != "deltaproof.verdict/1")
    throw format_error(out.file.string() + ": schema is " +
                       in_quotes(schema.is_string() ? schema.get<std::string>() : dumped(schema)) +
                       "; only deltaproof.verdict/1 is replayed: give the JSON of one result (check PROBLEM RESULT --json, or "
                       "--witness)");
  try {
    out.judged = check_detail::key_of(j, "verdict", out.file).get<std::string>();
    out.reason = check_detail::key_of(j, "reason", out.file).get<std::string>();
    const json& stage = check_detail::key_of(j, "first_bad_stage", out.file);
    out.first_bad_stage = stage.is_null() ? "" : stage.get<std::string>();
    out.version = check_detail::key_of(j, "version", out.file).get<std::string>();
    out.identity.version = out.version;
    out.identity.problem_path = check_detail::key_of(j, "problem", out.file).at("path").get<std::string>();
    out.identity.problem_sha256 = check_detail::key_of(j, "problem", out.file).at("sha256").get<std::string>();
    out.identity.result_path = check_detail::key_of(j, "result", out.file).at("path").get<std::string>();
    out.identity.result_sha256 = check_detail::key_of(j, "result", out.file).at("sha256").get<std::string>();
    out.identity.reproduce = check_detail::key_of(j, "reproduce", out.file).get<std::string>();
    out.identity.record = check_detail::record_of(check_detail::key_of(j, "options", out.file), out.file);
    if (j.contains("witness") && j["witness"].is_object()) {
      out.witness = dumped(j["witness"]);
      out.of = origin_of(j["witness"]);
      const json plan = j.value("plan", json());
      if (plan.is_object() && plan.contains("sha256")) out.plan_sha256 = plan["sha256"].get<std::string>();
    }
  } catch (const json::exception& e) {
    throw format_error(out.file.string() + ": damaged (" + e.what() + "); write it again with check --json or --witness");
  }
  return out;
}

std::vector<fs::path> files_of(const recorded_verdict& v) {
  std::vector<fs::path> out{v.file, located(v.identity.problem_path, v.file), located(v.identity.result_path, v.file)};
  for (const plan_source& source : v.identity.record->plans) {
    if (!source.path.empty()) out.push_back(located(source.path, v.file));
  }
  return out;
}

replayed replay(const fs::path& where, const check_options& how, const std::string& version) {
  replayed out;
  out.recorded = read_verdict(where);
  const recorded_verdict& v = out.recorded;
  const fs::path problem_file = located(v.identity.problem_path, v.file), result_file = located(v.identity.result_path, v.file);
  out.identity = v.identity;
  const safetensors_file given = read_safetensors(problem_file), gave = read_safetensors(result_file);
  require_hash(problem_file, sha256_hex(given.bytes()), v.identity.problem_sha256);
  require_hash(result_file, sha256_hex(gave.bytes()), v.identity.result_sha256);
  require_plans(v, out.identity.notes);
  out.given = parse_problem(given, out.identity.notes);
  out.gave = parse_result(gave, out.given, v.identity.problem_sha256, out.identity.notes);
  out.identity.problem_path = problem_file.string();
  out.identity.result_path = result_file.string();
  out.identity.kernel = out.gave.kernel;
  out.identity.producer = out.gave.producer;
  if (out.gave.path) out.identity.path = name_of(*out.gave.path);
  out.identity.version = version;
  out.identity.reproduce = "deltaproof replay " + shell_quoted(where.string());
  out.options = options_of(*v.identity.record);
  try {
    require_valid(out.options.judge);
  } catch (const format_error& e) {
    throw format_error(v.file.string() + ": \"options\": " + e.what());
  }
  for (const plan& one : out.options.plans) require_fit(one, out.given, path_of(out.gave), out.gave.chunk_size.value_or(0));
  out.options.threads = how.threads;
  out.options.stop = how.stop;
  out.options.progress = how.progress;
  out.report = check(out.given, out.gave, out.options);

  const std::string stage = out.report.conformance ? check_detail::first_bad_of(*out.report.conformance) : "";
  const auto differs = [&](const char* what, const std::string& now, const std::string& was) {
    if (now != was)
      out.differences.push_back(std::string(what) + " is now " + (now.empty() ? "none" : now) + ", but was " +
                                (was.empty() ? "none" : was));
  };
  differs("the verdict", std::string(name_of(out.report.judged)), v.judged);
  differs("the first bad stage", stage, v.first_bad_stage);
  // A witness may have been written with numbers of its own.
  differs("the reason", v.of ? renumbered(out.report.reason, *v.of) : out.report.reason,
          v.of ? renumbered(v.reason, *v.of) : v.reason);
  out.reproduced = out.differences.empty();
  if (!out.reproduced) differs("the version", version, v.version);
  return out;
}

std::string to_json(const replayed& again) {
  json j{{"schema", "deltaproof.replay/1"},
         {"reproduced", again.reproduced},
         {"differences", again.differences},
         {"recorded",
          {{"file", again.recorded.file.string()},
           {"verdict", again.recorded.judged},
           {"reason", again.recorded.reason},
           {"first_bad_stage", again.recorded.first_bad_stage.empty() ? json(nullptr) : json(again.recorded.first_bad_stage)},
           {"version", again.recorded.version}}}};
  j["again"] =
      json::parse(to_json(again.recorded.of ? renumbered(again.report, *again.recorded.of) : again.report, again.identity));
  return j.dump(2, ' ', false, json::error_handler_t::replace) + "\n";
}

std::string to_text(const replayed& again) {
  std::string text = detail::padded("replay", 13);
  if (again.reproduced) {
    text += "reproduced: the verdict, the reason and the first bad stage are those recorded by deltaproof " +
            again.recorded.version + "\n";
  } else {
    text += "not reproduced: ";
    for (std::size_t i = 0; i < again.differences.size(); ++i) text += (i > 0 ? "; " : "") + again.differences[i];
    text += "\n";
  }
  const auto& of = again.recorded.of;
  if (!of) return text + to_text(again.report, again.identity);
  text += detail::padded("witness", 13) + "head " + std::to_string(of->head) + " of sequence " + std::to_string(of->sequence) +
          " of the original problem; sequences and heads keep their numbers of that problem, tokens count from the start of the "
          "sequence\n";
  return text + to_text(renumbered(again.report, *of), again.identity);
}

}  // namespace deltaproof
