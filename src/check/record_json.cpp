// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT

#include "check/record_json.hpp"

#include "deltaproof/files/text_hash.hpp"
#include "deltaproof/support/errors.hpp"

namespace deltaproof::check_detail {

namespace fs = std::filesystem;
using json = nlohmann::ordered_json;

json json_of(const check_record& record) {
  const judging& judge = record.judge;
  json bounds = json::array(), plans = json::array();
  for (const tensor_bound& b : judge.bounds) {
    bounds.push_back({{"tensor", b.tensor},
                      {"metric", name_of(b.limit.which)},
                      {"limit", b.limit.limit.value},
                      {"because", b.limit.limit.provenance.text()}});
  }
  for (const plan_source& source : record.plans) {
    plans.push_back({{"name", source.name},
                     {"path", source.path.empty() ? json(nullptr) : json(source.path)},
                     {"sha256", sha256_hex(source.text)},
                     {"text", source.text}});
  }
  return {{"no_plan", record.no_plan},
          {"power", judge.power},
          {"false_alarm", judge.false_alarm},
          {"seconds", judge.seconds},
          {"accuracy", judge.accuracy ? json(*judge.accuracy) : json(nullptr)},
          {"seed", judge.seed},
          {"max_bits", judge.max_bits},
          {"strict_padding", judge.strict_padding},
          {"bounds", std::move(bounds)},
          {"plans", std::move(plans)}};
}

const json& key_of(const json& j, const char* key, const fs::path& file) {
  if (!j.is_object() || !j.contains(key))
    throw format_error(file.string() + ": it has no \"" + key +
                       "\"; give a verdict.json that `deltaproof check --json` or `--witness` wrote");
  return j[key];
}

check_record record_of(const json& o, const fs::path& file) {
  check_record out;
  judging& judge = out.judge;
  out.no_plan = key_of(o, "no_plan", file).get<bool>();
  judge.power = key_of(o, "power", file).get<bool>();
  judge.false_alarm = key_of(o, "false_alarm", file).get<double>();
  judge.seconds = key_of(o, "seconds", file).get<double>();
  if (const json& a = key_of(o, "accuracy", file); !a.is_null()) judge.accuracy = a.get<double>();
  judge.seed = key_of(o, "seed", file).get<std::uint64_t>();
  judge.max_bits = key_of(o, "max_bits", file).get<int>();
  if (o.contains("strict_padding")) judge.strict_padding = o["strict_padding"].get<bool>();
  for (const json& b : key_of(o, "bounds", file)) {
    const auto tensor = b.at("tensor").get<std::string>(), metric = b.at("metric").get<std::string>(),
               reason = b.at("because").get<std::string>();
    try {
      judge.bounds.push_back({tensor, {metric_named(metric), bound(b.at("limit").get<double>(), because(reason))}});
    } catch (const error& e) {
      throw format_error(file.string() + ": \"bounds\", " + metric + " of " + tensor + ": " + e.what());
    }
  }
  for (const json& p : key_of(o, "plans", file)) {
    const plan_source source{p.at("name").get<std::string>(), p.at("path").is_null() ? "" : p.at("path").get<std::string>(),
                             p.at("text").get<std::string>()};
    if (sha256_hex(source.text) != p.at("sha256").get<std::string>())
      throw format_error(file.string() + ": the text of plan " + in_quotes(source.name) +
                         " in this file does not match the sha256 beside it, so the file was edited; restore it, or run the "
                         "check again");
    out.plans.push_back(source);
  }
  return out;
}

}  // namespace deltaproof::check_detail
