// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
#include <algorithm>
#include <array>
#include <set>

#include "deltaproof/emulate/faults.hpp"
#include "deltaproof/inputs/regimes.hpp"
#include "deltaproof/support/read_file.hpp"
#include "deltaproof/sweep/campaign.hpp"
#include "support/nearest_name.hpp"
#include "support/text.hpp"
#include "support/toml.hpp"

namespace deltaproof {
namespace {

using names = std::vector<std::string_view>;

/// The words that stand for "all", in the order of their table; none where an axis has no end.
template <class Table>
std::vector<std::string> words_of(const Table& table) {
  std::vector<std::string> out;
  for (const auto& one : table) out.emplace_back(one.name);
  return out;
}
template <class Value, std::size_t N>
std::vector<std::string> words_of(const detail::kind_names<Value, N>& table) {
  std::vector<std::string> out;
  for (const auto& [value, name] : table) out.emplace_back(name);
  return out;
}

enum class axis_type { word, any_word, count, number_or_word, plan };

/// The kinds of campaigns that an axis is of.
enum kinds : unsigned { recorded = 1, drawn = 2, mutated = 4, searched = 8, studied = 16 };
constexpr unsigned emulated = drawn | mutated | searched;

struct known_axis {
  std::string_view name;
  axis_type type;
  std::vector<std::string> (*all)();  ///< nothing: any word
  unsigned of;
  bool required = false;
};

/// In the order in which a task states them; the last runs fastest.
const std::vector<known_axis>& known_axes() {
  using enum axis_type;
  static const std::vector<known_axis> table{
      {"plan", plan, [] { return words_of(plans()); }, recorded | emulated, true},
      {"against", plan, [] { return words_of(plans()); }, emulated},
      {"fault", word, [] { return words_of(faults(pass_kind::forward)); }, mutated, true},
      {"variant", count, nullptr, emulated},
      {"path", word, [] { return words_of(path_names); }, emulated},
      {"chunk", count, nullptr, emulated},
      {"noise", number_or_word, nullptr, emulated},
      {"regime", word, [] { return words_of(regimes()); }, drawn | mutated, true},
      {"op", word, [] { return words_of(op_names); }, emulated},
      {"rule", word, [] { return words_of(rule_names); }, emulated},
      {"dtype", word, [] { return std::vector<std::string>{"bf16", "fp16", "fp32", "fp64"}; }, emulated},
      {"beta", number_or_word, [] { return words_of(beta_laws()); }, drawn | mutated},
      {"gate", number_or_word, [] { return words_of(gate_laws()); }, drawn | mutated},
      {"initial_state", word, [] { return words_of(initial_state_laws()); }, emulated},
      {"B", count, nullptr, emulated},
      {"T", count, nullptr, emulated},
      {"K", count, nullptr, emulated},
      {"V", count, nullptr, emulated},
      {"H", count, nullptr, emulated},
      {"HV", count, nullptr, emulated},
      {"num_householder", count, nullptr, emulated},
      {"study", any_word, nullptr, studied, true},
      {"mode", word, [] { return std::vector<std::string>{"quick", "full"}; }, studied},
      {"seed", count, nullptr, recorded | emulated | studied}};
  return table;
}

bool belongs(const known_axis& a, campaign_kind kind) {
  constexpr std::array<unsigned, 5> bits{recorded, drawn, mutated, searched, studied};
  return (a.of & bits[static_cast<std::size_t>(kind)]) != 0;
}

class campaign_reader {
 public:
  explicit campaign_reader(const std::filesystem::path& file) : file_(file) {}

  campaign read(const toml::table& root, std::string_view text) const {
    campaign c;
    c.file = file_;
    c.text = text;
    c.kind = kind_of(root);
    require_known(root, top_keys(c.kind), "", c.kind);
    if (c.kind == campaign_kind::recordings) c.cases = cases_of(text);
    if (c.kind == campaign_kind::search) c.judge.power = false;  // of plans, not of inputs
    read_axes(root, c);
    read_judging(root, c.judge);
    if (c.kind == campaign_kind::search) read_search(root, c);
    if (const toml::node* node = root.get("expect")) c.expect = expected(*node, c.kind);
    return c;
  }

