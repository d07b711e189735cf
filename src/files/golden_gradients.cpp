// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <map>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "deltaproof/files/golden.hpp"
#include "deltaproof/support/write_file.hpp"
#include "files/golden_parts.hpp"
#include "oracle/gradients/by_group.hpp"
#include "support/text.hpp"

namespace deltaproof {
namespace {

constexpr std::size_t tokens_at_once = 128;

/// Gradients on their way to tensors, each head's elements together, those of both turns of a group: in a file without a name, or
/// in memory.
class waiting_gradients {
 public:
  waiting_gradients(const problem& p, const golden_request& asked, const std::filesystem::path* beside)
      : p_{p},
        asked_{asked},
        parts_{detail::part_count(asked)},
        nan_(encoded(std::array{std::nan("")})),
        sequences_{p.sequences()} {
    if (beside != nullptr) file_.emplace(*beside);
    for (std::size_t i = 0; i < gradient_names.size(); ++i) {
      begin_[i] = size_;
      if (const tensor* given = given_of(p, i)) size_ += given->size() * parts_;
    }
    std::size_t tokens = 0;
    for (const sequence_range& range : sequences_) {
      first_token_.push_back(tokens);
      tokens += range.tokens;
    }
    groups_.resize(sequences_.size() * p.key_heads());
  }

  [[nodiscard]] std::size_t width() const { return nan_.size(); }
  [[nodiscard]] std::size_t parts() const { return parts_; }

  /// From any thread, for different groups.
  void put(const solved_gradient& from) {
    if (asked_.bits == 0) return write(from, 0, from.part.value);
    std::vector<double> sum(parts_);
    std::vector<std::vector<double>> all(parts_, std::vector<double>(from.part.value.size()));
    double largest = -1;
    bool known = true;
    for (std::size_t i = 0; i < from.part.value.size(); ++i) {
      const double left = decided_parts(from.part, i, sum);
      for (std::size_t c = 0; c < parts_; ++c) {
        all[c][i] = c > 0 && std::isnan(all[c - 1][i]) ? std::nan("") : sum[c];
      }
      std::isnan(all.back()[i]) ? void(known = false) : void(largest = std::max(largest, left));
    }
    for (std::size_t c = 0; c < parts_; ++c) write(from, c, all[c]);
    const std::lock_guard guard(lock_);
    known_ = known_ && known;
    radius_[from.tensor] = std::max(radius_[from.tensor], largest);
  }
  void put(const settled_group& group) {
    groups_[group.sequence * p_.key_heads() + group.key_head] = static_cast<std::uint8_t>(group.some ? 1 + group.turn : 0);
    const std::lock_guard guard(lock_);
    known_ = known_ && group.some && (group.known || asked_.bits != 0);
    for (std::size_t i = 0; i < radius_.size(); ++i) radius_[i] = std::max(radius_[i], group.radius[i]);
  }

  /// f(bytes) of a part of a gradient in a file's order.
  template <class F>
  void each(std::size_t tensor, std::size_t part, const F& f) const {
    const gradient_layout at = layout_of(p_, tensor);
    const std::size_t row = at.rows * at.width * width(), one = at.width * width();
    for (std::size_t n = 0; n < sequences_.size(); ++n) {
      const std::size_t all = tensor == 5 ? 1 : sequences_[n].tokens;
      for (std::size_t first = 0; first < all; first += tokens_at_once) {
        const std::size_t count = std::min(tokens_at_once, all - first);
        std::vector<std::byte> own(count * row), together(count * at.heads * row);
        for (std::size_t h = 0; h < at.heads; ++h) {
          read(tensor, part, n, h, first * at.rows * at.width, own);
          for (std::size_t r = 0; r < count * at.rows; ++r)
            std::memcpy(together.data() + (r * at.heads + h) * one, own.data() + r * one, one);
        }
        f(std::span<const std::byte>(together));
      }
    }
  }
  /// All that is said about a gradient.
  [[nodiscard]] golden_tensor about(std::size_t tensor) const {
    golden_tensor out;
    out.radius = radius_[tensor] >= 0 || given_of(p_, tensor)->size() == 0 ? std::max(radius_[tensor], 0.0)
                                                                           : std::numeric_limits<double>::infinity();
    if (known_) return out;
    detail::nan_list list(most_index_bytes);
    each(tensor, parts_ - 1, [&](std::span<const std::byte> bytes) {
      list.add(deltaproof::tensor(asked_.round, {bytes.size() / width()}, bytes).to_doubles());
    });
    index_list open = std::move(list).finish();
    out.undecided = open.count;
    out.undecided_indices = std::move(open.text);
    return out;
  }

