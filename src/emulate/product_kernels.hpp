// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// The loops under products.hpp, compiled once for each instruction set: `kernels_of(set)` gives them, `best_set()` says which
// this CPU runs. Shapes and sums as products.hpp states them, nothing checked. All sets give the same bits; a test calls each.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "emulate/lane_exp2.hpp"
#include "emulate/lane_rounding.hpp"
#include "emulate/products.hpp"

namespace deltaproof::emulation {

enum class instruction_set { baseline, avx2, avx512 };

/// The sets this CPU runs, narrowest first.
[[nodiscard]] std::vector<instruction_set> supported_sets();

/// Operands of the block model beside their exponents. b and its exponents are padded to `b_stride` columns, a multiple of
/// the widest lanes. exponent of zero: `zero`; of what is not finite: `special`.
struct core_operands {
  static constexpr std::int32_t zero = -10000;
  static constexpr std::int32_t special = 30000;
  static constexpr std::size_t column_multiple = 16;

  product<float> p;
  std::vector<float> b;
  std::size_t b_stride = 0;
  std::vector<std::int32_t> a_exponents;  ///< rows x inner
  std::vector<std::int32_t> b_exponents;  ///< inner x b_stride
  std::size_t block = 16;
  int fraction_bits = 25;
  format operand = bf16;
};

struct kernels {
  void (*multiply_floats)(const product<float>&, sum_order);
  void (*multiply_doubles)(const product<double>&, sum_order);
  void (*multiply_narrow)(const product<double>&, sum_order, const rounding<double>&);
  void (*multiply_blocks)(const core_operands&);
  void (*narrow_floats)(float*, std::size_t, const rounding<float>&, bool toward_zero);
  void (*narrow_doubles)(double*, std::size_t, const rounding<double>&, bool toward_zero);
  void (*exp2_floats)(float*, std::size_t);
};

[[nodiscard]] const kernels& kernels_of(instruction_set set);
[[nodiscard]] const kernels& best_kernels();

/// As in products.hpp, by the kernels given.
void multiply(const product<float>& p, const sum_rule& rule, const kernels& by);
void multiply(const product<double>& p, const sum_rule& rule, const kernels& by);

/// One block of the model for the entry (row, column) with the accumulator `carried`, by algebra's fused_block.
[[nodiscard]] float slow_block(const core_operands& o, std::size_t row, std::size_t column, std::size_t begin, std::size_t count,
                               float carried);

}  // namespace deltaproof::emulation