 private:
  [[noreturn]] void fail(const toml::node& at, const std::string& what) const {
    throw format_error(file_.string() + ": line " + std::to_string(at.source().begin.line) + ": " + what);
  }
  /// `section`: "[axes]"; empty: the top. With `kind`: a key may be one of other kinds' campaigns.
  void require_known(const toml::table& table, const names& known, const std::string& section,
                     std::optional<campaign_kind> kind = {}) const {
    for (const auto& [name, value] : table) {
      if (std::find(known.begin(), known.end(), name.str()) != known.end()) continue;
      const std::string others = kind ? kinds_with(name.str(), section.empty()) : "";
      fail(value, "there is no key " + in_quotes(name.str()) + (section.empty() ? "" : " in " + section) +
                      (others.empty() ? "" : " where kind is " + in_quotes(name_of(*kind)) + ", only where it is " + others) +
                      detail::suggestion(others.empty() ? name.str() : "", known));
    }
  }
  static names top_keys(campaign_kind kind) {
    names known{"kind", "expect", "axes"};
    if (kind != campaign_kind::study) known.push_back("judging");
    if (kind == campaign_kind::recordings) known.push_back("case");
    if (kind == campaign_kind::search) known.insert(known.end(), {"search", "space"});
    return known;
  }
  /// "mutants or study": the kinds of campaigns that have this key, at the top or in [axes].
  static std::string kinds_with(std::string_view key, bool top) {
    std::string out;
    for (const auto& [kind, word] : campaign_kind_names) {
      const names own = top_keys(kind);
      const bool has = top ? std::find(own.begin(), own.end(), key) != own.end()
                           : std::any_of(known_axes().begin(), known_axes().end(),
                                         [&](const known_axis& a) { return a.name == key && belongs(a, kind); });
      if (has) out += (out.empty() ? "" : " or ") + in_quotes(word);
    }
    return out;
  }
  /// The one of `known` that is meant.
  std::string word_of(const toml::node& node, const std::string& key, const std::vector<std::string>& known,
                      const std::string& or_else = "") const {
    const auto word = node.value_exact<std::string>();
    const names list(known.begin(), known.end());
    if (!word) fail(node, key + " must be text");
    if (std::find(known.begin(), known.end(), *word) == known.end())
      fail(node, key + " = " + in_quotes(*word) + " is not a valid value" + detail::suggestion(*word, list) + or_else);
    return *word;
  }

  campaign_kind kind_of(const toml::table& root) const {
    const toml::node* const node = root.get("kind");
    if (node == nullptr)
      throw format_error(file_.string() +
                         ": it states no kind; write kind = \"recordings\", \"regimes\", \"mutants\", \"search\" or "
                         "\"study\"");
    const std::string word = word_of(*node, "kind", words_of(campaign_kind_names));
    return detail::named_in(campaign_kind_names, "kind", word);
  }

  std::vector<suite_case> cases_of(std::string_view text) const {
    try {
      // Paths as the file writes them: a task is the same wherever its folder lies.
      return parse_suite(text, file_.filename(), {"kind", "expect", "axes", "judging"}).cases;
    } catch (const format_error& e) {
      throw format_error((file_.parent_path() / e.what()).string());
    }
  }

  verdict expected(const toml::node& node, campaign_kind kind) const {
    if (kind == campaign_kind::recordings)
      fail(node, "a campaign of kind \"recordings\" takes no expect at the top; move expect into its [[case]] sections");
    const std::string word = word_of(node, "expect", {"holds", "vacuous", "undecided", "refuted"});
    for (const verdict v : {verdict::holds, verdict::vacuous, verdict::undecided}) {
      if (name_of(v) == word) return v;
    }
    return verdict::refuted;
  }

  std::string value_of(const toml::node& node, const known_axis& axis) const {
    const std::string key(axis.name);
    if (axis.type == axis_type::count) {
      const auto value = node.value_exact<std::int64_t>();
      if (!value || *value < 0)
        fail(node, key + " must be an integer, 0 or more, or a list of them" +
                       (axis.name == "seed" ? ", or { from = A, to = B }" : ""));
      return std::to_string(*value);
    }
    if (axis.type == axis_type::number_or_word && node.is_number()) return detail::shortest(*node.value<double>());
    if (axis.type == axis_type::number_or_word && axis.all == nullptr) fail(node, key + " must be a number or a list of numbers");
    const auto word = node.value_exact<std::string>();
    if (axis.type == axis_type::any_word) {
      if (!word || word->empty()) fail(node, key + " must be a name or a list of names");
      return *word;
    }
    if (axis.type == axis_type::plan && word && word->ends_with(".toml")) return *word;
    return word_of(node, key, axis.all(),
                   axis.type == axis_type::plan             ? ", or a file ending in .toml"
                   : axis.type == axis_type::number_or_word ? ", or a number without quotes"
                                                            : "");
  }

