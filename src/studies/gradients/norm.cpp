// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT

#include "studies/gradients/runs.hpp"

namespace deltaproof::detail::gradients {
namespace {

constexpr double short_length = 0.01;
constexpr double longer = 0.1;
constexpr double mostly = 10;  // how many times more of dy along y than across
constexpr double nearly_all = 100;
constexpr double infinity = std::numeric_limits<double>::infinity();

/// Median errors of the l2norm backward. `radial`: how many times longer the part of dy along y is than the rest, infinite: dy is
/// y, both before they are rounded to bf16.
frame_row norm_errors(const run_options& options, double length, double radial) {
  philox random(options.seed, 31);
  std::vector<double> rounded_y, from_x;
  for (std::size_t i = 0; i < vectors_of(options); ++i) {
    std::vector<double> x(norm_dim), across(norm_dim), dy(norm_dim);
    shared::draw(random, x);
    shared::normalise(x);
    shared::draw(random, across);
    const double along = shared::dot(across, x);
    for (std::size_t c = 0; c < norm_dim; ++c) across[c] -= along * x[c];
    shared::normalise(across);
    for (std::size_t c = 0; c < norm_dim; ++c) {
      dy[c] = chunks::common_value(std::isinf(radial) ? x[c] : radial * x[c] + across[c]);
      x[c] = round_to<bf16>(length * x[c]).value();
    }
    const norm_backward errors = norm_backward_errors(x, dy);
    rounded_y.push_back(errors.from_rounded);
    from_x.push_back(errors.from_x);
  }
  return {median(rounded_y), median(from_x)};
}

/// How long the part of dk along the keys is beside the rest, root mean squares; keys of length 1.
double part_along_keys(const head& in, const std::vector<double>& by_key) {
  double along = 0;
  for (std::size_t t = 0; t < in.tokens.tokens; ++t) {
    const auto k = in.tokens.k_row(t);
    along += squared(shared::dot(k, {by_key.data() + t * k.size(), k.size()}));
  }
  return std::sqrt(along / (shared::squared_norm(by_key) - along));
}

}  // namespace

void add_norm(const run_options& options, results& r) {
  const grid_axis<double> radial{"radial", {0, 0.1, 0.3, 1, 3, mostly, 30, nearly_all, 300, infinity}};
  const grid_axis<double> lengths{"length", {1e-4, 1e-3, 3e-3, short_length, 3e-2, longer, 0.3, 3, usual_length, 30}};
  const auto errors = [&](double length, double share) { return norm_errors(options, length, share); };
  const frame& found = r.table("norm", grid(options, "l2norm", {"rounded", "x"}, errors, lengths, radial));
  const auto at = found.finder({"length", "radial"});
  r.values("l2norm", {{"across", at(usual_length, 0.0, "rounded")},
                      {"equal", at(usual_length, 1.0, "rounded")},
                      {"ten", at(usual_length, mostly, "rounded")},
                      {"hundred", at(usual_length, nearly_all, "rounded")},
                      {"hundredth_long", at(short_length, infinity, "rounded")},
                      {"tenth_long", at(longer, infinity, "rounded")},
                      {"from_x", found.over("x", greatest)}});
  r.values("norms", {{"length", usual_length},
                     {"hundredth", short_length},
                     {"tenth", longer},
                     {"ten", mostly},
                     {"hundred", nearly_all},
                     {"bits", norm_bits}});
  const auto part = [&](const law& which) -> frame_row {
    const head in = make_head(which, tokens_of(options), dim, seed_of(options, 0));
    return {part_along_keys(in, exact_gradients(in).value[dk])};
  };
  const frame& along = r.table("along", grid(options, "along keys", {"dk"}, part, all_laws));
  r.values("along", {{"least", along.over("dk", least)},
                     {"greatest", along.over("dk", greatest)},
                     {"loss", along.over("dk", greatest) * at(usual_length, 1.0, "rounded")}});
}

}  // namespace deltaproof::detail::gradients
