// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// Gradients of gates that are differences of equal sums. A correct kernel adds the same products in two orders, or fuses some of
// them with their additions: in place of the exact 0 it leaves what the terms are rounded by.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <string>
#include <vector>

#include "deltaproof/check/check.hpp"
#include "deltaproof/emulate/emulate_gradients.hpp"
#include "deltaproof/inputs/regimes.hpp"
#include "deltaproof/number/random.hpp"
#include "emulate/products.hpp"

namespace deltaproof {
namespace {

constexpr std::size_t width = 32, heads = 2;

/// The terms in turn, backwards, in any order, or dealt to 32 lanes that are halved.
float summed(std::vector<float> terms, philox& draw) {
  const std::uint64_t how = draw.below(4);
  if (how == 1) std::reverse(terms.begin(), terms.end());
  for (std::size_t i = terms.size(); how == 2 && i > 1; --i)
    std::swap(terms[i - 1], terms[static_cast<std::size_t>(draw.below(i))]);
  if (how < 3) return std::accumulate(terms.begin(), terms.end(), 0.0F);
  for (std::size_t half = terms.size() / 2; half > 0; half /= 2) {
    for (std::size_t i = 0; i < half; ++i) terms[i] += terms[i + half];
  }
  return terms.front();
}

/// Each token by itself: there is no state before the first, and the gates leave nothing of it to the others.
problem forgetting(op_kind op, const format& x, std::size_t tokens, bool outputs) {
  generation g;
  g.op = op;
  g.tokens = tokens;
  g.key_dim = g.value_dim = width;
  g.key_heads = 1;
  g.value_heads = heads;
  g.dtype = x;
  g.gate = "-200";
  g.initial_state = "none";
  g.cotangents = true;
  problem p = generate(g);
  if (outputs) {
    p.d_final_state.reset();
  } else {
    p.d_o.reset();
  }
  return p;
}

/// dg of one chunk as a kernel leaves it that keeps the plan and adds in its own orders. `whole`: less what is to be subtracted.
std::vector<double> dg_of_kernel(const problem& p, const plan_variant& plan, const result& r, philox& draw, bool whole) {
  const auto q = p.q.to_doubles(), k = p.k.to_doubles(), v_new = r.stages.at("v_new").to_doubles();
  const std::vector<double> d_o = p.d_o ? p.d_o->to_doubles() : std::vector<double>(v_new.size()),
                            d_s = p.d_final_state ? p.d_final_state->to_doubles() : std::vector<double>(heads * width * width);
  const std::size_t channels = p.gate_per_channel() ? width : 1;
  std::vector<double> dg(p.tokens() * heads * channels);
  std::vector<float> later(heads * channels, 0.0F);
  for (std::size_t t = p.tokens(); t-- > 0;) {
    for (std::size_t h = 0; h < heads; ++h) {
      const double* const v = v_new.data() + (t * heads + h) * width;
      double ds = 0;
      for (std::size_t j = 0; j < width; ++j) ds += d_o[(t * heads + h) * width + j] * v[j];
      const auto weight = emulation::narrowed(static_cast<float>(ds * p.scale), {plan.backward->ds, false});
      std::vector<float> read(width), written(width), kept(width);
      for (std::size_t m = 0; m < width; ++m) {
        double dk = 0;
        for (std::size_t j = 0; j < width && t + 1 == p.tokens(); ++j)
          dk += emulation::narrowed(d_s[(h * width + m) * width + j], {plan.backward->dh, false}) * v[j];
        const auto key = static_cast<float>(k[t * width + m]), query = static_cast<float>(q[t * width + m]);
        kept[m] = static_cast<float>(dk) * key;
        read[m] = query * (weight * key);
        written[m] = channels > 1 ? std::fma(-key, static_cast<float>(dk), kept[m]) - key * (weight * query)
                                  : key * (static_cast<float>(dk) + weight * query);
        if (channels > 1 && p.d_o) written[m] = std::fma(query, weight * key, -(weight * query) * key) - read[m];
      }
      if (channels > 1) {
        for (std::size_t m = 0; m < width; ++m)
          dg[(t * heads + h) * width + m] = later[h * width + m] += whole ? read[m] + written[m] : read[m] + kept[m];
        continue;
      }
      const float gained = summed(read, draw) + summed(kept, draw);
      dg[t * heads + h] = later[h] += whole ? gained - summed(written, draw) : gained;
    }
  }
  return dg;
}

TEST(cancelling_gradients, may_be_off_by_what_two_orders_of_their_sums_leave) {
  for (const char* name : {"fla-chunk-gdn", "flashqla", "attention-gym-gdn", "fla-chunk-kda"}) {
    const plan declared = plan_named(name);
    for (const auto& [x, tokens] : {std::pair(fp16, 1), std::pair(bf16, 1), std::pair(fp16, 3)}) {
      for (const bool outputs : {true, false}) {
        const problem p = forgetting(declared.ops.front(), x, static_cast<std::size_t>(tokens), outputs);
        const plan_variant plan = gradient_variants(declared, p, path_kind::chunk, 64).front();
        // Products that are kept in a matrix are added to rows and columns of it: no sum of them is made twice.
        if (outputs && plan.backward->dg_form == gate_gradient::products) continue;
        emulation_options options;
        options.stages = true;
        const result r = emulate_gradients(p, plan, options, 1);
        check_options how;
        how.plans = {declared};
        how.judge.power = false;
        how.memory = make_referee_memory();
        const std::string what = std::string(name) + " " + std::string(name_of(x)) + " T " + std::to_string(tokens) + " " +
                                 (outputs ? "do" : "dfinal_state") + ": ";
        const auto judged = [&](std::uint64_t kernel, bool whole) {
          philox draw(kernel, 0xd6);
          result other = r;
          other.stages.clear();
          other.backward_stages.clear();
          tensor& dg = other.gradients.at("dg");
          dg = tensor::from_doubles(dg.element_format(), dg.shape(), dg_of_kernel(p, plan, r, draw, whole), "dg");
          return check(p, other, how);
        };
        for (std::uint64_t kernel = 0; kernel < 12; ++kernel) {
          const check_report report = judged(kernel, true);
          EXPECT_NE(report.judged, verdict::refuted) << what << report.reason;
        }
        const check_report half = judged(0, false);
        EXPECT_EQ(half.judged, verdict::refuted) << what;
        EXPECT_THAT(half.reason, ::testing::HasSubstr(" of dg at ")) << what;
      }
    }
  }
}

}  // namespace
}  // namespace deltaproof