  campaign_axis axis_of(const toml::node& node, const known_axis& axis) const {
    campaign_axis out{std::string(axis.name), {}, 0, 0};
    if (const toml::table* range = node.as_table(); range != nullptr && axis.name == "seed") {
      require_known(*range, {"from", "to"}, "seed");
      const auto from = (*range)["from"].value_exact<std::int64_t>(), to = (*range)["to"].value_exact<std::int64_t>();
      constexpr std::int64_t most = 1'000'000'000;
      if (!from || !to || *from < 0 || *to < *from || *to - *from >= most)
        fail(node, "seed must be { from = A, to = B } with integers 0 <= A <= B, at most 1e9 seeds");
      out.from = static_cast<std::uint64_t>(*from);
      out.count = static_cast<std::uint64_t>(*to - *from) + 1;
      return out;
    }
    if (axis.all != nullptr && node.value_exact<std::string>() == "all") {
      out.words = axis.all();
      return out;
    }
    if (const toml::array* list = node.as_array()) {
      if (list->empty()) fail(node, out.name + " is an empty list; give a value" + (axis.required ? "" : ", or remove it"));
      for (const toml::node& one : *list) out.words.push_back(value_of(one, axis));
    } else {
      out.words.push_back(value_of(node, axis));
    }
    std::set<std::string> seen;
    for (const std::string& word : out.words) {
      if (!seen.insert(word).second) fail(node, out.name + " names " + in_quotes(word) + " twice");
    }
    return out;
  }

  void read_axes(const toml::table& root, campaign& c) const {
    const toml::node* const node = root.get("axes");
    const toml::table* const table = node == nullptr ? nullptr : node->as_table();
    if (node != nullptr && table == nullptr) fail(*node, "axes must be a table: [axes]");
    names known;
    for (const known_axis& a : known_axes()) {
      if (belongs(a, c.kind)) known.push_back(a.name);
    }
    if (table != nullptr) require_known(*table, known, "[axes]", c.kind);
    if (c.kind == campaign_kind::recordings) {
      campaign_axis recordings{"case", {}, 0, 0};
      for (const suite_case& one : c.cases) recordings.words.push_back(one.name);
      c.axes.push_back(std::move(recordings));
    }
    std::uint64_t count = c.cases.empty() ? 1 : c.cases.size();
    for (const known_axis& a : known_axes()) {
      const toml::node* const stated = table == nullptr ? nullptr : table->get(a.name);
      if (stated == nullptr) {
        if (a.required && belongs(a, c.kind) && c.kind != campaign_kind::recordings)
          throw format_error(file_.string() + ": [axes] states no " + std::string(a.name) +
                             "; add this key to [axes], with a value or a list of values");
        continue;
      }
      c.axes.push_back(axis_of(*stated, a));
      constexpr std::uint64_t most = std::uint64_t{1} << 40;
      if (c.axes.back().size() > most / count) fail(*stated, "there would be more than 2^40 tasks; state fewer values");
      count *= c.axes.back().size();
      if (a.name != "plan" || c.kind != campaign_kind::recordings) continue;
      for (const suite_case& one : c.cases) {
        if (one.no_plan) fail(*stated, "plan is an axis, and case " + in_quotes(one.name) + " has no_plan = true; remove one");
      }
    }
  }

  double number(const toml::node& node, const char* key) const {
    const auto value = node.is_number() ? node.value<double>() : std::nullopt;
    if (!value) fail(node, std::string(key) + " must be a number");
    return *value;
  }
  bool truth(const toml::node& node, const char* key) const {
    const auto value = node.value_exact<bool>();
    if (!value) fail(node, std::string(key) + " must be true or false");
    return *value;
  }
  std::int64_t whole(const toml::node& node, const char* key, std::int64_t least, std::int64_t most) const {
    const auto value = node.value_exact<std::int64_t>();
    if (!value || *value < least || *value > most)
      fail(node, std::string(key) + " must be an integer from " + std::to_string(least) + " to " + std::to_string(most));
    return *value;
  }
  std::string text(const toml::node& node, const char* key) const {
    const auto value = node.value_exact<std::string>();
    if (!value) fail(node, std::string(key) + " must be text");
    return *value;
  }

