// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
#include "plan/plan_sense.hpp"

#include <algorithm>

#include "plan/plan_keys.hpp"
#include "plan/plan_words.hpp"

namespace deltaproof::plan_detail {

namespace {

/// Why this plan cannot be; empty where it can. The backward pass multiplies sums by the scale; a gate of channels is a factor of
/// each term: neither a product nor a row of v_new can carry it.
std::string contradiction(const plan& p) {
  std::string why;
  const auto on_query = [](const plan& stated) {
    return std::any_of(stated.o.scale.begin(), stated.o.scale.end(), [](read_scale at) { return at != read_scale::o; });
  };
  const bool scaled = on_query(p) || std::any_of(p.when.begin(), p.when.end(), [&](const auto& e) { return on_query(e.change); });
  if (scaled && p.backward.stated)
    return "[o] scale must be \"o\" in a plan with [backward], whose sums are multiplied by the scale; set it to \"o\", or leave "
           "[backward] out";
  const auto without_backward = [](const plan& stated) {
    const auto rows = std::find(stated.beta.into.begin(), stated.beta.into.end(), step_factor::rows);
    if (rows != stated.beta.into.end()) return "[beta] into = \"rows\"";
    if (stated.gate.clip) return "[gate] clip";
    for (const auto& [list, key] : {std::pair{&stated.A.product_store, "[A] product_store"},
                                    {&stated.A.read, "[A] read"},
                                    {&stated.inverse.read, "[inverse] read"},
                                    {&stated.u.read, "[u] read"},
                                    {&stated.w.read, "[w] read"},
                                    {&stated.o.product_store, "[o] product_store"},
                                    {&stated.o.scale_format, "[o] scale_format"}}) {
      if (!list->empty()) return key;
    }
    return "";
  };
  for (std::size_t i = 0; p.backward.stated && i <= p.when.size(); ++i) {
    const std::string key = without_backward(i == 0 ? p : p.when[i - 1].change);
    if (!key.empty()) return key + " contradicts [backward], whose formulas do not contain it; leave one of them out";
  }
  const auto within = [](const choices<gate_form>& forms) {
    return std::any_of(forms.begin(), forms.end(),
                       [](gate_form f) { return f == gate_form::middle_block || f == gate_form::first_block; });
  };
  const auto shifts = [](const plan& stated) { return !stated.gate.shift.empty(); };
  const auto shifted = [&](const plan& stated) { return within(stated.gate.form) || within(stated.backward.blocks); };
  if (!shifted(p) && std::none_of(p.when.begin(), p.when.end(), [&](const auto& e) { return shifted(e.change); }) &&
      (shifts(p) || std::any_of(p.when.begin(), p.when.end(), [&](const auto& e) { return shifts(e.change); })))
    return "[gate] shift has no effect, so remove it: no form is \"middle-block\" or \"first-block\"";
  const auto keeps_query = [](const plan& stated) { return !stated.o.scale_store.empty(); };
  if (!scaled &&
      (keeps_query(p) || std::any_of(p.when.begin(), p.when.end(), [&](const auto& e) { return keeps_query(e.change); })))
    return "[o] scale_store has no effect, so remove it: [o] scale is \"o\", so q is not multiplied by the scale";
  const bool others = std::any_of(p.ops.begin(), p.ops.end(), [](op_kind op) { return gates_of(op) == gate_axes::heads; });
  const auto refuse = [&](const choices<op_kind>& ops, const auto& list, const auto& impossible, const std::string& key,
                          const auto& names, const std::string& only) {
    const bool only_channels =
        !ops.empty() && std::all_of(ops.begin(), ops.end(), [](op_kind op) { return gates_of(op) == gate_axes::channels; });
    const bool channels_alone = !others || only_channels;
    if (!channels_alone || std::find(list.begin(), list.end(), impossible) == list.end()) return;
    why = key + " = \"" + std::string(detail::name_in(names, impossible)) +
          "\" contradicts ops = \"kda\": with one gate per channel only \"" + only + "\" is possible; state " + key + " = \"" +
          only + "\"";
  };
  const auto both = [&](const choices<op_kind>& ops, const plan& stated) {
    refuse(ops, stated.v_new.decay, write_decay::v_new, "[v_new] decay", write_decay_names, "k");
    refuse(ops, stated.o.decay, read_decay::product, "[o] decay", read_decay_names, "q");
    refuse(ops, stated.backward.dg_form, gate_gradient::products, "[backward] dg_form", gate_gradient_names, "rows");
    refuse(ops, stated.backward.read_decay, cotangent_decay::d_o, "[backward] read_decay", cotangent_decay_names, "q");
    refuse(ops, stated.v_new.form, change_form::residual, "[v_new] form", change_form_names, "transforms");
  };
  both({}, p);
  for (const plan_exception& e : p.when) both(e.ops, e.change);
  return why;
}

template <class T>
bool any_list_holds(const plan& p, const T& value) {
  bool found = false;
  for_each_key(p, [&](const key&, const auto& list) {
    if constexpr (std::is_same_v<std::decay_t<decltype(list)>, choices<T>>) {
      found = found || std::find(list.begin(), list.end(), value) != list.end();
    }
  });
  return found ||
         std::any_of(p.when.begin(), p.when.end(), [&](const plan_exception& e) { return any_list_holds(e.change, value); });
}

bool merges_blocks(const plan& p) {
  return std::any_of(p.inverse.method.begin(), p.inverse.method.end(), [](const inverse_method& m) { return m.block > 0; });
}
bool has_blocks(const plan& p) {
  const auto blocks = [](gate_form f) { return f != gate_form::difference && f != gate_form::factored; };
  return std::any_of(p.gate.form.begin(), p.gate.form.end(), blocks) ||
         std::any_of(p.backward.blocks.begin(), p.backward.blocks.end(), blocks);
}

class sense {
 public:
  explicit sense(const read_plan& read)
      : p_{read.p},
        root_{read.root},
        where_{read.where},
        when_lines_{read.when_lines},
        on_chunks_{std::find(p_.path.begin(), p_.path.end(), path_kind::chunk) != p_.path.end()},
        by_tokens_{std::find(p_.path.begin(), p_.path.end(), path_kind::recurrent) != p_.path.end()},
        gated_{std::any_of(p_.ops.begin(), p_.ops.end(), [](op_kind op) { return gates_of(op) != gate_axes::none; })},
        uses_tf32_{any_list_holds(p_, format_choice{format_choice::kind::fixed, tf32, {}})} {}