 private:
  [[nodiscard]] std::vector<std::byte> encoded(std::span<const double> values) const {
    const tensor t = tensor::from_doubles(asked_.round, {values.size()}, values);
    return {t.bytes().begin(), t.bytes().end()};
  }
  /// Where an element of a head lies, in bytes.
  [[nodiscard]] std::size_t place(std::size_t tensor, std::size_t part, std::size_t n, std::size_t h, std::size_t first) const {
    const gradient_layout at = layout_of(p_, tensor);
    const std::size_t own = at.rows * at.width * (tensor == 5 ? 1 : sequences_[n].tokens),
                      before = at.rows * at.width * (tensor == 5 ? n : first_token_[n]) * at.heads;
    return (begin_[tensor] + part * given_of(p_, tensor)->size() + before + h * own + first) * width();
  }
  void write(const solved_gradient& to, std::size_t part, std::span<const double> values) {
    const std::size_t at = place(to.tensor, part, to.sequence, to.head, to.first);
    const std::vector<std::byte> bytes = encoded(values);
    if (file_) return file_->write(at + to.turn * size_ * width(), bytes);
    {
      const std::lock_guard guard(lock_);
      memory_[to.turn].resize(size_ * width());
    }
    std::copy(bytes.begin(), bytes.end(), memory_[to.turn].begin() + static_cast<std::ptrdiff_t>(at));
  }
  void read(std::size_t tensor, std::size_t part, std::size_t n, std::size_t h, std::size_t first,
            std::span<std::byte> to) const {
    const std::size_t at = place(tensor, part, n, h, first), key_head = tensor < 2 ? h : p_.key_head(h);
    const std::uint8_t state = groups_[n * p_.key_heads() + key_head];
    if (state == 0) {
      for (std::size_t i = 0; i < to.size(); i += width()) std::memcpy(to.data() + i, nan_.data(), width());
    } else if (file_) {
      file_->read(at + (state - 1U) * size_ * width(), to);
    } else {
      std::copy_n(memory_[state - 1U].begin() + static_cast<std::ptrdiff_t>(at), to.size(), to.begin());
    }
  }