  /// What is searched: the goal, how, and the space, whose points are the last axis.
  void read_search(const toml::table& root, campaign& c) const {
    search_settings& out = c.search.emplace();
    for (const campaign_axis& a : c.axes) {
      if (a.size() != 1)
        fail(*root.get("axes"), "a search takes one value on each axis, but " + a.name + " has several; give one");
    }
    const bool against = std::any_of(c.axes.begin(), c.axes.end(), [](const auto& a) { return a.name == "against"; });
    const toml::node* const node = root.get("search");
    if (node == nullptr || !node->is_table())
      throw format_error(file_.string() +
                         ": [search] is missing or not a table; write goal below [search], and generations or cpu_minutes");
    const toml::table& t = *node->as_table();
    require_known(t, {"goal", "population", "generations", "cpu_minutes", "seed", "keep", "random"}, "[search]");
    const toml::node* const goal = t.get("goal");
    if (goal == nullptr)
      fail(*node, "[search] states no goal; write goal = \"error\", \"intermediate\", \"limits\" or \"distance\"");
    out.goal = detail::named_in(search_goal_names, "goal", word_of(*goal, "goal", words_of(search_goal_names)));
    const bool own = out.goal == search_goal::error || out.goal == search_goal::intermediate;
    if (own && against)
      fail(*goal, "goal " + std::string(name_of(out.goal)) + " looks at one plan; remove the key \"against\" from [axes]");
    if (out.goal == search_goal::distance && !against)
      fail(*goal, "goal distance compares two plans; name the second in [axes]: against = \"PLAN\"");
    const auto size = [&](const char* key, std::size_t& to, std::int64_t least) {
      const toml::node* const n = t.get(key);
      if (n != nullptr) to = static_cast<std::size_t>(whole(*n, key, least, 1'000'000));
    };
    size("population", out.population, 4);
    size("generations", out.generations, 1);
    size("keep", out.keep, 0);
    if (const toml::node* n = t.get("seed"))
      out.seed = static_cast<std::uint64_t>(whole(*n, "seed", 0, std::numeric_limits<std::int32_t>::max()));
    if (const toml::node* n = t.get("random")) out.random = truth(*n, "random");
    if (const toml::node* n = t.get("cpu_minutes")) {
      out.cpu_minutes = number(*n, "cpu_minutes");
      if (!(out.cpu_minutes > 0 && out.cpu_minutes <= 1e6)) fail(*n, "cpu_minutes must be above 0 and at most 1e6");
    }
    if (out.generations == 0 && out.cpu_minutes == 0)
      fail(*node, "[search] does not say when to stop; state generations or cpu_minutes");
    read_space(root, c);
    c.axes.push_back({"point", {}, 0, 0});
  }

  void read_space(const toml::table& root, campaign& c) const {
    const toml::node* const node = root.get("space");
    if (node == nullptr || !node->is_table() || node->as_table()->empty())
      throw format_error(file_.string() +
                         ": [space], the ranges to search, is missing or empty; write for example cosine = [0, 1] below [space] "
                         "(names: deltaproof list law-parameters)");
    std::vector<law_parameter> known{{"T", 0, 1, 1 << 20, ""}, {"seed", 0, 0, 0x1p53, ""}};
    known.insert(known.end(), law_parameters().begin(), law_parameters().end());
    names list;
    for (const law_parameter& p : known) list.push_back(p.name);
    const toml::table& t = *node->as_table();
    require_known(t, list, "[space]");
    for (const law_parameter& p : known) {
      const toml::node* const at = t.get(p.name);
      if (at == nullptr) continue;
      const std::string name(p.name);
      for (const campaign_axis& a : c.axes) {
        if (a.name == name) fail(*at, name + " is in [axes] and in [space]; remove one");
      }
      const toml::array* const ends = at->as_array();
      if (ends == nullptr || ends->size() != 2) fail(*at, name + " must be [least, most]");
      const search_range range{name, number((*ends)[0], name.c_str()), number((*ends)[1], name.c_str())};
      const bool integers = !range.whole() || ((*ends)[0].is_integer() && (*ends)[1].is_integer());
      if (!integers || !(range.least >= p.least && range.most <= p.most && range.least < range.most))
        fail(*at, name + " must be [least, most] with " + detail::shortest(p.least) +
                      " <= least < most <= " + detail::shortest(p.most) + (range.whole() ? ", integers" : ""));
      c.search->space.push_back(range);
    }
  }

