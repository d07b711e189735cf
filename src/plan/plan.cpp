// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
#include "deltaproof/plan/plan.hpp"

#include <algorithm>

#include "deltaproof/support/read_file.hpp"
#include "plan/plan_keys.hpp"
#include "support/nearest_name.hpp"

namespace deltaproof {

namespace {

template <class T>
bool holds(const std::vector<T>& list, const T& value) {
  return std::find(list.begin(), list.end(), value) != list.end();
}

/// "bf16, fp16" of any list of things with a name.
template <class T>
std::string names_of(const std::vector<T>& list) {
  std::string text;
  for (const T& value : list) {
    if (!text.empty()) text += ", ";
    if constexpr (std::is_same_v<T, std::size_t>) {
      text += std::to_string(value);
    } else {
      text += name_of(value);
    }
  }
  return text;
}

/// Why the plan does not fit; "" if it does. A chunk of 0 rows is not known.
std::string misfit(const plan& plan, const problem& p, std::optional<path_kind> path, std::size_t chunk) {
  const auto refuse = [](const std::string& what, std::string_view got, const std::string& listed) {
    return "the " + what + " is " + std::string(got) + ", but the plan covers only " + listed;
  };
  if (!holds(plan.ops, p.op)) return refuse("problem's op", name_of(p.op), names_of(plan.ops));
  const format x = p.q.element_format();
  if (!holds(plan.dtypes, x)) return refuse("format of q, k and v", name_of(x), names_of(plan.dtypes));
  if (path && !holds(plan.path, *path)) return refuse("path", name_of(*path), names_of(plan.path));
  if (path == path_kind::chunk && chunk > 0 && !plan.chunk.empty() && !holds(plan.chunk, chunk)) {
    return refuse("chunk length", std::to_string(chunk), names_of(plan.chunk));
  }
  return "";
}

}  // namespace

std::span<const plan> plans() {
  static const std::vector<plan> all = [] {
    std::vector<plan> read;
    for (const plan_detail::preset& one : plan_detail::preset_table()) {
      read.push_back(parse_plan(one.text, "preset " + std::string(one.name)));
      if (read.back().name != one.name) {
        throw format_error("preset " + std::string(one.name) + ": names itself \"" + read.back().name + "\"");
      }
    }
    return read;
  }();
  return all;
}

std::string_view plan_text(std::string_view name) {
  std::vector<std::string_view> known;
  for (const plan_detail::preset& one : plan_detail::preset_table()) {
    if (one.name == name) return one.text;
    known.push_back(one.name);
  }
  throw format_error("there is no plan \"" + std::string(name) + "\"" + detail::suggestion(name, known) +
                     "; a file's name must end in .toml");
}

plan plan_named(std::string_view name) {
  if (name.ends_with(".toml")) return parse_plan(read_file(std::string(name), plan_limit), name);
  return parse_plan(plan_text(name), "preset " + std::string(name));
}

std::vector<const plan*> candidate_plans(const problem& p, std::optional<path_kind> path) {
  std::vector<const plan*> fitting;
  for (const plan& one : plans()) {
    if (misfit(one, p, path, 0).empty()) fitting.push_back(&one);
  }
  return fitting;
}

std::vector<const plan*> plans_for_kernel(std::string_view kernel, const problem& p, path_kind path) {
  std::vector<const plan*> fitting = candidate_plans(p, path);
  std::erase_if(fitting, [kernel](const plan* one) { return !holds(one->kernels, std::string(kernel)); });
  return fitting;
}

void require_fit(const plan& plan, const problem& p, path_kind path, std::size_t chunk) {
  if (path == path_kind::chunk && chunk == 0) {
    throw format_error("plan " + plan.name +
                       ": the result is of the chunk path and does not state its chunk length; add chunk_size to its metadata");
  }
  const std::string why = misfit(plan, p, path, chunk);
  if (!why.empty())
    throw format_error("plan " + plan.name + " does not fit: " + why + "; choose a plan that fits (deltaproof list plans)");
}

}  // namespace deltaproof
