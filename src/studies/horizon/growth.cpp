// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT

#include "studies/horizon/growth.hpp"

#include "deltaproof/algebra/multiply.hpp"
#include "deltaproof/number/elementary.hpp"
#include "deltaproof/number/real.hpp"

namespace deltaproof::detail::horizon {
namespace {

constexpr double log10_2 = 0.30102999566398119521;

/// a^T a, which for a symmetric a is its square.
matrix<double> gram(const matrix<double>& a) { return matmul<plain<double>>(transpose(a), a); }

// One Philox stream for each kind, so that kinds do not share keys.
enum key_stream : std::uint64_t { of_directions = 1, of_words = 2, of_picks = 3, of_centres = 4 };

using wide = real<exponent_bits>;

/// ln((1 + r)/2) - sum (rho^m / m) C_m for r = |R| >= 0.
wide fresh_exponent_wide(const wide& r, std::size_t key_dim) {
  const int n = static_cast<int>(key_dim / 2) - 1;
  const wide rho = (r - 1) / (r + 1);
  wide coefficient = 1, power = 1, sum = 0;
  for (int m = 1; m <= n; ++m) {
    coefficient = coefficient * (n + 1 - m) / (n + m);
    power = power * rho;
    sum = sum + power * coefficient / m;
  }
  const wide half = (r + 1) / 2;
  return log(half) - sum;
}

void require_even(std::size_t key_dim) {
  if (key_dim == 0 || key_dim % 2 != 0) {
    throw domain_error("the closed form of the exponent needs an even dimension of at least 2, got " + std::to_string(key_dim));
  }
}

}  // namespace

std::string_view name_of(key_kind kind) {
  constexpr std::array<std::string_view, key_kinds.size()> names{"fresh", "repeated", "vocabulary", "clusters"};
  return names[static_cast<std::size_t>(kind)];
}

key_set make_keys(key_kind kind, std::size_t tokens, std::size_t key_dim, std::uint64_t seed) {
  const bool every_token = kind == key_kind::fresh || kind == key_kind::clustered;
  const std::size_t distinct = every_token ? tokens : kind == key_kind::repeated ? 1 : vocabulary_size;
  key_set keys;
  keys.key_dim = key_dim;
  keys.directions.resize(distinct * key_dim);
  keys.relative_square.resize(distinct);
  keys.index.resize(tokens);
  philox random(seed, every_token ? of_directions : of_words);
  philox choices(seed, of_picks);
  const auto row = [&](std::vector<double>& of, std::size_t i) { return std::span<double>(of).subspan(i * key_dim, key_dim); };
  for (std::size_t i = 0; i < distinct; ++i) {
    shared::draw(random, row(keys.directions, i));
    keys.relative_square[i] = shared::normalise(row(keys.directions, i)) / static_cast<double>(key_dim);
  }
  for (std::size_t t = 0; t < tokens; ++t) {
    keys.index[t] = static_cast<std::uint32_t>(every_token ? t : choices.below(distinct));
  }
  if (kind != key_kind::clustered) return keys;
  std::vector<double> centres(vocabulary_size * key_dim);
  philox of_centre(seed, of_centres);
  for (std::size_t i = 0; i < vocabulary_size; ++i) {
    shared::draw(of_centre, row(centres, i));
    shared::normalise(row(centres, i));
  }
  const double share = std::sqrt(1 - cluster_spread * cluster_spread);
  for (std::size_t t = 0; t < tokens; ++t) {
    const auto centre = row(centres, choices.below(vocabulary_size));
    const auto key = row(keys.directions, t);
    for (std::size_t i = 0; i < key_dim; ++i) key[i] = share * centre[i] + cluster_spread * key[i];
    shared::normalise(key);
  }
  return keys;
}

log_bracket log10_spectral_norm(const matrix<double>& block, long long exponent) {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  matrix<double> scaled = block;
  double shift =
      static_cast<double>(exponent + shared::take_out_power(scaled.entries()));  // log2 of what was taken out, for |block|
  matrix<double> g = gram(scaled);
  log_bracket best{-infinity, infinity};
  double root = 0.5;  // |block|^(1/root) is the norm of G
  for (int level = 0;; ++level) {
    shift += root * shared::take_out_power(g.entries());
    double trace = 0;
    for (std::size_t i = 0; i < g.rows(); ++i) trace += g(i, i);
    const double square = shared::squared_norm(g.entries());
    if (!(trace > 0)) return {trace == 0 ? -infinity : trace, trace == 0 ? -infinity : trace};
    best.lower = std::max(best.lower, shift * log10_2 + root * log10_of(square / trace));
    best.upper = std::min(best.upper, shift * log10_2 + 0.5 * root * log10_of(square));
    if (level == 20 || best.upper - best.lower < 1e-6) break;
    g = gram(g);
    root /= 2;
  }
  // Two roundings of nearly equal bounds may cross them.
  if (best.upper < best.lower) std::swap(best.upper, best.lower);
  return best;
}

std::vector<log_bracket> product_growth(const key_set& keys, std::span<const double> strength, std::span<const std::size_t> at) {
  std::vector<log_bracket> result;
  transition_product<double> product(keys.key_dim);
  // No factor's norm exceeds 2^25 or 2^200 then, so nothing overflows in between; powers of two change no bit.
  const double largest = *std::max_element(strength.begin(), strength.end());
  const std::size_t interval = largest < 0x1p25 ? 32 : 4;
  std::size_t done = 0;
  for (const std::size_t target : at) {
    for (; done < target; ++done) {
      product.step(keys.direction(done), strength[strength.size() == 1 ? 0 : done]);
      if (done % interval == interval - 1) product.rescale();
    }
    result.push_back(log10_spectral_norm(product.block(), product.exponent()));
  }
  return result;
}

double fresh_exponent(double stability, std::size_t key_dim) {
  require_even(key_dim);
  return round_to<fp64>(fresh_exponent_wide(wide(std::fabs(stability)), key_dim)).value();
}

double gaussian_exponent(double mean, std::size_t key_dim) {
  require_even(key_dim);
  // x = (2 mean / d) e^z, and e^z has the density of Gamma(d/2): e^(d z / 2 - e^z) dz up to a constant.
  const wide half_dim = wide(static_cast<double>(key_dim)) / 2;
  const wide centre = log(half_dim);
  const wide width = 12 / sqrt(half_dim);
  constexpr int intervals = 240;
  wide weights = 0, sum = 0;
  for (int i = 0; i <= intervals; ++i) {
    const wide z = width * (2 * i - intervals) / intervals;  // offset from the centre
    const wide y = exp(wide(centre + z));
    const wide weight = exp(wide(half_dim * z - (y - half_dim)));
    const wide x = y * mean / half_dim;
    weights = weights + weight;
    sum = sum + weight * fresh_exponent_wide(abs(wide(1 - x)), key_dim);
  }
  return round_to<fp64>(wide(sum / weights)).value();
}

estimated_exponent estimate_exponent(const key_set& keys, std::span<const double> strength) {
  if (keys.tokens() < 2 * exponent_block)
    throw domain_error("an exponent is estimated from at least " + std::to_string(2 * exponent_block) + " tokens");
  matrix<double> start(keys.key_dim, 1);
  start(0, 0) = 1;
  transition_product<double> product(std::move(start));
  std::vector<double> increments;
  double before = 0;
  for (std::size_t t = 0; t < keys.tokens() / exponent_block * exponent_block; ++t) {
    product.step(keys.direction(t), strength[strength.size() == 1 ? 0 : t]);
    if (t % 8 == 7) product.rescale();
    if (t % exponent_block != exponent_block - 1) continue;
    product.rescale();
    const double now = 0.5 * ln(shared::squared_norm(product.block().entries())) +
                       static_cast<double>(product.exponent()) * 0.69314718055994530942;
    increments.push_back((now - before) / static_cast<double>(exponent_block));
    before = now;
  }
  estimated_exponent result;
  const double n = static_cast<double>(increments.size());
  for (const double x : increments) result.mean += x / n;
  double square = 0;
  for (const double x : increments) square += (x - result.mean) * (x - result.mean);
  result.standard_error = std::sqrt(square / (n - 1) / n);
  return result;
}

}  // namespace deltaproof::detail::horizon
