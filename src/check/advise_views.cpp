// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
#include <cmath>
#include <nlohmann/json.hpp>

#include "deltaproof/check/advise.hpp"
#include "support/json_number.hpp"
#include "support/text.hpp"

namespace deltaproof {

namespace {

using json = nlohmann::ordered_json;
using commands = std::function<std::string(const advised_kind&, const advised_choice&)>;
using detail::general;
using detail::padded;

constexpr std::size_t shown = 12;  ///< choices of a kind in the text; the JSON has them all

std::string until_text(const advised_choice& c, std::size_t tokens) {
  if (!c.until_token) return std::to_string(tokens);
  return (c.known == "bound" ? "< " : "") + std::to_string(*c.until_token);
}

std::string row_of(const advised_choice& c, std::size_t tokens) {
  return padded(std::string(detail::name_in(advice_words, c.word)), 12) + padded(general(c.bytes, 4), 11) +
         padded(general(c.operations, 4), 11) + padded((c.known == "bound" ? ">= " : "") + general(c.error, 3), 12) +
         padded(until_text(c, tokens), 8) + c.says + "\n";
}

json json_of(const advised_choice& c, const std::string& command) {
  json j{{"name", c.name},   {"says", c.says},   {"word", detail::name_in(advice_words, c.word)},
         {"known", c.known}, {"bytes", c.bytes}, {"operations", c.operations},
         {"cost", c.cost()}};
  j["error"] = detail::json_number(c.error);
  j["until_token"] = c.until_token ? json(*c.until_token) : json(nullptr);
  j["plan"] = c.plan.empty() ? json(nullptr) : json(c.plan);
  j["check"] = command;
  return j;
}

/// Those around the best: the adequate and borderline ones, and the inadequate ones next to it.
std::vector<const advised_choice*> worth_showing(const advised_kind& kind) {
  std::vector<const advised_choice*> out;
  const advised_choice* best = best_of(kind);
  const std::size_t at = best == nullptr ? kind.choices.size() : static_cast<std::size_t>(best - kind.choices.data());
  const std::size_t first = at > shown / 2 ? at - shown / 2 : 0;
  for (std::size_t i = first; i < kind.choices.size() && out.size() < shown; ++i) out.push_back(&kind.choices[i]);
  return out;
}

}  // namespace

std::string advice_text(const advice& found, const commands& command) {
  std::string text = "looked at    sequence " + std::to_string(found.sequence) + ", head " + std::to_string(found.head) + ", " +
                     std::to_string(found.tokens) +
                     " tokens: of all heads this one forgets its state most slowly (gates and writes " +
                     (std::isfinite(found.memory) ? "together leave 1/e of it after " + general(found.memory, 3) + " tokens)\n"
                                                  : std::string("take nothing from it)\n"));
  for (const advised_kind& kind : found.kinds) {
    const advised_choice* best = best_of(kind);
    text += "\n" + padded(kind.kind, 13) +
            (best == nullptr ? "no adequate choice was found (unchanged plan: " + kind.base + ")" : best->says) + "\n";
    text += padded("limit", 13) + general(kind.limit, 3) + ": the largest relative error allowed in o and final_state, " +
            kind.limit_says + "\n";
    text += padded("searched", 13) + std::to_string(kind.grid) + " choices: " + std::to_string(kind.refused_by_bounds) +
            " ruled out by bounds, " + std::to_string(kind.emulated) + " emulated";
    const std::size_t left = kind.grid - kind.refused_by_bounds - kind.emulated;
    if (left > 0) text += ", " + std::to_string(left) + " not emulated";
    if (left > 0 && !found.stopped) text += ", because cheaper ones were enough (--wanted asks for more)";
    text += "\n" + padded("costs", 13) + "bytes moved, and multiply-adds counted as 16-bit ones, per token and head\n";
    text += padded("", 12) + padded("bytes", 11) + padded("mul-adds", 11) + padded("error", 12) + padded("T*", 8) + "choice\n";
    text += row_of(kind.unchanged, found.tokens);
    for (const advised_choice* c : worth_showing(kind)) text += row_of(*c, found.tokens);
    if (best != nullptr) text += padded("to check it", 13) + command(kind, *best) + "\n";
    if (const advised_choice* refused = refused_beside(kind))
      text += padded("and one that", 13) + "is not adequate: " + command(kind, *refused) + "\n";
  }
  return text;
}

std::string advice_json(const advice& found, const commands& command) {
  json j{{"schema", "deltaproof.advice/1"}, {"sequence", found.sequence}, {"head", found.head}, {"tokens", found.tokens}};
  j["memory"] = detail::json_number(found.memory);
  j["stopped"] = found.stopped;
  j["kinds"] = json::array();
  for (const advised_kind& kind : found.kinds) {
    const advised_choice *best = best_of(kind), *refused = refused_beside(kind);
    json k{{"kind", kind.kind},
           {"base", kind.base},
           {"limit", kind.limit},
           {"limit_says", kind.limit_says},
           {"grid", kind.grid},
           {"refused_by_bounds", kind.refused_by_bounds},
           {"emulated", kind.emulated},
           {"best", best == nullptr ? json(nullptr) : json(best->name)},
           {"refused_beside", refused == nullptr ? json(nullptr) : json(refused->name)},
           {"unchanged", json_of(kind.unchanged, "")},
           {"choices", json::array()}};
    for (const advised_choice& c : kind.choices) k["choices"].push_back(json_of(c, command(kind, c)));
    j["kinds"].push_back(std::move(k));
  }
  return j.dump(2, ' ', false, json::error_handler_t::replace) + "\n";
}

}  // namespace deltaproof
