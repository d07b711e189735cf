// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT

#include <cstdlib>

#include "deltaproof/algebra/spectrum.hpp"
#include "deltaproof/number/double_double.hpp"
#include "deltaproof/number/real.hpp"
#include "deltaproof/scan/transition.hpp"
#include "studies/eigenvalues/parts.hpp"

namespace deltaproof::detail::eigenvalues {
namespace {

using integer = boost::multiprecision::number<boost::multiprecision::gmp_int, boost::multiprecision::et_off>;

/// The sum of squares on the grid 2^-120, if every entry is a multiple of 2^-60 and the sum stays below 2^7.
std::optional<uint128> fixed_squared_norm(std::span<const double> k) {
  uint128 sum = 0;
  double rough = 0;
  for (const double x : k) {
    rough += x * x;
    if (!(rough < 127)) return std::nullopt;
    const double scaled = std::fabs(x) * 0x1p60;
    const auto whole = static_cast<std::uint64_t>(scaled);
    if (static_cast<double>(whole) != scaled) return std::nullopt;
    sum += static_cast<uint128>(whole) * whole;
  }
  return sum;
}

rational from_uint128(uint128 x) {
  const integer high(static_cast<std::uint64_t>(x >> 64)), low(static_cast<std::uint64_t>(x));
  return rational(integer((high << 64) + low));
}

/// A Gaussian direction; the same for every format.
std::vector<double> direction(std::uint64_t seed, std::size_t dim, std::uint64_t index) {
  philox random(seed, (std::uint64_t{0x6b657900} + dim) << 32 | index);
  std::vector<double> g(dim);
  shared::draw(random, g);
  return g;
}

/// g / |g| to about 100 bits.
std::vector<double_double> unit_vector(std::span<const double> g) {
  double_double sum;
  for (const double x : g) sum += double_double::two_product(x, x);
  const double_double norm = sqrt(sum);
  std::vector<double_double> result;
  for (const double x : g) result.push_back(double_double(x) / norm);
  return result;
}

template <format F>
void round_once(std::span<const double_double> unit, std::span<double> k) {
  for (std::size_t i = 0; i < k.size(); ++i) k[i] = round_to<F>(unit[i]).value();
}

/// The keys of one format and dimension.
struct tally {
  std::uint64_t keys = 0, above_one = 0, leaves_below_two = 0, leaves_at_safe = 0, subnormal = 0;
  rational smallest = 0, largest = 0;
  double sum = 0, sum_of_squares = 0;
  std::vector<std::uint64_t> histogram = std::vector<std::uint64_t>(bin_count, 0);

  template <format F>
  void count(std::span<const double> k) {
    const rational n = exact_squared_norm(k);
    // lambda = 1 - beta n < -1 where beta n > 2.
    static const rational u = exact(unit_roundoff(F));
    if (keys == 0 || n < smallest) smallest = n;
    if (keys == 0 || n > largest) largest = n;
    ++keys;
    above_one += n > 1 ? 1 : 0;
    leaves_below_two += (1 - u) * n > 1 ? 1 : 0;
    leaves_at_safe += (1 - 2 * u) * n > 1 ? 1 : 0;
    const double excess = to_double(n - 1) / unit_roundoff(F);
    sum += excess;
    sum_of_squares += excess * excess;
    const double bin = (excess + bin_limit) / bin_width;
    if (bin >= 0 && bin < static_cast<double>(bin_count)) ++histogram[static_cast<std::size_t>(bin)];
    for (const double x : k) subnormal += std::fabs(x) < smallest_normal(F) ? 1 : 0;
  }

