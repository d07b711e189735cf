// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// Reads the shape of a plan: sections, keys, types, values. Its sense: plan_sense.hpp.
#include <algorithm>
#include <cmath>

#include "deltaproof/support/read_file.hpp"
#include "plan/plan_keys.hpp"
#include "plan/plan_sense.hpp"
#include "plan/plan_words.hpp"
#include "plan/state_cache_toml.hpp"
#include "support/nearest_name.hpp"
#include "support/toml.hpp"

namespace deltaproof {

namespace {

using detail::suggestion;
using plan_detail::all_columns;
using plan_detail::as_stated;
using plan_detail::for_each_key;
using plan_detail::key;
using plan_detail::names;
using plan_detail::names_in;
using plan_detail::one_part;
using plan_detail::quoted;
using plan_detail::stored_word;
using plan_detail::words_of;

/// Of values of a key, of kernels and of exceptions: each is compared with the others.
constexpr std::size_t longest_list = 1024;

class reader {
 public:
  explicit reader(std::string_view where) : where_(where) {}

  plan read(const toml::table& root) {
    plan p;
    require_known(root, "", top_level(p));
    p.name = text(root, "", "name");
    p.what = optional_text(root, "what");
    p.source = optional_text(root, "source");
    if (const toml::node* node = root.get("kernels")) {
      list(*node, "kernels", [&](const toml::node& one) { p.kernels.push_back(text_of(one, "kernels")); });
    }
    p.ops = named_list(required(root, "ops"), "ops", op_names);
    p.path = named_list(required(root, "path"), "path", paths);
    p.dtypes = formats_of(required(root, "dtypes"));
    if (const toml::node* node = root.get("chunk")) {
      any_chunk_ = node->is_string() && *node->value<std::string>() == "any";
      if (!any_chunk_) p.chunk = lengths(*node, "chunk", "any");
    }
    read_sections(root, p, false);
    if (const toml::node* node = root.get("when")) read_exceptions(*node, p);
    plan_detail::require_sense({p, root, where_, when_lines_});
    return p;
  }

 private:
  static constexpr detail::kind_names<path_kind, 2> paths{{{path_kind::chunk, "chunk"}, {path_kind::recurrent, "recurrent"}}};

  [[noreturn]] void fail(const std::string& what) const { throw format_error(where_ + ": " + what); }
  [[noreturn]] void fail(const std::string& key, const toml::node& value, const std::string& what) const {
    fail(line_of(value) + key + as_stated(value) + what);
  }

  static std::string line_of(const toml::node& node) { return "line " + std::to_string(node.source().begin.line) + ": "; }

  static names sections() {
    names all;
    plan p;
    for_each_key(p, [&](const key& k, const auto&) {
      if (std::find(all.begin(), all.end(), k.section) == all.end()) all.push_back(k.section);
    });
    return all;
  }

  static names top_level(const plan&) {
    names all{"name", "what", "source", "kernels", "ops", "path", "dtypes", "chunk", "when"};
    for (const std::string_view section : sections()) all.push_back(section);
    return all;
  }

  /// The keys of a section: those that hold lists and, where it is no exception, the rest.
  static names keys_of(std::string_view section, bool exception) {
    names all;
    plan p;
    for_each_key(p, [&](const key& k, const auto&) {
      if (k.section == section && (all.empty() || all.back() != k.name)) all.push_back(k.name);
    });
    if (exception) return all;
    if (section == "gate") all.insert(all.end(), {"block", "contract", "clip"});
    if (section == "inverse") all.push_back("association");
    if (section == plan_detail::split_section) all.push_back("truncation");
    if (section == "hardware") {
      all.insert(all.end(), {"exp2_ulps", "rsqrt_ulps", "flush_to_zero", "accumulator_bits", "truncation", "block"});
    }
    return all;
  }

