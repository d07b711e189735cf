// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
#include "deltaproof/emulate/emulate_gradients.hpp"

#include <algorithm>
#include <mutex>
#include <utility>

#include "deltaproof/emulate/faults.hpp"
#include "deltaproof/oracle/gradients.hpp"
#include "deltaproof/oracle/lower.hpp"
#include "deltaproof/support/errors.hpp"
#include "emulate/backward.hpp"
#include "emulate/filling.hpp"
#include "support/parallel.hpp"
#include "support/text.hpp"

namespace deltaproof {

namespace {

using emulation_detail::adjoint;
using emulation_detail::backward_fault_code;
using emulation_detail::backward_group;
using emulation_detail::backward_site;
using emulation_detail::filling;
using emulation_detail::machine;
using emulation_detail::saved_chunk;
using emulation_detail::widened;

void require_backward(const plan_variant& variant) {
  if (variant.backward) return;
  throw format_error("plan " + variant.name +
                     " has no [backward] section, so it does not say how gradients are computed; add one, or take another plan");
}

/// Whether every sum of both passes is in fp32 or narrower.
bool runs_in_floats(const plan_variant& v) {
  const auto fits = [](const format& f) { return f.precision <= fp32.precision; };
  return measured_by_fp64(v) && fits(v.backward->accumulate) && fits(v.backward->dg) && fits(v.backward->group_sum);
}

const backward_fault_code* code_of(const fault* f) { return f == nullptr ? nullptr : f->code->backward.get(); }

template <class Real>
group_gradients run_group(std::span<const gradient_head> group, const plan_variant& variant, const emulation_options& options,
                          std::span<const tile_order> other_orders) {
  plan_variant plan = variant;
  const fault* const planted = options.planted;
  const backward_fault_code* const code = code_of(planted);
  if (planted != nullptr && planted->code->arithmetic != nullptr) planted->code->arithmetic(plan, group.front().in);
  if (code != nullptr && code->arithmetic != nullptr) code->arithmetic(*plan.backward, group.front().in);
  backward_group<Real> all{group.front().in, plan, *plan.backward, {}, {}, {}, {}, {}, {}, {}, {}};
  group_gradients out;
  for (std::size_t head = 0; head < group.size(); ++head) {
    emulation_options run = options;
    run.seed = options.seed + head * 0x9e3779b97f4a7c15U;
    std::vector<saved_chunk<Real>> saved;
    machine<Real> forward(group[head].in, plan, variant, run);
    if (plan.path == path_kind::chunk) forward.keep_chunks(saved);
    head_gradients one;
    one.forward = forward.run();
    adjoint<Real> backward(forward, std::move(saved), group[head].d, run, other_orders);
    backward_site<Real>& site = backward.run();
    one.dv = widened(site.dv);
    one.dbeta.assign(site.d_beta.begin(), site.d_beta.end());
    one.dg = widened(site.dg);
    for (const matrix<Real>& dg : backward.dg_in_other_orders()) one.dg_in_other_orders.push_back(widened(dg));
    one.dinitial_state = widened(site.d_initial_state);
    one.stages = std::move(backward.stages());
    all.dq_heads.push_back(std::move(site.dq));
    all.dk_heads.push_back(std::move(site.dk));
    if (head == 0) {
      all.q = std::move(site.all.q);
      all.k = std::move(site.all.k);
    }
    out.heads.push_back(std::move(one));
  }
  finish_group(all, planted, options.in_any_order);
  out.dq = widened(all.dq);
  out.dk = widened(all.dk);
  if (options.stages && group.front().in.qk_l2norm && plan.path == path_kind::chunk) {
    out.dq_hat = widened(all.dq_hat);
    out.dk_hat = widened(all.dk_hat);
  }
  return out;
}

void require_question(const plan_variant& variant, const emulation_options& options) {
  require_backward(variant);
  if (!(options.noise_ulps >= 0 && options.noise_ulps <= 0x1p20))
    throw format_error("emulate: the noise is " + detail::general(options.noise_ulps, 6) + " ulps; use a number from 0 to 2^20");
  if (variant.path == path_kind::chunk && variant.chunk == 0)
    throw format_error("emulate: the chunk length is 0; use at least 1 row of k");
}

}  // namespace

group_gradients emulate_group_gradients(std::span<const gradient_head> group, const plan_variant& variant,
                                        const emulation_options& options, std::span<const tile_order> other_orders) {
  require_question(variant, options);
  if (group.empty()) throw domain_error("emulate_group_gradients: the group has no heads; give at least one head");
  emulation_options run = options;
  if (run.planted != nullptr && !(variant.path == path_kind::chunk ? run.planted->chunk : run.planted->recurrent))
    run.planted = nullptr;
  return runs_in_floats(variant) ? run_group<float>(group, variant, run, other_orders)
                                 : run_group<double>(group, variant, run, other_orders);
}

group_gradients emulate_group_gradients(const problem& p, std::size_t sequence, std::size_t key_head, const plan_variant& variant,
                                        const emulation_options& options) {
  std::vector<gradient_head> group = take_group(p, sequence, key_head);
  emulation_options run = options;
  if (run.planted != nullptr && !applies(*run.planted, p, variant.path)) run.planted = nullptr;
  const std::size_t heads = group.size();
  for (std::size_t i = 0; i < heads && run.planted != nullptr; ++i) {
    const std::size_t head = key_head * heads + i;
    if (run.planted->code->reads != nullptr) run.planted->code->reads(p, sequence, head, variant, group[i].in);
    const backward_fault_code* const code = code_of(run.planted);
    if (code != nullptr && code->reads != nullptr) code->reads(p, sequence, head, variant, group[i].d);
  }
  return emulate_group_gradients(group, variant, run);
}

namespace {

using gradient_format = format (*)(const backward_variant&, const problem&);
constexpr gradient_format of_rows = [](const backward_variant&, const problem& p) { return p.q.element_format(); };
constexpr gradient_format of_groups = [](const backward_variant& b, const problem&) { return b.group_store; };
constexpr auto formats_of_gradients = std::to_array<std::pair<std::string_view, gradient_format>>({
    {"dq", of_rows},
    {"dk", of_rows},
    {"dv", of_rows},
    {"dbeta", [](const backward_variant&, const problem& p) { return p.beta.element_format(); }},
    {"dg", [](const backward_variant& b, const problem& p) { return p.g ? p.g->element_format() : b.dg; }},
    {"dinitial_state", [](const backward_variant& b, const problem&) { return b.accumulate; }},
    {"dv_local", [](const backward_variant& b, const problem&) { return b.dv_local; }},
    {"dh", [](const backward_variant& b, const problem&) { return b.dh; }},
    {"dv2", [](const backward_variant& b, const problem&) { return b.dv2; }},
    {"dw", [](const backward_variant& b, const problem&) { return b.dw; }},
    {"dAqk", [](const backward_variant& b, const problem&) { return b.ds; }},
    {"dAkk", [](const backward_variant& b, const problem&) { return b.dA; }},
    {"dg_local", [](const backward_variant& b, const problem&) { return b.dg; }},
    {"dq_hat", of_groups},
    {"dk_hat", of_groups},
});
static_assert(has_each(formats_of_gradients, judged_backward_stages));

}  // namespace

format stored_gradient_format(const plan_variant& variant, const problem& p, std::string_view name) {
  require_backward(variant);
  std::string known;
  for (const auto& [gradient, of] : formats_of_gradients) {
    if (gradient == name) return of(*variant.backward, p);
    known += (known.empty() ? "" : ", ") + std::string(gradient);
  }
  throw domain_error("stored_gradient_format: there is no gradient or stage of a backward pass named " + std::string(name) +
                     "; name one of " + known);
}

namespace {

/// The tensors of a backward pass in the making.
class gradient_tensors {
 public:
  gradient_tensors(const problem& p, const plan_variant& v, bool stages) : p_{p} {
    const std::size_t B = p.batch(), T = p.tokens(), R = p.steps(), H = p.key_heads(), HV = p.value_heads(), K = p.key_dim(),
                      V = p.value_dim();
    const auto add = [&](std::string_view name, std::vector<std::size_t> shape) {
      all_.emplace(name, filling(stored_gradient_format(v, p, name), std::move(shape)));
    };
    add("dq", {B, T, H, K});
    add("dk", {B, R, H, K});
    add("dv", {B, R, HV, V});
    add("dbeta", {B, R, HV});
    const bool by_channel = p.gate_per_channel();
    if (p.g) add("dg", by_channel ? std::vector<std::size_t>{B, T, HV, K} : std::vector<std::size_t>{B, T, HV});
    if (p.initial_state) add("dinitial_state", {p.sequence_count(), HV, K, V});
    if (!stages) return;
    chunks_ = chunk_count(p, v.chunk);
    const bool transforms = v.v_new.form == change_form::transforms;
    const auto is_kept = [&](std::string_view name) {
      if (name == "dAqk" || name == "dAkk") return by_channel;
      if (name == "dw") return !by_channel && transforms;
      if (name == "dg_local") return p.g.has_value();
      return p.qk_l2norm || (name != "dq_hat" && name != "dk_hat");
    };
    for (const std::string_view name : backward_stage_names) {
      if (is_kept(name)) add(name, shape_of_stage(name, p, v.chunk).shape);
    }
  }

