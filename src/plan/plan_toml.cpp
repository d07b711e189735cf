// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// Reads a plan. Shape first (sections, keys, types, values), then sense: what must be stated and what can mean nothing.
#include <algorithm>
#include <cmath>

#include "deltaproof/support/read_file.hpp"
#include "plan/plan_keys.hpp"
#include "plan/plan_words.hpp"
#include "plan/state_cache_toml.hpp"
#include "support/nearest_name.hpp"
#include "support/toml.hpp"

namespace deltaproof {

namespace {

using detail::suggestion;
using plan_detail::all_columns;
using plan_detail::for_each_key;
using plan_detail::key;
using plan_detail::names;
using plan_detail::names_in;
using plan_detail::needed;
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
    require_sense(p, root);
    return p;
  }

 private:
  static constexpr detail::kind_names<path_kind, 2> paths{{{path_kind::chunk, "chunk"}, {path_kind::recurrent, "recurrent"}}};

  [[noreturn]] void fail(const std::string& what) const { throw format_error(where_ + ": " + what); }
  [[noreturn]] void fail(const std::string& key, const toml::node& value, const std::string& what) const {
    const auto line = value.source().begin.line;
    fail("line " + std::to_string(line) + ": " + key + " = " + quoted(value) + " " + what);
  }

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
      if (std::find(known.begin(), known.end(), name.str()) != known.end()) continue;
      const std::string in = section.empty() ? "" : "[" + section + "] ";
      fail("line " + std::to_string(value.source().begin.line) + ": " + in + "there is no " +
           (value.is_table() ? "section" : "key") + " " + in_quotes(name.str()) + suggestion(name.str(), known));
    }
  }

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
    if (array->empty()) fail(name, node, "without entries; give at least one value that a kernel may use");
    if (array->size() > longest_list)
      fail(name, node, "of " + std::to_string(array->size()) + " entries; give at most " + std::to_string(longest_list));
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
      if (const toml::node* node = table.get("block")) p.gate.block = lengths(*node, "[gate] block", "").front();
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
    if (const toml::node* node = table.get("block")) p.hardware.block = lengths(*node, "[hardware] block", "").front();
    if (const toml::node* node = table.get("accumulator_bits")) {
      const std::size_t bits = length_of(*node, "[hardware] accumulator_bits");
      if (bits < 1 || bits > 52) fail("[hardware] accumulator_bits", *node, "must be between 1 and 52");
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
      fail(name, node, "must be two numbers, [first, second]");
    const std::pair<double, double> ends{*(*array)[0].value<double>(), *(*array)[1].value<double>()};
    if (!(ends.first < ends.second)) fail(name, node, "whose first number is not below its second; give the smaller one first");
    return ends;
  }

  void read_exceptions(const toml::node& node, plan& p) {
    if (!node.is_array_of_tables())
      fail("line " + std::to_string(node.source().begin.line) + ": \"when\" is " + quoted(node) +
           "; write each exception as a section [[when]], in double brackets");
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
        fail("[[when]] states no condition" + suggestion("chunk", names{"ops", "dtypes", "chunk"}));
      require_reachable(e.ops, p.ops, false, "ops");
      require_reachable(e.dtypes, p.dtypes, false, "dtypes");
      require_reachable(e.chunk, p.chunk, any_chunk_, "chunk");
      read_sections(*table, e.change, true);
      p.when.push_back(std::move(e));
    }
  }

  template <class T>
  void require_reachable(const std::vector<T>& condition, const std::vector<T>& all, bool any, const std::string& name) const {
    for (const T& value : condition) {
      if (any || std::find(all.begin(), all.end(), value) != all.end()) continue;
      std::string word;
      if constexpr (std::is_same_v<T, std::size_t>)
        word = std::to_string(value);
      else
        word = name_of(value);
      fail("[[when]] " + name + " lists " + word + ", which " + name +
           " at the top of the plan does not, so it can never match; remove it, or add it at the top of the plan");
    }
  }

  void require_sense(const plan& p, const toml::table& root) const {
    const bool on_chunks = std::find(p.path.begin(), p.path.end(), path_kind::chunk) != p.path.end();
    const bool by_tokens = std::find(p.path.begin(), p.path.end(), path_kind::recurrent) != p.path.end();
    const bool gated = std::any_of(p.ops.begin(), p.ops.end(), [](op_kind op) { return gates_of(op) != gate_axes::none; });
    const bool merged =
        std::any_of(p.inverse.method.begin(), p.inverse.method.end(), [](const inverse_method& m) { return m.block > 0; });
    const auto uses = [&](const auto& value) { return any_list_holds(p, value); };
    const auto wanted = [&](needed where) {
      switch (where) {
        case needed::always:
          return true;
        case needed::chunk_only:
          return on_chunks;
        case needed::gate:
          return gated;
        case needed::gate_chunk:
          return gated && on_chunks;
        case needed::merges:
          return on_chunks && merged;
        case needed::tf32:
          return uses(format_choice{format_choice::kind::fixed, tf32, {}});
        case needed::backward:
          return p.backward.stated;
        case needed::backward_chunk:
          return p.backward.stated && on_chunks;
        case needed::backward_tokens:
          return p.backward.stated && by_tokens;
        case needed::backward_gate:
          return p.backward.stated && gated;
        case needed::backward_gate_chunk:
          return p.backward.stated && gated && on_chunks;
      }
      return true;
    };
    const auto reason = [&](needed where) -> std::string {
      if (where == needed::backward_tokens) return "path is chunk";
      if (where == needed::backward_gate) return "no op of the plan has a gate";
      if (!on_chunks && where != needed::gate) return "path is recurrent";
      if (where == needed::merges) return "a diagonal block is the whole chunk and nothing is merged";
      return "no op of the plan has a gate";
    };
    require_stated(root, "chunk", on_chunks, "path is recurrent");
    for_each_key(p, [&](const key& k, const auto& list) {
      const bool stated = !list.empty() || (k.name == plan_detail::update_operand && !p.v_new.update.empty());
      if (wanted(k.where) && !stated && !k.has_default) fail(k.text() + " is not stated; a plan must state it");
      if (!wanted(k.where) && stated && k.where != needed::tf32)
        fail(k.text() + " has no effect, so remove it: " + reason(k.where));
    });
    if (const std::string why = plan_detail::contradiction(p); !why.empty()) fail(why);
    for (const plan_exception& e : p.when) {
      if (e.change.backward.stated && !p.backward.stated)
        fail("[[when]] replaces keys of [backward], and the plan has no such section; add it, or remove the keys");
    }
    const auto has_blocks = [](gate_form f) { return f != gate_form::difference && f != gate_form::factored; };
    const bool blocks = std::any_of(p.gate.form.begin(), p.gate.form.end(), has_blocks) ||
                        std::any_of(p.backward.blocks.begin(), p.backward.blocks.end(), has_blocks);
    if (!p.split.chunks.empty() && root.at_path("split.truncation").node() == nullptr)
      fail("[split] truncation is not stated; a section [split] needs it");
    if (p.split.chunks.empty() && root.get("split") != nullptr) fail("[split] chunks is not stated; a section [split] needs it");
    require_stated(root, "gate.block", blocks, "no value of [gate] form or of [backward] blocks ends in -block");
    for (const std::string key : {"contract", "clip"}) {
      if (root.at_path("gate." + key) && !gated)
        fail("[gate] " + key + " has no effect, so remove the section [gate]: no op of the plan has a gate");
    }
    if (root.at_path("inverse.association") && !(on_chunks && merged))
      fail("[inverse] association has no effect, so remove it: " + reason(needed::merges));
    if (uses(sum_order::tensor_core)) {
      if (p.hardware.accumulator_bits == 0) fail("[hardware] accumulator_bits is not stated; [A] order tensor-core needs it");
      if (!p.hardware.truncation)
        fail("[A] order = \"tensor-core\" truncates, but [hardware] truncation = false; set it to true, or choose another order");
    }
  }

  void require_stated(const toml::table& root, const std::string& path, bool wanted, const std::string& reason) const {
    const bool stated = static_cast<bool>(root.at_path(path));
    const std::size_t dot = path.find('.');
    const std::string name =
        dot == std::string::npos ? "\"" + path + "\"" : "[" + path.substr(0, dot) + "] " + path.substr(dot + 1);
    if (wanted && !stated) fail(name + " is not stated; a plan must state it");
    if (!wanted && stated) fail(name + " has no effect, so remove it: " + reason);
  }

  template <class T>
  static bool any_list_holds(const plan& p, const T& value) {
    bool found = false;
    for_each_key(p, [&](const key&, const auto& list) {
      if constexpr (std::is_same_v<std::decay_t<decltype(list)>, choices<T>>) {
        found = found || std::find(list.begin(), list.end(), value) != list.end();
      }
    });
    return found ||
           std::any_of(p.when.begin(), p.when.end(), [&](const plan_exception& e) { return any_list_holds(e.change, value); });
  }

  std::string where_;
  bool any_chunk_ = false;
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