  void require() const {
    require_stated("chunk", on_chunks_, "the chunk path needs it", "path is recurrent");
    for_each_key(p_, [&](const key& k, const auto& list) {
      const bool stated = is_stated(p_, k, list);
      if (has_effect(p_, k.where) && !stated && !k.has_default) fail(k.text() + " is not stated; " + need(k.where));
      if (!anywhere(k.where) && stated) fail(k.text() + " has no effect, so remove it: " + reason(k.where));
    });
    for (std::size_t i = 0; i < p_.when.size(); ++i) require_sense_of(p_.when[i].change, when_lines_[i] + "[[when]] ");
    if (const std::string why = contradiction(p_); !why.empty()) fail(why);
    require_single_keys();
    if (any_list_holds(p_, sum_order::tensor_core)) require_tensor_core();
  }

 private:
  [[noreturn]] void fail(const std::string& what) const { throw format_error(where_ + ": " + what); }

  static bool is_stated(const plan& p, const key& k, const auto& list) {
    return !list.empty() || (k.name == update_operand && !p.v_new.update.empty());
  }

  /// Whether a key can matter where `stated`, the plan or one of its exceptions, says how the inverse is computed.
  bool has_effect(const plan& stated, needed where) const {
    switch (where) {
      case needed::always:
        return true;
      case needed::chunk_only:
        return on_chunks_;
      case needed::gate:
        return gated_;
      case needed::gate_chunk:
        return gated_ && on_chunks_;
      case needed::merges:
        return on_chunks_ && merges_blocks(stated);
      case needed::tf32:
        return uses_tf32_;
      case needed::backward:
        return p_.backward.stated;
      case needed::backward_chunk:
        return p_.backward.stated && on_chunks_;
      case needed::backward_tokens:
        return p_.backward.stated && by_tokens_;
      case needed::backward_gate:
        return p_.backward.stated && gated_;
      case needed::backward_gate_chunk:
        return p_.backward.stated && gated_ && on_chunks_;
    }
    return true;
  }
  /// In the plan or in one of its exceptions. Directions of tf32 may stand in a plan that does without.
  bool anywhere(needed where) const {
    return where == needed::tf32 || has_effect(p_, where) ||
           std::any_of(p_.when.begin(), p_.when.end(), [&](const plan_exception& e) { return has_effect(e.change, where); });
  }