  void read_judging(const toml::table& root, judging& judge) const {
    const toml::node* const node = root.get("judging");
    if (node == nullptr) return;
    if (!node->is_table()) fail(*node, "judging must be a table: [judging]");
    const toml::table& t = *node->as_table();
    require_known(t, {"false_alarm", "accuracy", "power", "seed", "max_bits", "strict_padding", "max_error", "because"},
                  "[judging]");
    if (const toml::node* n = t.get("false_alarm")) {
      judge.false_alarm = number(*n, "false_alarm");
      require_valid_at(*n, judge);
    }
    if (const toml::node* n = t.get("accuracy")) {
      judge.accuracy = number(*n, "accuracy");
      require_valid_at(*n, judge);
    }
    if (const toml::node* n = t.get("power")) judge.power = truth(*n, "power");
    if (const toml::node* n = t.get("strict_padding")) judge.strict_padding = truth(*n, "strict_padding");
    if (const toml::node* n = t.get("seed"))
      judge.seed = static_cast<std::uint64_t>(whole(*n, "seed", 0, std::numeric_limits<std::int64_t>::max()));
    if (const toml::node* n = t.get("max_bits")) {
      judge.max_bits = static_cast<int>(whole(*n, "max_bits", 0, std::numeric_limits<int>::max()));
      require_valid_at(*n, judge);
    }
    const toml::node* const limits = t.get("max_error");
    const toml::node* const reason = t.get("because");
    if ((limits == nullptr) != (reason == nullptr))
      fail(*node, "the keys \"max_error\" and \"because\" need each other; state both or neither");
    if (limits != nullptr) read_bounds(*limits, reason_in(*reason), judge);
  }
  /// The ranges are those of every command; what is wrong is said of its line.
  void require_valid_at(const toml::node& at, const judging& judge) const {
    try {
      require_valid(judge);
    } catch (const error& e) {
      constexpr std::string_view from = "check: ";
      const std::string_view said = e.what();
      fail(at, std::string(said.starts_with(from) ? said.substr(from.size()) : said));
    }
  }
  because reason_in(const toml::node& node) const {
    try {
      return because(text(node, "because"));
    } catch (const domain_error& e) {
      fail(node, e.what());
    }
  }
  void read_bounds(const toml::node& limits, const because& reason, judging& judge) const {
    const auto add = [&](const toml::node& one) {
      const std::string limit = text(one, "max_error");
      try {
        judge.bounds.push_back(parse_tensor_bound(limit, reason));
      } catch (const error& e) {
        // It speaks of the option of a command.
        const std::string option = "--max-error " + limit, said = e.what();
        fail(one, said.starts_with(option) ? "max_error = " + in_quotes(limit) + said.substr(option.size()) : said);
      }
    };
    if (const toml::array* list = limits.as_array()) {
      for (const toml::node& one : *list) add(one);
    } else {
      add(limits);
    }
  }

  std::filesystem::path file_;
};

/// The texts of the plan files that the campaign names, each of which must be a plan.
std::map<std::string, std::string> plan_texts_of(const campaign& c,
                                                 const std::optional<std::map<std::string, std::string>>& given) {
  std::set<std::string> files;
  for (const campaign_axis& a : c.axes) {
    if (a.name == "plan" || a.name == "against") files.insert(a.words.begin(), a.words.end());
  }
  for (const suite_case& one : c.cases) files.insert(one.plan);
  std::map<std::string, std::string> out;
  for (const std::string& file : files) {
    if (!file.ends_with(".toml")) continue;
    if (given && !given->contains(file))
      throw format_error(c.file.string() + ": campaign.json does not hold the text of plan " + in_quotes(file) +
                         "; run the sweep again");
    out[file] = given ? given->at(file) : read_file(c.file.parent_path() / file, plan_limit);
    (void)parse_plan(out[file], (c.file.parent_path() / file).string());
  }
  return out;
}

}  // namespace

campaign parse_campaign(std::string_view text, const std::filesystem::path& file, const std::string& build,
                        const std::optional<std::map<std::string, std::string>>& plan_texts) {
  detail::require_shallow_toml(text, file.string());
  try {
    campaign c = campaign_reader(file).read(toml::parse(text), text);
    c.build = build;
    c.plan_texts = plan_texts_of(c, plan_texts);
    return c;
  } catch (const toml::parse_error& e) {
    throw format_error(file.string() + ": line " + std::to_string(e.source().begin.line) +
                       ": not valid TOML: " + std::string(e.description()));
  }
}

}  // namespace deltaproof