  void put(const group_gradients& from, std::size_t sequence, const sequence_range& range, std::size_t key_head,
           std::size_t first_chunk) {
    const std::size_t n = p_.num_householder, row = range.first_token * n, group = from.heads.size();
    const auto rows = [&](const std::string& name, const matrix<double>& m, std::size_t first, std::size_t head) {
      if (const auto to = all_.find(name); to != all_.end()) to->second.put(m, range.batch, first, head);
    };
    rows("dq", from.dq, range.first_token, key_head);
    rows("dk", from.dk, row, key_head);
    rows("dq_hat", from.dq_hat, range.first_token, key_head);
    rows("dk_hat", from.dk_hat, row, key_head);
    for (std::size_t i = 0; i < group; ++i) {
      const head_gradients& one = from.heads[i];
      const std::size_t head = key_head * group + i;
      rows("dv", one.dv, row, head);
      rows("dbeta", matrix<double>(one.dbeta.size(), 1, one.dbeta), row, head);
      rows("dg", one.dg, range.first_token, head);
      if (const auto to = all_.find("dinitial_state"); to != all_.end())
        to->second.put_block(one.dinitial_state.entries(), sequence * p_.value_heads() + head);
      for (const auto& [name, m] : one.stages) {
        if (name != "dh") {
          rows(name, m, row, head);
          continue;
        }
        const std::size_t K = p_.key_dim(), size = K * p_.value_dim();
        for (std::size_t c = 0; c * K < m.rows(); ++c) {
          all_.at(name).put_block({m.data() + c * size, size},
                                  (range.batch * chunks_ + first_chunk + c) * p_.value_heads() + head);
        }
      }
    }
  }

