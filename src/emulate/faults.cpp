// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
#include "emulate/faults.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>

#include "deltaproof/support/errors.hpp"
#include "emulate/backward_faults.hpp"
#include "support/nearest_name.hpp"

namespace deltaproof {

namespace emulation_detail {

double activated(const head_input& in, double beta) {
  if (in.activation == activation_kind::none) return beta;
  return (in.activation == activation_kind::two_sigmoid ? 2 : 1) / (1 + std::exp(-beta));
}

fault_row::fault_row(std::string_view its_name, std::string_view first_stage, std::string_view mistake, paths possible,
                     condition needs, backward_fault_code made, std::vector<std::string_view> changed)
    : fault_row(its_name, first_stage, mistake, possible,
                fault_code{nullptr, nullptr, {}, needs, std::make_shared<const backward_fault_code>(std::move(made))},
                std::move(changed)) {}

namespace {

/// Where the code of a row acts.
std::vector<std::string> places_of(const fault_code& code) {
  std::vector<std::string> out;
  const auto add = [&out](bool there, const std::string& place) {
    if (there && std::find(out.begin(), out.end(), place) == out.end()) out.push_back(place);
  };
  const auto by = [](bool before, std::string_view step) { return (before ? "before " : "after ") + std::string(step); };
  add(code.arithmetic != nullptr, "arithmetic");
  add(code.reads != nullptr, "reads");
  for (const planted_hook& h : code.hooks) add(true, by(h.before, step_words[static_cast<std::size_t>(h.at)]));
  if (!code.backward) return out;
  add(code.backward->arithmetic != nullptr, "arithmetic");
  add(code.backward->reads != nullptr, "reads");
  for (const planted_backward_hook& h : code.backward->hooks)
    add(true, by(h.before, backward_step_words[static_cast<std::size_t>(h.at)]));
  for (const planted_group_hook& h : code.backward->group_hooks)
    add(true, by(false, backward_step_words[static_cast<std::size_t>(h.at)]));
  return out;
}

/// The results that are computed from a stage, where a row does not say otherwise.
std::vector<std::string_view> results_after(std::string_view stage, paths where, bool backward) {
  if (!backward) {
    if (stage == "Aqk" || (stage == "o" && where != paths::recurrent)) return {"o"};
    if (stage == "final_state") return {"final_state"};
    return {"o", "final_state"};
  }
  if (stage == "dv_local" || stage == "dh" || stage == "dv2") return {"dk", "dv", "dbeta", "dg", "dinitial_state"};
  if (stage == "dw" || stage == "dAkk") return {"dk", "dbeta", "dg"};
  if (stage == "dAqk") return {"dq", "dk", "dg"};
  if (stage == "dg_local") return {"dg"};
  if (stage == "dq_hat" || stage == "dq") return {"dq", "dk"};
  if (stage == "dk_hat") return {"dk"};
  return {stage};
}

struct catalogue {
  fault_table rows;
  std::vector<fault> faults;
  std::size_t forward = 0;

  catalogue() {
    rows = joined({input_faults, head_faults, gate_faults, chunk_faults, state_faults, output_faults, precision_faults,
                   recurrent_faults, cotangent_faults, state_gradient_faults, product_faults, gate_gradient_faults,
                   token_gradient_faults, head_gradient_faults, group_gradient_faults});
    for (const fault_row& r : rows) {
      const pass_kind pass = r.code.backward ? pass_kind::backward : pass_kind::forward;
      forward += pass == pass_kind::forward ? 1 : 0;
      faults.push_back({r.name, r.stage, r.what, pass, r.where != paths::recurrent, r.where != paths::chunk,
                        r.results.empty() ? results_after(r.stage, r.where, pass == pass_kind::backward) : r.results,
                        places_of(r.code), r.code.needs.needs(), &r.code});
    }
  }
  // The faults point into the rows.
  catalogue(const catalogue&) = delete;
  catalogue& operator=(const catalogue&) = delete;
};

const catalogue& all() {
  static const catalogue made;
  return made;
}

}  // namespace

fault_table joined(std::initializer_list<table_maker> tables) {
  fault_table all;
  for (const table_maker table : tables) {
    fault_table part = table();
    std::move(part.begin(), part.end(), std::back_inserter(all));
  }
  return all;
}

}  // namespace emulation_detail

std::span<const fault> fault_catalogue() { return emulation_detail::all().faults; }

std::span<const fault> faults(pass_kind pass) {
  const std::size_t forward = emulation_detail::all().forward;
  return pass == pass_kind::forward ? fault_catalogue().first(forward) : fault_catalogue().subspan(forward);
}

const fault& fault_named(std::string_view name) {
  std::vector<std::string_view> names;
  for (const fault& f : fault_catalogue()) {
    if (f.name == name) return f;
    names.push_back(f.name);
  }
  const std::string near(detail::nearest_name(name, names));
  throw format_error("unknown fault \"" + std::string(name) + "\"; " + (near.empty() ? "" : "did you mean \"" + near + "\"? ") +
                     "`deltaproof list faults` has them all");
}

std::string why_impossible(const fault& f, const problem& p, path_kind path) {
  if (!(path == path_kind::chunk ? f.chunk : path == path_kind::recurrent && f.recurrent))
    return "it is a fault of the " + std::string(f.chunk ? "chunk" : "recurrent") + " path";
  for (const fault_need& n : f.needs) {
    if (!n.met(p)) return "it needs " + std::string(n.what);
  }
  return "";
}

bool applies(const fault& f, const problem& p, path_kind path) { return why_impossible(f, p, path).empty(); }

}  // namespace deltaproof
