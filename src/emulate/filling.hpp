// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// Tensors of a result in the making, filled head by head as heads finish.
#pragma once

#include <array>
#include <cstddef>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "deltaproof/emulate/emulate.hpp"
#include "deltaproof/files/stage_table.hpp"

namespace deltaproof::emulation_detail {

/// The tensors of a head by their names.
inline constexpr auto head_tensors = std::to_array<std::pair<std::string_view, matrix<double> head_output::*>>({
    {"g_cumsum_log2", &head_output::g_cumsum_log2},
    {"A", &head_output::A},
    {"Ai", &head_output::Ai},
    {"w", &head_output::w},
    {"u", &head_output::u},
    {"h", &head_output::h},
    {"v_new", &head_output::v_new},
    {"Aqk", &head_output::Aqk},
    {"o", &head_output::o},
    {"final_state", &head_output::final_state},
});
static_assert(has_each(head_tensors, judged_stages));
/// Throws: domain_error where there is no tensor of that name.
[[nodiscard]] const matrix<double>& tensor_of(const head_output& out, std::string_view name);

/// [batch, rows, heads, width], or any shape of blocks side by side.
struct filling {
  format of;
  std::vector<std::size_t> shape;
  std::vector<double> values;

  filling(const format& f, std::vector<std::size_t> s);

  /// Rows of `from` become rows first, first + 1, ... of (batch, head).
  void put(const matrix<double>& from, std::size_t batch, std::size_t first, std::size_t head);
  /// `from` becomes block number `index` of blocks of its size.
  void put_block(std::span<const double> from, std::size_t index);
  [[nodiscard]] tensor finished(const std::string& name) const { return tensor::from_doubles(of, shape, values, name); }
};

/// o, final_state and, if asked for, the stages of the forward pass.
class forward_tensors {
 public:
  forward_tensors(const problem& p, const plan_variant& variant, bool stages);

  void put(const head_output& out, std::size_t sequence, const sequence_range& range, std::size_t head, std::size_t first_chunk);
  /// A result of the variant, with its path, kernel and producer.
  [[nodiscard]] result finished(const emulation_options& options) const;

 private:
  const problem& p_;
  const plan_variant& variant_;
  std::size_t chunks_ = 0;
  filling o_, states_;
  std::map<std::string, filling> kept_;
};

/// Of each sequence its first chunk among those of its batch; zeros where there are no chunks (`chunk` 0).
[[nodiscard]] std::vector<std::size_t> first_chunks(const problem& p, const std::vector<sequence_range>& sequences,
                                                    std::size_t chunk);

}  // namespace deltaproof::emulation_detail
