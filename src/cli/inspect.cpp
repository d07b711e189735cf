// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT

#include "deltaproof/oracle/inspect.hpp"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "cli/program.hpp"
#include "cli/verbs.hpp"
#include "deltaproof/files/exchange.hpp"
#include "support/json_number.hpp"
#include "support/printable.hpp"
#include "support/text.hpp"

namespace deltaproof::cli {
namespace {

using json = nlohmann::ordered_json;

std::string at_text(const std::optional<row_location>& at) {
  if (!at) return "";
  return "sequence " + std::to_string(at->sequence) + " head " + std::to_string(at->head) + " token " +
         std::to_string(at->token) + (at->step > 0 ? " step " + std::to_string(at->step) : "");
}

std::vector<std::pair<std::string, std::string>> facts(const problem& p) {
  std::vector<std::pair<std::string, std::string>> out;
  out.emplace_back("op", name_of(p.op));
  out.emplace_back("shape", "B " + std::to_string(p.batch()) + ", T " + std::to_string(p.tokens()) + ", steps per token " +
                                std::to_string(p.num_householder) + ", K " + std::to_string(p.key_dim()) + ", V " +
                                std::to_string(p.value_dim()));
  out.emplace_back("heads", std::to_string(p.key_heads()) + " of q, k; " + std::to_string(p.value_heads()) + " of v, beta, g" +
                                (p.value_heads() == p.key_heads() ? ""
                                                                  : "; value head i reads key head floor(i / " +
                                                                        std::to_string(p.value_heads() / p.key_heads()) + ")"));
  out.emplace_back("sequences", std::to_string(p.sequence_count()));
  std::string dtypes = "q, k, v " + p.q.dtype() + ", beta " + p.beta.dtype();
  if (p.g) dtypes += ", g " + (p.raw ? p.raw->x : *p.g).dtype() + (p.gate_per_channel() ? " per channel" : " per token");
  if (p.initial_state) dtypes += ", initial_state " + p.initial_state->dtype();
  if (p.d_o) dtypes += ", do " + p.d_o->dtype();
  if (p.d_final_state) dtypes += ", dfinal_state " + p.d_final_state->dtype();
  out.emplace_back("dtypes", dtypes);
  out.emplace_back("rule",
                   std::string(name_of(p.rule)) + ", beta activation " + std::string(name_of(p.beta_activation)) +
                       ", in-kernel l2norm " +
                       (!p.qk_l2norm                                   ? "no"
                        : p.l2norm_epsilon == reference_l2norm_epsilon ? "yes"
                                                                       : "yes, epsilon " + detail::shortest(p.l2norm_epsilon)));
  if (p.raw) {
    out.emplace_back(
        "gate", "raw, activation " + std::string(name_of(p.raw->activation)) +
                    (p.raw->activation == gate_kind::bounded ? ", lower bound " + detail::shortest(p.raw->lower_bound) : ""));
  }
  out.emplace_back("scale", detail::general(p.scale, 6));
  if (!p.note.empty()) {
    std::string note = p.note;
    std::replace(note.begin(), note.end(), '\n', ' ');
    out.emplace_back("note", note);
  }
  return out;
}

int run(const std::string& file, const common_options& common) {
  notes_list notes;
  const safetensors_file source = read_safetensors(file);
  const problem p = parse_problem(source, notes);
  const auto found = inspect(p);
  json j{{"schema", "deltaproof.inspection/1"}, {"problem", {{"path", file}, {"sha256", sha256_hex(source.bytes())}}}};
  std::string text;
  for (const auto& [name, value] : facts(p)) {
    j["facts"][name] = value;
    text += detail::padded(name, 20) + detail::printable_line(value) + "\n";
  }
  text += "\n" + detail::padded("precondition", 20) + detail::padded("least", 14) + detail::padded("largest", 14) + "says\n";
  j["preconditions"] = json::array();
  for (const precondition& c : found) {
    const auto row = [](const std::optional<row_location>& at) -> json {
      if (!at) return nullptr;
      return {{"batch", at->batch}, {"sequence", at->sequence}, {"head", at->head}, {"token", at->token}, {"step", at->step}};
    };
    j["preconditions"].push_back({{"name", c.name},
                                  {"level", name_of(c.level)},
                                  {"says", c.says},
                                  {"least", detail::json_number(c.least)},
                                  {"largest", detail::json_number(c.largest)},
                                  {"count", c.count},
                                  {"rows", c.rows},
                                  {"first", row(c.first)},
                                  {"worst_at", row(c.worst_at)}});
    text += detail::padded(c.name, 20) + detail::padded(detail::general(c.least, 6), 14) +
            detail::padded(detail::general(c.largest, 6), 14) +
            (c.level == remark::fine ? "" : std::string(name_of(c.level)) + ": ") + c.says + "\n";
    if (c.level != remark::fine && c.first)
      text += detail::padded("", 48) + "the first at " + at_text(c.first) + ", the worst at " + at_text(c.worst_at) + "\n";
  }
  j["notes"] = notes;
  for (const auto& note : notes) text += "note: " + note + "\n";
  publish(common, {"inspect", text, j.dump(2, ' ', false, json::error_handler_t::replace) + "\n"});
  return 0;
}

}  // namespace

verb add_inspect(CLI::App* command, common_options& common) {
  const auto file = std::make_shared<std::string>();
  common.files.reads(command->add_option("FILE", *file, "A problem (deltaproof.problem/1)")->required()->type_name("FILE"));
  return [file, &common] { return run(*file, common); };
}

}  // namespace deltaproof::cli
