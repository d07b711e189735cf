// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
#include <algorithm>

#include "deltaproof/kernel/stages.hpp"

namespace deltaproof {

// X is the problem's format. Where X is fp32, a product without a stated precision is tf32 on a card that has it; outside
// KDA u alone is fp32. The merges of the inverse are ieee for the delta rule, the delta product and short chunks.
stage_roundings public_chunk_roundings(const problem& p, std::size_t chunk_size, bool safe_gate) {
  const format x = p.q.element_format();
  const bool wide = x.precision >= fp32.precision;
  struct variant {
    std::string name;
    narrowing to;
  };
  const std::vector<variant> tensor_cores{{"fp32", {fp32, false}}, {"tf32 rna", {tf32, false}}, {"tf32 rz", {tf32, true}}};
  const std::vector<variant> plain{{"", {x, false}}};
  const std::vector<variant>& products = wide && x != fp64 ? tensor_cores : plain;
  const bool channels = p.gate_per_channel();
  const format beta = p.beta.element_format();

  stage_roundings r;
  if (x == fp64) r.elementwise = unit_roundoff(fp64);
  const double u = r.elementwise;
  if (p.qk_l2norm) r.l2norm_store = x;
  r.output_span = p.num_householder;
  const gram_form form = !channels ? gram_form::difference : safe_gate ? gram_form::middle_blocks : gram_form::reference_blocks;
  for (const variant& v : channels ? tensor_cores : products) {
    r.gram.push_back({v.name, form, v.to, 16, u});
  }
  const bool tf32_merges = channels || (p.op == op_kind::gated_delta_rule && chunk_size == 64);
  for (const variant& v : tensor_cores) {
    if (v.to.to == fp32 || tf32_merges) r.inverse.push_back({v.name + " merges", 16, u, v.to, u, merge_order::neighbours_left});
  }
  const format wide_product = x == fp64 ? fp64 : fp32;
  for (const variant& v : channels ? products : std::vector<variant>{{"", {x, false}}})
    r.u.push_back({v.name, wide_product, v.to, u});
  for (const variant& v : products) {
    r.w.push_back({v.name, beta == x ? x : wide_product, v.to, u});
    r.state.push_back({v.name, channels ? update_kind::key : update_kind::value, v.to, std::nullopt, u});
    r.output.push_back({v.name, channels, v.to, u});
  }
  return r;
}

}  // namespace deltaproof