  void require_known(const toml::table& table, const std::string& section, const names& known) const {
    for (const auto& [name, value] : table) {
      if (holds(known, name.str())) continue;
      const std::string in = section.empty() ? "" : "[" + section + "] ";
      fail(line_of(value) + in + "there is no " + (value.is_table() ? "section" : "key") + " " + in_quotes(name.str()) +
           suggestion(name.str(), known));
    }
  }
  /// No key in an exception that a plan may state only once.
  void require_replaceable(const toml::table& table, const std::string& section) const {
    const names all = keys_of(section, false), known = keys_of(section, true);
    for (const auto& [name, value] : table) {
      if (holds(known, name.str()) || !holds(all, name.str())) continue;
      std::string may;
      for (const std::string_view one : known) may += (may.empty() ? "" : ", ") + std::string(one);
      fail(line_of(value) + "[[when]] may not replace [" + section + "] " + std::string(name.str()) + "; of [" + section +
           "] it may replace " + may);
    }
  }
  static bool holds(const names& all, std::string_view one) { return std::find(all.begin(), all.end(), one) != all.end(); }

  const toml::node& required(const toml::table& table, const std::string& name) const {
    const toml::node* const node = table.get(name);
    if (node == nullptr) fail("\"" + name + "\" is not stated; a plan must state it");
    return *node;
  }

  std::string text_of(const toml::node& node, const std::string& name) const {
    if (!node.is_string()) fail(name, node, "must be text");
    return *node.value<std::string>();
  }
  std::string text(const toml::table& table, const std::string&, const std::string& name) const {
    std::string value = text_of(required(table, name), name);
    if (value.empty()) fail("\"" + name + "\" is empty");
    return value;
  }
  std::string optional_text(const toml::table& table, const std::string& name) const {
    const toml::node* const node = table.get(name);
    return node == nullptr ? "" : text_of(*node, name);
  }

  /// A value or a list of them; each once.
  template <class Read>
  void list(const toml::node& node, const std::string& name, const Read& read) const {
    const toml::array* const array = node.as_array();
    if (array == nullptr) return read(node);
    if (array->empty()) fail(name, node, "is empty; give at least one entry");
    if (array->size() > longest_list)
      fail(name, node, "has " + std::to_string(array->size()) + " entries; give at most " + std::to_string(longest_list));
    for (const toml::node& one : *array) read(one);
  }

  template <class T>
  void add(std::vector<T>& to, const T& value, const std::string& name, const toml::node& node) const {
    if (std::find(to.begin(), to.end(), value) != to.end()) fail(name, node, "is listed twice");
    to.push_back(value);
  }

  template <class Kind, std::size_t N>
  choices<Kind> named_list(const toml::node& node, const std::string& name, const detail::kind_names<Kind, N>& table) const {
    choices<Kind> out;
    list(node, name, [&](const toml::node& one) {
      const std::string value = text_of(one, name);
      for (const auto& [kind, word] : table) {
        if (word == value) return add(out, kind, name, one);
      }
      fail(name, one, "is not a valid value" + suggestion(value, names_in(table)));
    });
    return out;
  }

  choices<format> formats_of(const toml::node& node) const {
    constexpr detail::kind_names<int, 4> dtypes{{{0, "bf16"}, {1, "fp16"}, {2, "fp32"}, {3, "fp64"}}};
    choices<format> out;
    for (const int i : named_list(node, "dtypes", dtypes))
      out.push_back(format_named(dtypes[static_cast<std::size_t>(i)].second));
    return out;
  }

  std::size_t length_of(const toml::node& node, const std::string& name) const {
    const auto value = node.value<std::int64_t>();
    if (!node.is_integer() || *value < 1) fail(name, node, "must be a whole number, 1 or more");
    return static_cast<std::size_t>(*value);
  }
  std::vector<std::size_t> lengths(const toml::node& node, const std::string& name, std::string_view word) const {
    std::vector<std::size_t> out;
    list(node, name, [&](const toml::node& one) {
      if (one.is_string())
        fail(name, one,
             "must be a whole number, 1 or more" +
                 (word.empty() ? "" : ", or the word \"" + std::string(word) + "\" in place of a list"));
      add(out, length_of(one, name), name, one);
    });
    return out;
  }

