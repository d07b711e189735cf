// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "deltaproof/files/golden.hpp"
#include "deltaproof/support/write_file.hpp"
#include "files/golden_parts.hpp"

namespace deltaproof {
namespace {

/// Outputs and states on their way to a file, part by part and head by head: what one head decides lies together, and what a file
/// holds of one token does not.
class waiting_outputs {
 public:
  waiting_outputs(const std::filesystem::path& beside, const problem& p, const golden_request& asked)
      : file_{beside},
        of_{asked.round},
        parts_{detail::part_count(asked)},
        sequences_{p.sequences()},
        heads_{p.value_heads()},
        cols_{p.value_dim()},
        entries_{p.key_dim() * p.value_dim()},
        tokens_{p.batch() * p.tokens()},
        nan_(encoded(std::array{std::nan("")})) {
    std::size_t tokens = 0, chunks = 0;
    for (const sequence_range& range : sequences_) {
      first_token_.push_back(tokens);
      first_chunk_.push_back(chunks);
      tokens += range.tokens;
      chunks += (range.tokens + chunk_tokens - 1) / chunk_tokens * heads_;
    }
    seen_.assign(chunks, 0);
    state_seen_.assign(sequences_.size() * heads_, 0);
  }

  [[nodiscard]] std::size_t width() const { return nan_.size(); }
  [[nodiscard]] std::size_t outputs() const { return tokens_ * heads_ * cols_; }
  [[nodiscard]] std::size_t states() const { return sequences_.size() * heads_ * entries_; }

  /// From any thread, for different heads.
  void put(const decided_chunk& c) {
    const std::size_t n = c.count * cols_;
    std::uint8_t& seen = seen_[chunk_index(c.sequence, c.value_head, c.first)];
    for (std::size_t part = 0; part < parts_; ++part) {
      const auto values = detail::part_of(c, part, n);
      const std::size_t place = output_place(part, c.sequence, c.value_head, c.first);
      if (seen == 0 || c.anew) {
        file_.write(place, encoded(values));
        continue;
      }
      std::vector<std::size_t> where;
      std::vector<double> news;
      detail::each_news(c, values, [&](std::size_t i) {
        where.push_back(i);
        news.push_back(values[i]);
      });
      if (where.empty()) continue;
      const std::vector<std::byte> fresh = encoded(news);
      std::vector<std::byte> all(n * width());
      file_.read(place, all);
      for (std::size_t i = 0; i < where.size(); ++i)
        std::memcpy(all.data() + where[i] * width(), fresh.data() + i * width(), width());
      file_.write(place, all);
    }
    seen = 1;
  }
  void put(const decided_head& head) {
    if (head.state.value.empty()) return;
    for (std::size_t part = 0; part < parts_; ++part)
      file_.write(state_place(part, head.sequence, head.value_head),
                  encoded(part == 0 ? head.state.value : head.state.low[part - 1]));
    state_seen_[head.sequence * heads_ + head.value_head] = 1;
  }

  /// f(bytes) of a part of the outputs in a file's order, a chunk of tokens of all heads at a time.
  template <class F>
  void each_output(std::size_t part, const F& f) const {
    const std::size_t row = cols_ * width();
    std::vector<std::byte> own(chunk_tokens * row), together(chunk_tokens * heads_ * row);
    for (std::size_t n = 0; n < sequences_.size(); ++n) {
      for (std::size_t first = 0; first < sequences_[n].tokens; first += chunk_tokens) {
        const std::size_t count = std::min(chunk_tokens, sequences_[n].tokens - first);
        for (std::size_t h = 0; h < heads_; ++h) {
          const std::span<std::byte> bytes = std::span(own).first(count * row);
          read_or_nan(seen_[chunk_index(n, h, first)] != 0, output_place(part, n, h, first), bytes);
          for (std::size_t t = 0; t < count; ++t)
            std::memcpy(together.data() + (t * heads_ + h) * row, bytes.data() + t * row, row);
        }
        f(std::span<const std::byte>(together).first(count * heads_ * row));
      }
    }
  }
  /// The same of the states, a head at a time.
  template <class F>
  void each_state(std::size_t part, const F& f) const {
    std::vector<std::byte> own(entries_ * width());
    for (std::size_t i = 0; i < state_seen_.size(); ++i) {
      read_or_nan(state_seen_[i] != 0, state_place(part, i / heads_, i % heads_), own);
      f(std::span<const std::byte>(own));
    }
  }