  static std::string need(needed where) {
    switch (where) {
      case needed::always:
        return "a plan must state it";
      case needed::chunk_only:
        return "the chunk path needs it";
      case needed::gate:
        return "an op of the plan has a gate and needs it";
      case needed::gate_chunk:
        return "an op of the plan has a gate and needs it on the chunk path";
      case needed::merges:
        return "a method of [inverse] merges blocks and needs it";
      case needed::tf32:
        return "an operand is tf32, so state how it is rounded: \"rz\" or \"rna\"";
      case needed::backward:
        return "a section [backward] needs it";
      case needed::backward_chunk:
        return "a section [backward] of the chunk path needs it";
      case needed::backward_tokens:
        return "a section [backward] of the recurrent path needs it";
      case needed::backward_gate:
        return "a section [backward] of an op with a gate needs it";
      case needed::backward_gate_chunk:
        return "a section [backward] of an op with a gate needs it on the chunk path";
    }
    return "";
  }
  std::string reason(needed where) const {
    if (where == needed::backward_tokens) return "path is chunk";
    if (where == needed::backward_gate) return "no op of the plan has a gate";
    if (!on_chunks_ && where != needed::gate) return "path is recurrent";
    if (where == needed::merges) return "a diagonal block is the whole chunk and nothing is merged";
    return "no op of the plan has a gate";
  }

  void require_sense_of(const plan& change, const std::string& at) const {
    if (change.backward.stated && !p_.backward.stated)
      fail(at + "replaces keys of [backward], and the plan has no such section; add it, or remove the keys");
    std::vector<bool> stated;
    for_each_key(p_, [&](const key& k, const auto& list) { stated.push_back(is_stated(p_, k, list)); });
    std::size_t i = 0;
    for_each_key(change, [&](const key& k, const auto& list) {
      const bool here = is_stated(change, k, list), above = stated[i++];
      if (here && !anywhere(k.where)) fail(at + k.text() + " has no effect, so remove it: " + reason(k.where));
      if (here && k.section == split_section && p_.split.chunks.empty())
        fail(at + k.text() + " has no effect without a section [split] of the plan; add it, or remove the key");
      if (k.where == needed::merges && has_effect(change, k.where) && !here && !above)
        fail(at + k.text() +
             " is not stated; its method of [inverse] merges blocks and needs it, here or in the plan's own [inverse]");
    });
  }

