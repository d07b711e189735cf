// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// Prints a hash for each of many results over fixed inputs: every operation of rounded<F>, double_double, dot and
// matmul in every order, the tensor core models, and a small recurrence in plain double and float. The same lines,
// golden.txt, must come out of every compiler at every -O level. Includes no Eigen, Boost or MPFR: it is built
// several times by the tests, and must build fast.
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <string_view>
#include <vector>

#include "deltaproof/algebra/multiply.hpp"
#include "deltaproof/number/convert.hpp"
#include "deltaproof/number/double_double.hpp"
#include "deltaproof/number/modular.hpp"
#include "deltaproof/number/random.hpp"
#include "deltaproof/number/rounded.hpp"

namespace {

using namespace deltaproof;

/// FNV-1a over 64-bit words; every NaN is one NaN.
class hash {
 public:
  void add(std::uint64_t word) {
    for (int byte = 0; byte < 8; ++byte) {
      state_ = (state_ ^ (word >> (8 * byte) & 0xff)) * 0x100000001b3;
    }
  }
  void add(double x) { add(x != x ? std::uint64_t{0x7ff8} << 48 : std::bit_cast<std::uint64_t>(x)); }
  void add(float x) { add(static_cast<double>(x)); }
  void add(modular x) { add(x.value()); }
  void add(double_double x) {
    add(x.hi());
    add(x.lo());
  }
  template <format F, class Mode>
  void add(rounded<F, Mode> x) {
    add(static_cast<std::uint64_t>(x.bits()));
  }
  void print(std::string_view of, std::string_view what) const {
    std::printf("%.*s %.*s %016llx\n", static_cast<int>(of.size()), of.data(), static_cast<int>(what.size()), what.data(),
                static_cast<unsigned long long>(state_));
  }

 private:
  std::uint64_t state_ = 0xcbf29ce484222325;
};

/// Finite values, 2^-spread .. 2^spread, with some zeros.
double draw(philox& generator, int spread) {
  const std::uint64_t word = generator();
  const double magnitude = std::bit_cast<double>((word >> 12) | std::uint64_t{1023} << 52);
  const int exponent = static_cast<int>(generator.below(static_cast<std::uint64_t>(2 * spread + 1))) - spread;
  const double value = word % 61 == 0 ? 0.0 : std::ldexp(magnitude, exponent);
  return (word & 64) != 0 ? -value : value;
}

template <class S>
std::vector<S> draw_vector(std::uint64_t stream, std::size_t count, int spread) {
  philox generator(0x5eed, stream);
  std::vector<S> values;
  for (std::size_t i = 0; i < count; ++i) {
    const double x = draw(generator, spread);
    if constexpr (Lossless<double, S>) {
      values.push_back(lift<S>(x));
    } else {
      values.push_back(round_to<S>(x));
    }
  }
  return values;
}

template <class S>
matrix<S> draw_matrix(std::uint64_t stream, std::size_t rows, std::size_t cols) {
  return matrix<S>(rows, cols, draw_vector<S>(stream, rows * cols, 3));
}

void random_numbers() {
  hash h;
  philox generator(1, 2);
  for (int i = 0; i < 2000; ++i) {
    h.add(generator());
    h.add(generator.uniform());
    h.add(generator.normal());
    h.add(generator.below(1000));
  }
  h.print("philox", "streams");
}

/// All operations of one format and mode over pairs that reach its subnormals and its overflow.
template <format F, class Mode>
void operations() {
  using S = rounded<F, Mode>;
  const int spread = F == fp64 ? 1000 : F.emax + 4;
  const auto x = draw_vector<S>(10, 800, spread);
  const auto y = draw_vector<S>(11, 800, spread);
  const auto z = draw_vector<S>(12, 800, spread);
  hash h;
  for (std::size_t i = 0; i < x.size(); ++i) {
    h.add(x[i] + y[i]);
    h.add(x[i] - y[i]);
    h.add(x[i] * y[i]);
    h.add(x[i] / y[i]);
    h.add(sqrt(abs(x[i])));
    h.add(fma(x[i], y[i], z[i]));
    h.add(static_cast<std::uint64_t>(x[i] < y[i]));
    h.add(S::from_bits(x[i].bits()));
  }
  h.print(name_of(F), Mode::name);
}

template <format F>
void stochastic_operations() {
  using S = rounded<F>;
  stochastic mode(17);
  const auto x = draw_vector<S>(20, 400, 6);
  const auto y = draw_vector<S>(21, 400, 6);
  hash h;
  for (std::size_t i = 0; i < x.size(); ++i) {
    h.add(add(x[i], y[i], mode));
    h.add(mul(x[i], y[i], mode));
    h.add(fma(x[i], y[i], x[i], mode));
  }
  h.print(name_of(F), stochastic::name);
}

void double_doubles() {
  philox generator(3, 4);
  hash h;
  double_double sum;
  for (int i = 0; i < 2000; ++i) {
    const double_double x(draw(generator, 20));
    const double_double y = double_double(draw(generator, 20)) + double_double(1.0);
    h.add(x * y);
    sum = sum + x * y;
    h.add(sum);
    if (y != double_double(0.0)) h.add(x / y);
  }
  h.print("double_double", "operations");
}

/// dot and matmul of one arithmetic, with an accumulator to begin from.
template <class A>
void sums(std::string_view of, std::string_view what) {
  using S = typename A::storage_type;
  using T = typename A::sum_type;
  hash h;
  for (const std::size_t count : {1U, 7U, 16U, 64U, 333U}) {
    for (std::uint64_t stream = 0; stream < 6; ++stream) {
      const auto x = draw_vector<S>(30 + stream, count, 6);
      const auto y = draw_vector<S>(40 + stream, count, 6);
      h.add(dot<A>(x, y));
      h.add(dot<A>(x, y, draw_vector<T>(50 + stream, 1, 6)[0]));
    }
  }
  const auto product = matmul<A>(draw_matrix<S>(60, 9, 35), draw_matrix<S>(61, 35, 17), draw_matrix<T>(62, 9, 17));
  for (const T& entry : product.entries()) h.add(entry);
  h.print(of, what);
}

void modular_sums() {
  std::vector<modular> x;
  philox generator(5, 6);
  for (int i = 0; i < 300; ++i) {
    const modular numerator = reduce(draw(generator, 30));
    x.push_back(numerator / modular(static_cast<std::int64_t>(generator.below(1000) + 1)));
  }
  hash h;
  h.add(dot<plain<modular>>(x, x));
  h.add(dot<arithmetic<modular, exact_product, modular, pairwise>>(x, x));
  h.print("modular", "sums");
}

/// o = S^T q after S <- a S + k b (v - k^T S), as a plain loop: what contraction and reassociation would change.
template <class T>
void recurrence(std::string_view of) {
  constexpr std::size_t d = 12;
  std::vector<T> state(d * d, T(0));
  philox generator(7, 8);
  hash h;
  for (int t = 0; t < 300; ++t) {
    std::vector<T> k(d);
    std::vector<T> v(d);
    T norm = 0;
    for (std::size_t i = 0; i < d; ++i) {
      k[i] = static_cast<T>(generator.normal());
      v[i] = static_cast<T>(generator.normal());
      norm += k[i] * k[i];
    }
    const T scale = 1 / std::sqrt(norm);
    const auto b = static_cast<T>(2 * generator.uniform());
    const auto a = static_cast<T>(1 - generator.uniform() / 16);
    for (T& x : k) x = x * scale;
    for (std::size_t j = 0; j < d; ++j) {
      T predicted = 0;
      for (std::size_t i = 0; i < d; ++i) predicted += k[i] * (a * state[i * d + j]);
      const T write = b * (v[j] - predicted);
      for (std::size_t i = 0; i < d; ++i) state[i * d + j] = a * state[i * d + j] + k[i] * write;
    }
    if (t % 10 == 0) {
      for (const T x : state) h.add(x);
    }
  }
  h.print(of, "recurrence");
}

template <class F>
void for_each_mode(F f) {
  f(nearest_even{});
  f(toward_zero{});
}

}  // namespace