  template <format F>
  [[nodiscard]] frame_row row(std::size_t dim) const {
    const auto all = static_cast<double>(keys);
    const double mean = sum / all;
    const auto in_units = [](const rational& n) { return to_double(n - 1) / unit_roundoff(F); };
    frame_row row{keys, above_one, static_cast<double>(above_one) / all, mean};
    row.insert(row.end(), {std::sqrt(std::max(0.0, sum_of_squares / all - mean * mean)), in_units(smallest), in_units(largest)});
    row.insert(row.end(), {largest.str(), round_to<F>(rational(2 / largest), toward_zero{}).value(), leaves_below_two});
    row.insert(row.end(), {leaves_at_safe, static_cast<double>(subnormal) / static_cast<double>(keys * dim)});
    return row;
  }
};

template <format F>
std::vector<frame_row> rows_of(std::uint64_t seed, std::size_t dim, std::size_t keys) {
  tally all;
  std::vector<double> k(dim);
  for (std::size_t index = 0; index < keys; ++index) {
    round_once<F>(unit_vector(direction(seed, dim, index)), k);
    all.count<F>(k);
  }
  std::vector<frame_row> rows;
  for (std::size_t i = 0; i < bin_count; ++i) {
    frame_row row{i, -bin_limit + bin_width * static_cast<double>(i),
                  static_cast<double>(all.histogram[i]) / static_cast<double>(all.keys)};
    const frame_row whole = all.row<F>(dim);
    row.insert(row.end(), whole.begin(), whole.end());
    rows.push_back(std::move(row));
  }
  return rows;
}

}  // namespace

double to_double(const rational& x) { return round_to<double>(x); }

rational power_of_two(int exponent) {
  const rational power(integer(1) << static_cast<unsigned>(exponent < 0 ? -exponent : exponent));
  return exponent < 0 ? 1 / power : power;
}

rational exact_squared_norm(std::span<const double> k) {
  for (const double x : k) static_cast<void>(exact(x));
  if (const auto fixed = fixed_squared_norm(k)) return from_uint128(*fixed) * power_of_two(-120);
  // Integers on the grid of the smallest entry's last bit.
  int lowest = std::numeric_limits<int>::max();
  for (const double x : k) {
    if (x != 0) lowest = std::min(lowest, std::max(std::ilogb(x), -1022) - 52);
  }
  if (lowest == std::numeric_limits<int>::max()) return 0;
  integer sum = 0;
  for (const double x : k) {
    if (x == 0) continue;
    const int exponent = std::max(std::ilogb(x), -1022) - 52;
    const integer whole(static_cast<std::int64_t>(std::scalbn(x, -exponent)));
    sum += (whole * whole) << static_cast<unsigned>(2 * (exponent - lowest));
  }
  return rational(sum) * power_of_two(2 * lowest);
}

frame survey_norms(const run_options& options, std::size_t keys) {
  return grid(
      options, "unit keys",
      {"bin", "bin_from", "share", "keys", "above_one", "share_above_one", "mean", "deviation", "smallest", "largest",
       "largest_norm", "safe_beta", "leaves_below_two", "leaves_at_safe", "subnormal"},
      [&](const format& wanted, std::size_t dim) {
        return visit_format(wanted, [&]<format F>() { return rows_of<F>(options.seed, dim, keys); });
      },
      all_formats(), key_dims());
}

bool safe_step_is_proved(const format& f, std::size_t dim) {
  const rational u = exact(unit_roundoff(f));
  const rational h = exact(smallest_subnormal(f));
  const rational subnormals = static_cast<int>(dim) * h * (exact(smallest_normal(f)) + h / 4);
  return (1 - 2 * u) * ((1 + u) * (1 + u) + subnormals) <= 1;
}

std::vector<double> unit_key(std::string_view format_name, std::uint64_t seed, std::size_t dim, std::uint64_t index) {
  std::vector<double> k(dim);
  const std::vector<double_double> unit = unit_vector(direction(seed, dim, index));
  visit_format(format_named(format_name), [&]<format F>() { round_once<F>(unit, k); });
  return k;
}

namespace {

/// To three significant digits: decompositions differ in their last bits between compilers.
double three_digits(double x) { return std::strtod(number(x, 3).c_str(), nullptr); }

template <class S, format F>
matrix<S> lifted(const matrix<rounded<F>>& m) {
  matrix<S> result(m.rows(), m.cols());
  for (std::size_t i = 0; i < m.size(); ++i) result.data()[i] = lift<S>(m.data()[i]);
  return result;
}

/// |M| - 1 for a symmetric M: its largest |eigenvalue|.
template <class S>
S excess_over_one(const matrix<S>& m) {
  const std::vector<S> values = symmetric_eigenvalues(m);
  const S bottom = -values.front();
  const S& top = values.back();
  return (bottom > top ? bottom : top) - 1;
}

/// A 2 x 2 principal part (1 c; c m) with c != 0 has an eigenvalue above 1, and so has M (interlacing).
template <format F>
bool has_expansive_row(const matrix<rounded<F>>& m) {
  for (std::size_t i = 0; i < m.rows(); ++i) {
    if (m(i, i).value() < 1) continue;
    for (std::size_t j = 0; j < m.cols(); ++j) {
      if (j != i && m(i, j).value() != 0) return true;
    }
  }
  return false;
}

/// fp64 needs more than double to show its own roundings.
template <format F>
constexpr bool needs_wide = F.precision > 40;
constexpr std::size_t wide_share = 10;

template <format F>
frame_row examine(std::span<const double> k, double beta, bool check) {
  const matrix<rounded<F>> m = materialised_transition<F>(k, beta);
  const rational n = exact_squared_norm(k);
  const double u = unit_roundoff(F);
  const rational lambda = 1 - exact(beta) * n;
  const double exact_excess = lambda < -1 ? to_double(-1 - lambda) / u : 0;
  double radius_excess = 0;
  cell disagreement;  // between double and real<128>, where looked at
  double noise = static_cast<double>(k.size()) * 0x1p-48;
  if constexpr (needs_wide<F>) {
    radius_excess = round_to<double>(excess_over_one(lifted<real<128>>(m)));
    noise = 0x1p-100;
  } else {
    radius_excess = excess_over_one(lifted<double>(m));
    if (check) disagreement = std::fabs(radius_excess - round_to<double>(excess_over_one(lifted<real<128>>(m))));
  }
  return {to_double(n - 1) / u,
          three_digits(radius_excess / u),
          three_digits(radius_excess / u - exact_excess),
          radius_excess > noise,
          has_expansive_row(m),
          disagreement};
}

}  // namespace

frame survey_transitions(const run_options& options, std::size_t keys) {
  return grid(
      options, "materialised transitions", {"norm_excess", "radius_excess", "added", "expansive", "proved", "disagreement"},
      [&](const format& wanted, std::size_t dim, double beta) {
        return visit_format(wanted, [&]<format F>() {
          std::vector<frame_row> rows;
          for (std::size_t i = 0; i < (needs_wide<F> ? std::max<std::size_t>(1, keys / wide_share) : keys); ++i)
            rows.push_back(examine<F>(unit_key(deltaproof::name_of(F), options.seed, dim, i), beta, i == 0));
          return rows;
        });
      },
      all_formats(), grid_axis<std::size_t>{"dim", {16, 64}}, grid_axis<double>{"beta", {0.5, 1, 2}});
}

}  // namespace deltaproof::detail::eigenvalues

// Theorems behind this file, by their names in proofs/README.md.
// proved: float.key_norm.key_norm_after_rounding, float.key_norm.unit_key_after_rounding, float.key_norm.safe_step_condition,
// proved: float.key_norm.safe_step_sharp, float.key_norm.unclamped_step_expands, float.key_norm.bf16_key_3_4,
// proved: float.alpha.square_of_rounded_entry, bridge.rounded_steps.rounded_run_non_expansive,
// proved: bridge.rounded_steps.unclamped_run_diverges