  // One reader for each type a list of a plan holds.
  template <class Kind>
    requires std::is_enum_v<Kind>
  void read_list(const toml::node& node, const key& k, choices<Kind>& out) const {
    out = named_list(node, k.text(), words_of(Kind{}));
  }
  void read_list(const toml::node& node, const key& k, choices<format_choice>& out) const {
    names known;
    for (const named_format& row : formats) {
      if (has_dtype(row.value) || k.is_operand) known.push_back(row.name);
    }
    known.insert(known.end(), {"X", "given"});
    if (k.may_be_none) known.push_back("none");
    const bool update = k.name == plan_detail::update_operand;
    if (update || k.may_be_stored) known.push_back(stored_word);
    list(node, k.text(), [&](const toml::node& one) {
      if (k.may_be_cache && one.is_table()) {
        format_choice choice{format_choice::kind::cache, fp32, {}};
        choice.cache = plan_detail::read_state_cache(*one.as_table(), k, where_);
        return add(out, choice, k.text(), one);
      }
      const std::string word = text_of(one, k.text());
      if (std::find(known.begin(), known.end(), word) == known.end()) {
        const bool is_format = std::any_of(formats.begin(), formats.end(), [&](const auto& row) { return row.name == word; });
        const std::string why = is_format        ? "is a format of operands only, and this key is not an operand"
                                : word == "none" ? "means that nothing is rounded, and this key needs a format"
                                                 : "is not a valid value of this key";
        fail(k.text(), one, why + suggestion(word, known));
      }
      if (update && word == stored_word) return;
      using enum format_choice::kind;
      if (word == stored_word) return add(out, format_choice{stored, fp32, {}}, k.text(), one);
      if (word == "X") return add(out, format_choice{x, fp32, {}}, k.text(), one);
      if (word == "given") return add(out, format_choice{given, fp32, {}}, k.text(), one);
      if (word == "none") return add(out, format_choice{none, fp32, {}}, k.text(), one);
      add(out, format_choice{fixed, format_named(word), {}}, k.text(), one);
    });
  }
  void read_list(const toml::node& node, const key& k, choices<update_source>& out) const {
    list(node, k.text(), [&](const toml::node& one) {
      const auto source = text_of(one, k.text()) == stored_word ? update_source::stored : update_source::computed;
      if (std::find(out.begin(), out.end(), source) == out.end()) out.push_back(source);
    });
  }
  void read_list(const toml::node& node, const key& k, choices<std::optional<double>>& out) const {
    list(node, k.text(), [&](const toml::node& one) {
      if (one.is_string() && *one.value<std::string>() == "given") return add(out, std::optional<double>(), k.text(), one);
      const double x = one.value<double>().value_or(0);
      if (!(x > 0 && x < 1))
        fail(k.text(), one, "must be a number above 0 and below 1, such as 1e-6, or \"given\" for the problem's l2norm_eps");
      add(out, std::optional(x), k.text(), one);
    });
  }
  void read_list(const toml::node& node, const key& k, choices<double>& out) const {
    list(node, k.text(), [&](const toml::node& one) {
      const double x = one.value<double>().value_or(1e9);
      if (!(std::fabs(x) <= 1000)) fail(k.text(), one, "must be a number from -1000 to 1000");
      add(out, x, k.text(), one);
    });
  }
  void read_list(const toml::node& node, const key& k, choices<inverse_method>& out) const {
    list(node, k.text(), [&](const toml::node& one) {
      const std::string word = text_of(one, k.text());
      try {
        add(out, inverse_named(word), k.text(), one);
      } catch (const format_error&) {
        names known;
        for (const named_inverse& row : inverse_methods) known.push_back(row.name);
        fail(k.text(), one,
             "is not a valid value of this key; in forwardN+block, forwardN+block2, neumannN+block and neumannN+block2 N may be "
             "any number of rows" +
                 suggestion(word, known));
      }
    });
  }
  void read_list(const toml::node& node, const key& k, choices<std::size_t>& out) const {
    const bool chunks = k.section == plan_detail::split_section;
    list(node, k.text(), [&](const toml::node& one) {
      if (says(one, chunks ? one_part : all_columns)) return add(out, std::size_t{0}, k.text(), one);
      if (!one.is_integer())
        fail(k.text(), one,
             chunks ? "must be a number of chunks, or \"none\" for a sequence in one part"
                    : "must be a number of columns, or \"all\" for all of them");
      add(out, length_of(one, k.text()), k.text(), one);
    });
  }
  void read_list(const toml::node& node, const key& k, choices<bool>& out) const {
    constexpr detail::kind_names<bool, 2> directions{{{true, "rz"}, {false, "rna"}}};
    out = named_list(node, k.text(), directions);
  }