  const problem& p_;
  const golden_request& asked_;
  std::size_t parts_;
  std::vector<std::byte> nan_;
  std::vector<sequence_range> sequences_;
  std::optional<scratch_file> file_;
  std::array<std::vector<std::byte>, 2> memory_;
  std::array<std::size_t, 6> begin_{};  // elements
  std::size_t size_ = 0;                // of a turn
  std::vector<std::size_t> first_token_;
  std::vector<std::uint8_t> groups_;  // 0: nothing is known, else 1 + the turn that counts
  std::mutex lock_;
  bool known_ = true;
  std::array<double, 6> radius_{-1, -1, -1, -1, -1, -1};
};

/// Solves, and says all but the tensors.
golden_gradients run(const problem& p, const golden_request& asked, waiting_gradients& waiting,
                     const std::filesystem::path* beside) {
  if (asked.bits != 0 && !(asked.round == fp64))
    throw format_error("make_golden_gradients: bits = " + std::to_string(asked.bits) +
                       " and round = " + std::string(name_of(asked.round)) +
                       " are both asked for; with bits, each value is stored as a sum of fp64 numbers, so set round to fp64, "
                       "or bits to 0");
  question q;
  q.round_output = q.round_state = asked.round;
  if (asked.bits != 0) q.relative_radius = std::ldexp(1.0, -static_cast<int>(53 * parts_of(asked.bits)) - 8);
  q.max_bits = asked.max_bits;
  q.always_exact = true;
  q.threads = asked.threads;
  q.stop = asked.stop;
  q.progress = asked.progress;
  const gradient_sinks sinks{[&](const solved_gradient& part) { waiting.put(part); },
                             [&](const settled_group& group) { waiting.put(group); }};
  const reference_gradients from =
      solve_gradients_by_group(p, q, asked.bits == 0 ? gradient_form::roundings : gradient_form::numbers, sinks, beside);
  golden_gradients out;
  out.stopped = from.stopped;
  if (out.stopped) return out;
  out.tiers = from.tiers;
  for (std::size_t i = 0; i < gradient_names.size(); ++i) {
    if (given_of(p, i) != nullptr) out.tensors.emplace(gradient_names[i], waiting.about(i));
  }
  return out;
}

std::size_t tensor_named(const std::string& name) {
  return static_cast<std::size_t>(std::find(gradient_names.begin(), gradient_names.end(), name) - gradient_names.begin());
}

}  // namespace

golden_gradients make_golden_gradients(const problem& p, const golden_request& asked) {
  waiting_gradients waiting(p, asked, nullptr);
  golden_gradients out = run(p, asked, waiting, nullptr);
  for (auto& [name, gradient] : out.tensors) {
    const std::size_t i = tensor_named(name);
    for (std::size_t c = 0; c < waiting.parts(); ++c) {
      std::vector<std::byte> all;
      waiting.each(i, c, [&](std::span<const std::byte> bytes) { all.insert(all.end(), bytes.begin(), bytes.end()); });
      gradient.parts.emplace_back(asked.round, given_of(p, i)->shape(), std::span<const std::byte>(all), part_name(name, c));
    }
  }
  return out;
}

golden_gradients write_golden_gradients(const std::filesystem::path& path, const problem& p, const golden_request& asked,
                                        const std::string& problem_sha256, const std::function<void()>& confirm) {
  waiting_gradients waiting(p, asked, &path);
  golden_gradients out = run(p, asked, waiting, &path);
  if (out.stopped) return out;
  safetensors_metadata metadata{{"format", std::string(result_format)},
                                {"pass", "backward"},
                                {"path", "reference"},
                                {"kernel", "certified adjoint"},
                                {"problem_sha256", problem_sha256}};
  std::vector<safetensors_entry> entries;
  const std::string dtype = tensor::from_doubles(asked.round, {0}, {}).dtype();
  std::size_t offset = 0;
  for (const auto& [name, gradient] : out.tensors) {
    metadata.emplace_back("radius." + name, detail::general(gradient.radius, 17));
    metadata.emplace_back("undecided." + name, std::to_string(gradient.undecided));
    if (gradient.undecided > 0) metadata.emplace_back("undecided." + name + ".indices", gradient.undecided_indices);
    const tensor& given = *given_of(p, tensor_named(name));
    for (std::size_t c = 0; c < waiting.parts(); ++c) {
      const std::size_t size = given.size() * waiting.width();
      entries.push_back({part_name(name, c), dtype, given.shape(), offset, offset + size});
      offset += size;
    }
  }
  file_writer file(path);
  file.write(safetensors_header(metadata, entries));
  for (const auto& [name, gradient] : out.tensors) {
    for (std::size_t c = 0; c < waiting.parts(); ++c) {
      waiting.each(tensor_named(name), c, [&](std::span<const std::byte> bytes) {
        file.write({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
      });
    }
  }
  if (confirm) confirm();
  file.finish();
  return out;
}

}  // namespace deltaproof