int main() {
  random_numbers();
  for_each_mode([](auto mode) {
    using Mode = decltype(mode);
    operations<e4m3, Mode>();
    operations<e5m2, Mode>();
    operations<fp16, Mode>();
    operations<bf16, Mode>();
    operations<tf32, Mode>();
    operations<fp32, Mode>();
    operations<fp64, Mode>();
  });
  operations<e4m3, nearest_saturating>();
  stochastic_operations<bf16>();
  stochastic_operations<fp32>();
  double_doubles();

  using half = rounded<bf16>;
  using single = rounded<fp32>;
  sums<plain<double>>("double", "sequential");
  sums<arithmetic<double, double, double, pairwise>>("double", "pairwise");
  sums<arithmetic<double, exact_product, double, blocked<8>>>("double", "fused, blocked<8>");
  sums<plain<float>>("float", "sequential");
  sums<arithmetic<float, exact_product, float, sequential>>("float", "fused, sequential");
  sums<arithmetic<float, float, double, pairwise>>("float", "pairwise in double");
  sums<plain<half>>("bf16", "sequential");
  sums<arithmetic<half, exact_product, half, pairwise>>("bf16", "fused, pairwise");
  sums<arithmetic<half, exact_product, single, sequential>>("bf16", "fused, sequential in fp32");
  sums<arithmetic<half, half, single, blocked<16>>>("bf16", "blocked<16> in fp32");
  sums<arithmetic<rounded<fp16>, exact_product, rounded<fp16>, sequential>>("fp16", "fused, sequential");
  sums<arithmetic<double_double, double_double, double_double, pairwise>>("double_double", "pairwise");
  sums<arithmetic<rounded<fp16>, exact_product, single, tensor_core<volta>>>("fp16", "volta");
  sums<arithmetic<rounded<fp16>, exact_product, single, tensor_core<turing>>>("fp16", "turing");
  sums<arithmetic<half, exact_product, single, tensor_core<ampere>>>("bf16", "ampere");
  sums<arithmetic<rounded<e4m3>, exact_product, single, tensor_core<ada>>>("e4m3", "ada");
  sums<arithmetic<half, exact_product, single, tensor_core<hopper>>>("bf16", "hopper");
  sums<arithmetic<rounded<tf32>, exact_product, float, tensor_core<hopper>>>("tf32", "hopper");
  sums<arithmetic<rounded<e5m2>, exact_product, single, tensor_core<blackwell>>>("e5m2", "blackwell");
  modular_sums();
  recurrence<double>("double");
  recurrence<float>("float");
  return 0;
}