  void read_sections(const toml::table& root, plan& p, bool exception) {
    for (const std::string_view section : sections()) {
      const toml::node* const node = root.get(section);
      if (node == nullptr) continue;
      const toml::table* const table = node->as_table();
      if (table == nullptr) fail(std::string(section), *node, "must be a section, [" + std::string(section) + "]");
      if (exception) require_replaceable(*table, std::string(section));
      require_known(*table, std::string(section), keys_of(section, exception));
      if (section == plan_detail::backward_section) p.backward.stated = true;
      for_each_key(p, [&](const key& k, auto& out) {
        const toml::node* const value = k.section == section ? table->get(k.name) : nullptr;
        if (value != nullptr) read_list(*value, k, out);
      });
      if (!exception) read_single(section, *table, p);
    }
  }

  /// The keys that hold one value.
  void read_single(std::string_view section, const toml::table& table, plan& p) const {
    if (section == "gate") {
      if (const toml::node* node = table.get("block")) p.gate.block = length_of(*node, "[gate] block");
      if (const toml::node* node = table.get("contract")) p.gate.contract = interval(*node, "[gate] contract");
      if (const toml::node* node = table.get("clip")) p.gate.clip = interval(*node, "[gate] clip");
    }
    if (section == "inverse") {
      if (const toml::node* node = table.get("association")) {
        p.inverse.association = named_list(*node, "[inverse] association", merge_order_names);
      }
    }
    if (section == plan_detail::split_section) {
      const toml::node* node = table.get("truncation");
      if (node == nullptr) fail("[split] truncation is not stated; a section [split] needs it");
      if (!says(*node, one_part)) p.split.truncation = log_decay(*node);
    }
    if (section != "hardware") return;
    if (const toml::node* node = table.get("exp2_ulps")) p.hardware.exp2_ulps = ulps(*node, "[hardware] exp2_ulps");
    if (const toml::node* node = table.get("rsqrt_ulps")) p.hardware.rsqrt_ulps = ulps(*node, "[hardware] rsqrt_ulps");
    if (const toml::node* node = table.get("flush_to_zero")) p.hardware.flush_to_zero = truth(*node, "[hardware] flush_to_zero");
    if (const toml::node* node = table.get("truncation")) p.hardware.truncation = truth(*node, "[hardware] truncation");
    if (const toml::node* node = table.get("block")) p.hardware.block = length_of(*node, "[hardware] block");
    if (const toml::node* node = table.get("accumulator_bits")) {
      const std::size_t bits = length_of(*node, "[hardware] accumulator_bits");
      // As far as products are emulated.
      if (bits > 28) fail("[hardware] accumulator_bits", *node, "must be between 1 and 28");
      p.hardware.accumulator_bits = static_cast<int>(bits);
    }
  }

