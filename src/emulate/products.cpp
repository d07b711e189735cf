// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
#include "emulate/products.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "deltaproof/algebra/tensor_core.hpp"
#include "deltaproof/support/errors.hpp"
#include "emulate/product_kernels.hpp"
#include "support/text.hpp"

namespace deltaproof::emulation {
namespace {

std::string text_of(const format& f) {
  const std::string_view name = name_of(f);
  return name.empty() ? "a format of " + std::to_string(f.precision) + " significand bits" : std::string(name);
}

void require_core(const sum_rule& rule) {
  const auto refuse = [](const std::string& what) { throw format_error("multiply, order tensor-core: " + what); };
  if (rule.accumulate != fp32)
    refuse("accumulate is " + text_of(rule.accumulate) +
           "; the emulated tensor core keeps the sum after each block in fp32, so give fp32");
  if (rule.operand.precision > 12) {
    refuse("operands are " + text_of(rule.operand) +
           "; their products must be exact in fp32, so give a format of at most 12 significand bits");
  }
  if (rule.block == 0) refuse("block is 0; give 1 product or more in a block");
  if (rule.fraction_bits < 1 || rule.fraction_bits > 28) {
    refuse("fraction_bits is " + std::to_string(rule.fraction_bits) + "; give 1 to 28");
  }
}

/// The exponents the model gives values of `f`. Throws: format_error if a finite one is not a value of it.
void take_exponents(const float* x, std::size_t count, const rounding<float>& to, const format& f, const kernels& by,
                    std::vector<float>& scratch, std::int32_t* out) {
  scratch.assign(x, x + count);
  by.narrow_floats(scratch.data(), count, to, false);
  std::int32_t foreign = 0;
  const std::int32_t lowest = f.emin;
  for (std::size_t i = 0; i < count; ++i) {
    const auto field = static_cast<std::int32_t>(std::bit_cast<std::uint32_t>(x[i]) >> 23 & 0xff);
    const std::int32_t exponent = field - 127 < lowest ? lowest : field - 127;
    const std::int32_t finite = x[i] == 0 ? core_operands::zero : exponent;
    out[i] = field == 255 ? core_operands::special : finite;
    foreign |= static_cast<std::int32_t>(scratch[i] != x[i]) & static_cast<std::int32_t>(field != 255);
  }
  if (foreign == 0) return;
  for (std::size_t i = 0; i < count; ++i) {
    if (scratch[i] == x[i] || out[i] == core_operands::special) continue;
    throw format_error("multiply, order tensor-core: " + detail::general(x[i], 9) + " is not a value of " + text_of(f) +
                       ", the operands' format; round the operands to that format first");
  }
}

void multiply_core(const product<float>& p, const sum_rule& rule, const kernels& by) {
  require_core(rule);
  core_operands o;
  o.p = p;
  o.block = rule.block;
  o.fraction_bits = rule.fraction_bits;
  o.operand = rule.operand;
  o.b_stride = (p.cols + core_operands::column_multiple - 1) / core_operands::column_multiple * core_operands::column_multiple;
  o.b.resize(p.inner * o.b_stride);
  o.b_exponents.resize(p.inner * o.b_stride, core_operands::zero);
  o.a_exponents.resize(p.rows * p.inner);
  const rounding<float> to(rule.operand);
  std::vector<float> scratch;
  for (std::size_t i = 0; i < p.rows; ++i) {
    take_exponents(p.a + i * p.a_stride, p.inner, to, rule.operand, by, scratch, o.a_exponents.data() + i * p.inner);
  }
  for (std::size_t k = 0; k < p.inner; ++k) {
    std::copy_n(p.b + k * p.b_stride, p.cols, o.b.data() + k * o.b_stride);
    take_exponents(p.b + k * p.b_stride, p.cols, to, rule.operand, by, scratch, o.b_exponents.data() + k * o.b_stride);
  }
  by.multiply_blocks(o);
}

/// The constants of a format: those used last are kept, for a run rounds many single numbers to one.
template <class Real>
const rounding<Real>& rounding_to(const format& to) {
  thread_local format last = to;
  thread_local rounding<Real> kept(to);
  if (!(last == to)) {
    kept = rounding<Real>(to);
    last = to;
  }
  return kept;
}

/// A double copy of a matrix, its rows side by side.
template <class Real>
std::vector<double> widened(const Real* x, std::size_t stride, std::size_t rows, std::size_t cols) {
  std::vector<double> result(rows * cols);
  for (std::size_t i = 0; i < rows; ++i) std::copy_n(x + i * stride, cols, result.data() + i * cols);
  return result;
}

}  // namespace

float slow_block(const core_operands& o, std::size_t row, std::size_t column, std::size_t begin, std::size_t count,
                 float carried) {
  std::vector<core_operand> x;
  std::vector<core_operand> y;
  const int precision = o.operand.precision;
  for (std::size_t k = begin; k < begin + count; ++k) {
    x.push_back(take_apart(static_cast<double>(o.p.a[row * o.p.a_stride + k]), precision, o.operand.emin));
    y.push_back(take_apart(static_cast<double>(o.p.b[k * o.p.b_stride + column]), precision, o.operand.emin));
  }
  // The table's rows, F = 23, 24 and 25, have -131, -132 and -133.
  const core_parameters model{o.block, o.fraction_bits, 23, -108 - o.fraction_bits};
  return static_cast<float>(fused_block(x, y, precision, static_cast<double>(carried), model));
}

void narrow(std::span<float> x, const narrowing& to) {
  best_kernels().narrow_floats(x.data(), x.size(), rounding<float>(to.to), to.toward_zero);
}
void narrow(std::span<double> x, const narrowing& to) {
  best_kernels().narrow_doubles(x.data(), x.size(), rounding<double>(to.to), to.toward_zero);
}
void exp2_all(std::span<float> x) { best_kernels().exp2_floats(x.data(), x.size()); }
void exp2_all(std::span<double> x) {
  for (double& value : x) value = std::exp2(value);
}
float narrowed(float x, const narrowing& to) { return rounding_to<float>(to.to)(x, to.toward_zero); }
double narrowed(double x, const narrowing& to) { return rounding_to<double>(to.to)(x, to.toward_zero); }

void multiply(const product<float>& p, const sum_rule& rule, const kernels& by) {
  if (p.rows == 0 || p.inner == 0 || p.cols == 0) return;
  if (rule.order == sum_order::tensor_core) {
    multiply_core(p, rule, by);
  } else if (rule.accumulate == fp32) {
    by.multiply_floats(p, rule.order);
  } else if (is_lossless(rule.accumulate, fp32)) {
    const std::vector<double> a = widened(p.a, p.a_stride, p.rows, p.inner);
    const std::vector<double> b = widened(p.b, p.b_stride, p.inner, p.cols);
    std::vector<double> c = widened(p.c, p.c_stride, p.rows, p.cols);
    multiply(product<double>{a.data(), p.inner, b.data(), p.cols, c.data(), p.cols, p.rows, p.inner, p.cols}, rule, by);
    for (std::size_t i = 0; i < p.rows; ++i) {
      std::transform(c.data() + i * p.cols, c.data() + (i + 1) * p.cols, p.c + i * p.c_stride,
                     [](double x) { return static_cast<float>(x); });
    }
  } else {
    throw format_error("multiply: accumulate is " + text_of(rule.accumulate) +
                       ", whose sums a float cannot hold; pass matrices of double");
  }
}

void multiply(const product<double>& p, const sum_rule& rule, const kernels& by) {
  if (rule.order == sum_order::tensor_core) {
    throw format_error(
        "multiply, order tensor-core: the operands are matrices of double; the emulated tensor core takes only float, so pass "
        "matrices of float");
  }
  if (p.rows == 0 || p.inner == 0 || p.cols == 0) return;
  if (rule.accumulate == fp64) {
    by.multiply_doubles(p, rule.order);
  } else {
    by.multiply_narrow(p, rule.order, rounding<double>(rule.accumulate));
  }
}

void multiply(const product<float>& p, const sum_rule& rule) { multiply(p, rule, best_kernels()); }
void multiply(const product<double>& p, const sum_rule& rule) { multiply(p, rule, best_kernels()); }

}  // namespace deltaproof::emulation