  void finish(result& r) const {
    for (const auto& [name, t] : all_) {
      const bool gradient = std::find(gradient_names.begin(), gradient_names.end(), name) != gradient_names.end();
      (gradient ? r.gradients : r.backward_stages).emplace(name, t.finished(name));
    }
  }

 private:
  const problem& p_;
  std::size_t chunks_ = 0;
  std::map<std::string, filling> all_;
};

}  // namespace

result emulate_gradients(const problem& p, const plan_variant& variant, const emulation_options& options, unsigned threads) {
  require_question(variant, options);
  if (!p.has_cotangents())
    throw format_error(
        "emulate: the problem has neither do nor dfinal_state, so there is nothing to differentiate; add one of them to the "
        "problem (deltaproof gen --cotangents draws both)");
  refuse_poles(p);
  const auto sequences = p.sequences();
  const bool stages = variant.path == path_kind::chunk && options.stages;
  gradient_tensors tensors(p, variant, stages);
  emulation_detail::forward_tensors forward(p, variant, stages);
  const std::vector<std::size_t> first_chunk =
      emulation_detail::first_chunks(p, sequences, variant.path == path_kind::chunk ? variant.chunk : 0);
  std::mutex lock;
  std::size_t done = 0;
  const std::size_t jobs = sequences.size() * p.key_heads(), group = p.value_heads() / std::max<std::size_t>(p.key_heads(), 1);
  parallel_for(jobs, threads, [&](std::size_t job) {
    if (options.stop != nullptr && *options.stop) return;
    const std::size_t s = job / p.key_heads(), key_head = job % p.key_heads();
    const group_gradients out = emulate_group_gradients(p, s, key_head, variant, options);
    const std::lock_guard guard(lock);
    for (std::size_t i = 0; i < group; ++i)
      forward.put(out.heads[i].forward, s, sequences[s], key_head * group + i, first_chunk[s]);
    tensors.put(out, s, sequences[s], key_head, first_chunk[s]);
    if (options.progress) options.progress(static_cast<double>(++done) / static_cast<double>(jobs));
  });
  result r = forward.finished(options);
  tensors.finish(r);
  return r;
}

}  // namespace deltaproof