  double ulps(const toml::node& node, const std::string& name) const {
    const auto value = node.value<double>();
    if (!node.is_number() || !(*value >= 0) || std::isinf(*value)) fail(name, node, "must be a number of ulps, 0 or more");
    return *value;
  }
  double log_decay(const toml::node& node) const {
    const auto value = node.value<double>();
    if (!node.is_number() || !(*value < 0) || std::isinf(*value))
      fail("[split] truncation", node, "must be a log decay below 0, such as -10, or \"none\"");
    return *value;
  }
  bool truth(const toml::node& node, const std::string& name) const {
    if (!node.is_boolean()) fail(name, node, "must be true or false");
    return *node.value<bool>();
  }
  static bool says(const toml::node& node, std::string_view word) {
    return node.is_string() && *node.value<std::string>() == word;
  }
  std::pair<double, double> interval(const toml::node& node, const std::string& name) const {
    const toml::array* const array = node.as_array();
    if (array == nullptr || array->size() != 2 || !(*array)[0].is_number() || !(*array)[1].is_number())
      fail(name, node, "must be two numbers, [least, largest]");
    const std::pair<double, double> ends{*(*array)[0].value<double>(), *(*array)[1].value<double>()};
    if (!(ends.first < ends.second)) fail(name, node, "must be two numbers, the first below the second");
    return ends;
  }

  void read_exceptions(const toml::node& node, plan& p) {
    if (!node.is_array_of_tables())
      fail(line_of(node) + "\"when\" is " + quoted(node) + "; write each exception as a section [[when]], in double brackets");
    const toml::array& array = *node.as_array();
    if (array.size() > longest_list)
      fail("a plan has at most " + std::to_string(longest_list) + " sections [[when]], not " + std::to_string(array.size()));
    for (const toml::node& one : array) {
      const toml::table* const table = one.as_table();
      names known{"ops", "dtypes", "chunk"};
      for (const std::string_view section : sections()) known.push_back(section);
      require_known(*table, "[when]", known);
      plan_exception e;
      if (const toml::node* value = table->get("ops")) e.ops = named_list(*value, "[[when]] ops", op_names);
      if (const toml::node* value = table->get("dtypes")) e.dtypes = formats_of(*value);
      if (const toml::node* value = table->get("chunk")) e.chunk = lengths(*value, "[[when]] chunk", "");
      if (e.ops.empty() && e.dtypes.empty() && e.chunk.empty())
        fail(line_of(one) + "[[when]] states no condition; state ops, dtypes or chunk in it");
      const std::string at = line_of(one) + "[[when]] ";
      require_reachable(e.ops, p.ops, at + "ops");
      require_reachable(e.dtypes, p.dtypes, at + "dtypes");
      if (!e.chunk.empty() && std::find(p.path.begin(), p.path.end(), path_kind::chunk) == p.path.end())
        fail(at + "chunk has no effect, so remove it: path is recurrent");
      if (!any_chunk_) require_reachable(e.chunk, p.chunk, at + "chunk");
      read_sections(*table, e.change, true);
      when_lines_.push_back(line_of(one));
      p.when.push_back(std::move(e));
    }
  }

  template <class T>
  void require_reachable(const std::vector<T>& condition, const std::vector<T>& all, const std::string& name) const {
    for (const T& value : condition) {
      if (std::find(all.begin(), all.end(), value) != all.end()) continue;
      std::string word;
      if constexpr (std::is_same_v<T, std::size_t>)
        word = std::to_string(value);
      else
        word = name_of(value);
      fail(name + " lists " + word + ", which the plan's own " + name.substr(name.rfind(' ') + 1) +
           " does not list, so it can never match; remove it, or add it there");
    }
  }

  std::string where_;
  bool any_chunk_ = false;
  std::vector<std::string> when_lines_;  ///< "line 104: " of each exception
};

}  // namespace

plan parse_plan(std::string_view text, std::string_view where) {
  detail::require_shallow_toml(text, std::string(where));
  try {
    return reader(where).read(toml::parse(text));
  } catch (const toml::parse_error& e) {
    throw format_error(std::string(where) + ": line " + std::to_string(e.source().begin.line) +
                       ": not valid TOML: " + std::string(e.description()));
  }
}

}  // namespace deltaproof
