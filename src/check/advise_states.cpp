// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// State caches: which formats, scales, roundings and periods there are, what each moves, and what the exact state says of its
// error.
#include <algorithm>
#include <cmath>

#include "check/advise_parts.hpp"
#include "deltaproof/number/block_format.hpp"
#include "emulate/products.hpp"

namespace deltaproof::advise_detail {

namespace {

constexpr std::size_t periods[] = {1, 4, 16, 64};
constexpr std::uint64_t stochastic_seed = 1;
constexpr double stochastic_times = 1.4;

struct stored_in {
  block_format format;
  std::string toml;  ///< of format and scale
  std::string name;
};

std::vector<stored_in> formats_of_caches() {
  std::vector<stored_in> all;
  for (const char* plain : {"bf16", "fp16", "e4m3", "e5m2"})
    all.push_back({unscaled(plain), "format = \"" + std::string(plain) + "\", scale = \"none\"", plain});
  for (const char* fixed : {"mxfp8", "nvfp4"})
    all.push_back({block_format_named(fixed), "format = \"" + std::string(fixed) + "\"", fixed});
  for (const std::string element : {"int8", "int4", "e4m3"}) {
    for (const std::string layout : {"tensor", "row", "column", "block:32", "tile:16x16"}) {
      const bool small = layout.find(':') != std::string::npos;
      const scale_format in = small ? scale_format::fp16 : scale_format::fp32;
      std::string name = element + "-" + layout;
      std::replace(name.begin(), name.end(), ':', '-');
      all.push_back(
          {scaled(element, layout, in),
           "format = \"" + element + "\", scale = \"" + layout + "\", scale_format = \"" + std::string(name_of(in)) + "\"",
           name});
    }
  }
  return all;
}

std::string toml_of(const stored_in& f, block_rounding how, std::size_t every) {
  return "{" + f.toml + ", rounding = \"" + std::string(name_of(how)) + "\"" +
         (how == block_rounding::error_feedback ? ", residual = \"bf16\"" : "") +
         (how == block_rounding::stochastic ? ", seed = " + std::to_string(stochastic_seed) : "") +
         ", every = " + std::to_string(every) + "}";
}

/// |stored - state| / |state|: what one store to nearest loses.
double lost_by_one_store(const block_format& f, const matrix<double>& state) {
  std::vector<double> kept(state.data(), state.data() + state.size());
  block_store<double>(f, block_rounding::nearest, element_formats[0], 0, 0)(kept, state.rows(), state.cols(), 0);
  double lost = 0, size = 0;
  for (std::size_t i = 0; i < kept.size(); ++i) {
    lost += (kept[i] - state.data()[i]) * (kept[i] - state.data()[i]);
    size += state.data()[i] * state.data()[i];
  }
  return size > 0 ? std::sqrt(lost / size) : 0;
}

/// What is moved and multiplied: the state is read each token and written each store, with its residual; between stores the last
/// tokens' k, u and g lie beside it and are read with it.
void set_costs(advised_choice& c, const stored_in& f, block_rounding how, std::size_t every, const head_input& in) {
  const auto K = static_cast<double>(in.key_dim()), V = static_cast<double>(in.value_dim()), L = static_cast<double>(every);
  const double state = static_cast<double>(stored_bits(f.format, in.key_dim(), in.value_dim())) / 8;
  const double residual = how == block_rounding::error_feedback ? 2 * K * V : 0;
  const double row = (K + V) * in.x.storage_bits / 8 + 4, waiting = (L - 1) / 2;
  c.bytes = state * (1 + 1 / L) + 2 * residual / L + (every > 1 ? row * (1 + waiting) : 0);
  const double rounds = how == block_rounding::nearest ? 1 : 2;
  c.operations = 3 * K * V + K * V * rounds / L + 2 * waiting * (K + V);
}

}  // namespace

advised_kind advise_states(const problem& p, const looked_at& head, const advise_options& options) {
  advised_kind out;
  out.kind = "state cache";
  out.base = options.recurrent_plan;
  const std::string base = text_of_plan(options.recurrent_plan);
  set_limit(head, variant_of(base, p, path_kind::recurrent, 0), options, out);
  const auto state_bytes = 4.0 * static_cast<double>(head.all().key_dim() * head.all().value_dim());
  out.unchanged.bytes = 2 * state_bytes;
  out.unchanged.operations = 3 * state_bytes / 4;
  std::vector<candidate> all;
  for (const stored_in& f : formats_of_caches()) {
    // No store is nearer to the exact state than its nearest values; rounded stochastically it is sqrt 2 as far.
    const double early = lost_by_one_store(f.format, head.early_state()), late = lost_by_one_store(f.format, head.final_state());
    for (const block_rounding how : {block_rounding::nearest, block_rounding::error_feedback, block_rounding::stochastic}) {
      for (const std::size_t every : periods) {
        if (every > head.all().tokens()) continue;
        candidate c;
        const std::string name = "state-" + f.name + "-" + std::string(name_of(how)) + "-" + std::to_string(every);
        const std::string table = toml_of(f, how, every);
        c.choice.name = name;
        c.choice.plan = with_key(with_key(base, "", "name", "\"" + name + "\""), "state", "between_tokens", table);
        const plan_variant v = variant_of(c.choice.plan, p, path_kind::recurrent, 0);
        c.choice.says = text_of(*v.state.cache);
        set_costs(c.choice, f, how, every, head.all());
        const double times = how == block_rounding::stochastic ? stochastic_times : 1;
        c.bound = times * std::max(early, late);
        if (times * early > out.limit) c.choice.until_token = head.beginning().tokens();
        c.run = [v](const head_input& in) { return emulate_head(in, v); };
        all.push_back(std::move(c));
      }
    }
  }
  search(head, std::move(all), options, out);
  return out;
}

advised_kind advise_decays(const problem& p, const looked_at& head, const advise_options& options) {
  advised_kind out;
  out.kind = "decay";
  out.base = options.recurrent_plan;
  const std::string base = text_of_plan(options.recurrent_plan);
  set_limit(head, variant_of(base, p, path_kind::recurrent, 0), options, out);
  const auto gates = static_cast<double>(std::max<std::size_t>(1, head.all().g.cols()));
  out.unchanged.bytes = gates * head.all().g_format.storage_bits / 8;
  std::vector<candidate> all;
  for (const char* name : {"fp32", "bf16", "fp16"}) {
    const format f = format_named(name);
    for (const bool logarithm : {true, false}) {
      candidate c;
      c.choice.name = std::string(logarithm ? "decay-g-" : "decay-exp-g-") + name;
      c.choice.says =
          std::string(logarithm ? "g stored in " : "e^g stored in ") + name + (logarithm ? ", exponentiated in fp32" : "");
      c.choice.bytes = gates * f.storage_bits / 8;
      c.choice.operations = logarithm ? gates : 0;  // an exponential each
      if (logarithm) {
        if (is_lossless(head.all().g_format, f)) continue;  // the plan as it is
        const plan_variant v = variant_of(base, p, path_kind::recurrent, 0);
        c.run = [v, f](const head_input& in) {
          head_input stored = in;
          for (std::size_t i = 0; i < stored.g.size(); ++i)
            stored.g.data()[i] = emulation::narrowed(stored.g.data()[i], {f, false});
          return emulate_head(stored, v);
        };
      } else {
        c.choice.plan =
            with_key(with_key(base, "", "name", "\"" + c.choice.name + "\""), "gate", "cumsum", "\"" + std::string(name) + "\"");
        const plan_variant v = variant_of(c.choice.plan, p, path_kind::recurrent, 0);
        c.run = [v](const head_input& in) { return emulate_head(in, v); };
      }
      all.push_back(std::move(c));
    }
  }
  search(head, std::move(all), options, out);
  return out;
}

}  // namespace deltaproof::advise_detail