  /// The keys that hold one value, and those of a section that is stated at all.
  void require_single_keys() const {
    const bool split = root_.get(split_section) != nullptr;
    if (split && root_.at_path("split.truncation").node() == nullptr)
      fail("[split] truncation is not stated; a section [split] needs it");
    if (split && p_.split.chunks.empty()) fail("[split] chunks is not stated; a section [split] needs it");
    const bool blocks =
        has_blocks(p_) || std::any_of(p_.when.begin(), p_.when.end(), [](const auto& e) { return has_blocks(e.change); });
    require_stated("gate.block", blocks, "a value of [gate] form or of [backward] blocks ends in -block and needs it",
                   "no value of [gate] form or of [backward] blocks ends in -block");
    for (const std::string key : {"contract", "clip"}) {
      if (root_.at_path("gate." + key) && !gated_)
        fail("[gate] " + key + " has no effect, so remove the section [gate]: no op of the plan has a gate");
    }
    if (root_.at_path("inverse.association") && !anywhere(needed::merges))
      fail("[inverse] association has no effect, so remove it: " + reason(needed::merges));
  }
  void require_stated(const std::string& path, bool wanted, const std::string& need, const std::string& reason) const {
    const bool stated = static_cast<bool>(root_.at_path(path));
    const std::size_t dot = path.find('.');
    const std::string name =
        dot == std::string::npos ? "\"" + path + "\"" : "[" + path.substr(0, dot) + "] " + path.substr(dot + 1);
    if (wanted && !stated) fail(name + " is not stated; " + need);
    if (!wanted && stated) fail(name + " has no effect, so remove it: " + reason);
  }

  void require_tensor_core() const {
    if (p_.hardware.accumulator_bits == 0)
      fail("[hardware] accumulator_bits is not stated; [A] order = \"tensor-core\" needs it");
    if (!p_.hardware.truncation)
      fail("[A] order = \"tensor-core\" truncates, but [hardware] truncation = false; set it to true, or choose another order");
    const auto holds = [](const plan& stated) {
      return std::find(stated.A.order.begin(), stated.A.order.end(), sum_order::tensor_core) != stated.A.order.end();
    };
    if (holds(p_)) require_narrow_sums(p_, p_.dtypes);
    for (const plan_exception& e : p_.when) {
      if (holds(e.change.A.order.empty() ? p_ : e.change)) require_narrow_sums(e.change, e.dtypes.empty() ? p_.dtypes : e.dtypes);
    }
  }
  /// A run with sums in fp64 is emulated in fp64 throughout, and tensor cores add in fp32. What an exception does not state is
  /// the plan's own.
  void require_narrow_sums(const plan& stated, const choices<format>& dtypes) const {
    const bool wide_inputs = std::find(dtypes.begin(), dtypes.end(), fp64) != dtypes.end();
    const auto require = [&](const char* key, const choices<format_choice>& own, const choices<format_choice>& above) {
      for (const format_choice& one : own.empty() ? above : own) {
        const bool of_inputs = one.which == format_choice::kind::x || one.which == format_choice::kind::given;
        if (!(of_inputs ? wide_inputs : one.which == format_choice::kind::fixed && one.value == fp64)) continue;
        fail("[A] order = \"tensor-core\" needs sums in fp32, and " + std::string(key) + " is fp64" +
             (of_inputs ? " where the inputs are" : "") + "; set it to fp32, or choose another order");
      }
    };
    require("[A] accumulate", stated.A.accumulate, p_.A.accumulate);
    require("[u] accumulate", stated.u.accumulate, p_.u.accumulate);
    require("[w] accumulate", stated.w.accumulate, p_.w.accumulate);
    require("[state] accumulate", stated.state.accumulate, p_.state.accumulate);
    require("[o] accumulate", stated.o.accumulate, p_.o.accumulate);
    require("[backward] accumulate", stated.backward.accumulate, p_.backward.accumulate);
    require("[backward] dg", stated.backward.dg, p_.backward.dg);
    require("[backward] group_sum", stated.backward.group_sum, p_.backward.group_sum);
  }

  const plan& p_;
  const toml::table& root_;
  const std::string& where_;
  const std::vector<std::string>& when_lines_;
  bool on_chunks_, by_tokens_, gated_, uses_tf32_;
};

}  // namespace

void require_sense(const read_plan& read) { sense(read).require(); }

}  // namespace deltaproof::plan_detail