 private:
  [[nodiscard]] std::vector<std::byte> encoded(std::span<const double> values) const {
    const tensor t = tensor::from_doubles(of_, {values.size()}, values);
    return {t.bytes().begin(), t.bytes().end()};
  }
  void read_or_nan(bool seen, std::size_t place, std::span<std::byte> bytes) const {
    if (seen) return file_.read(place, bytes);
    for (std::size_t i = 0; i < bytes.size(); i += width()) std::memcpy(bytes.data() + i, nan_.data(), width());
  }
  [[nodiscard]] std::size_t chunk_index(std::size_t n, std::size_t h, std::size_t first) const {
    return first_chunk_[n] + h * ((sequences_[n].tokens + chunk_tokens - 1) / chunk_tokens) + first / chunk_tokens;
  }
  [[nodiscard]] std::size_t output_place(std::size_t part, std::size_t n, std::size_t h, std::size_t first) const {
    return (part * (outputs() + states()) + (first_token_[n] * heads_ + h * sequences_[n].tokens + first) * cols_) * width();
  }
  [[nodiscard]] std::size_t state_place(std::size_t part, std::size_t n, std::size_t h) const {
    return (part * (outputs() + states()) + outputs() + (n * heads_ + h) * entries_) * width();
  }

  scratch_file file_;
  format of_;
  std::size_t parts_;
  std::vector<sequence_range> sequences_;
  std::size_t heads_;
  std::size_t cols_;
  std::size_t entries_;
  std::size_t tokens_;
  std::vector<std::byte> nan_;
  std::vector<std::size_t> first_token_, first_chunk_;  // by sequence
  std::vector<std::uint8_t> seen_, state_seen_;         // nothing came of the others
};

/// Indices of the NaN of bytes that come one after the other.
class open_elements {
 public:
  explicit open_elements(const format& of) : of_{of} {}
  void add(std::span<const std::byte> bytes, std::size_t width) {
    const tensor t(of_, {bytes.size() / width}, bytes);
    list_.add(t.to_doubles());
  }
  [[nodiscard]] index_list finish() && { return std::move(list_).finish(); }

 private:
  format of_;
  detail::nan_list list_{most_index_bytes};
};

std::string_view characters(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

}  // namespace

golden write_golden(const std::filesystem::path& path, const problem& p, const golden_request& asked,
                    const std::string& problem_sha256, const std::function<void()>& confirm) {
  const question ask = detail::question_of(asked);
  waiting_outputs waiting(path, p, asked);
  double left_o = 0, left_state = 0;
  stream_sinks sinks;
  sinks.chunk = [&](const decided_chunk& c) { waiting.put(c); };
  sinks.head = [&](const decided_head& head) {
    waiting.put(head);
    left_o = std::max(left_o, head.o_left);
    left_state = std::max(left_state, head.state_left);
  };
  reference ref = solve_by_block(p, ask, sinks);
  golden out;
  out.stopped = ref.stopped;
  if (ref.stopped) return out;
  const std::size_t parts = detail::part_count(asked), width = waiting.width();
  out.o = detail::about(std::move(ref.o_decided), waiting.outputs(), left_o, [&] {
    open_elements list(asked.round);
    waiting.each_output(parts - 1, [&](auto bytes) { list.add(bytes, width); });
    return std::move(list).finish();
  });
  out.final_state = detail::about(std::move(ref.state_decided), waiting.states(), left_state, [&] {
    open_elements list(asked.round);
    waiting.each_state(parts - 1, [&](auto bytes) { list.add(bytes, width); });
    return std::move(list).finish();
  });
  out.tiers = std::move(ref.tiers);
  out.fallbacks = std::move(ref.fallbacks);
  // The order of write_result: o, final_state, then the other parts of each.
  std::vector<safetensors_entry> entries;
  std::vector<std::pair<bool, std::size_t>> order{{true, 0}, {false, 0}};
  for (const bool outputs : {true, false}) {
    for (std::size_t part = 1; part < parts; ++part) order.emplace_back(outputs, part);
  }
  const std::string dtype = tensor::from_doubles(asked.round, {0}, {}).dtype();
  std::size_t offset = 0;
  for (const auto& [outputs, part] : order) {
    const std::size_t size = (outputs ? waiting.outputs() : waiting.states()) * width;
    const std::vector<std::size_t> shape = outputs ? std::vector{p.batch(), p.tokens(), p.value_heads(), p.value_dim()}
                                                   : std::vector{p.sequence_count(), p.value_heads(), p.key_dim(), p.value_dim()};
    entries.push_back({part_name(outputs ? "o" : "final_state", part), dtype, shape, offset, offset + size});
    offset += size;
  }
  result r = detail::result_about(out, asked);
  r.problem_sha256 = problem_sha256;
  file_writer file(path);
  file.write(safetensors_header(result_metadata(r), entries));
  const auto copy = [&](std::span<const std::byte> bytes) { file.write(characters(bytes)); };
  for (const auto& [outputs, part] : order) outputs ? waiting.each_output(part, copy) : waiting.each_state(part, copy);
  if (confirm) confirm();
  file.finish();
  return out;
}

}  // namespace deltaproof
