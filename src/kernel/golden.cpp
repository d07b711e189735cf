// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
#include "deltaproof/kernel/golden.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <memory>
#include <span>
#include <utility>

#include "deltaproof/number/errors.hpp"
#include "deltaproof/oracle/reference.hpp"
#include "number/text.hpp"

namespace deltaproof {
namespace {

/// The bytes of one tensor as they come in, head by head; NaN where nothing came.
class stored {
 public:
  stored(const format& of, std::vector<std::size_t> shape, std::string name)
      : of_{of}, shape_{std::move(shape)}, name_{std::move(name)} {
    const tensor nan = tensor::from_doubles(of_, {1}, std::array{std::nan("")});
    width_ = nan.bytes().size();
    bytes_.reset(new std::byte[element_count(shape_) * width_]);
    for (std::size_t i = 0; i < element_count(shape_); ++i) std::memcpy(bytes_.get() + i * width_, nan.bytes().data(), width_);
  }

  void put(std::size_t at, std::span<const double> values) {
    const tensor row = tensor::from_doubles(of_, {values.size()}, values, name_);
    std::memcpy(bytes_.get() + at * width_, row.bytes().data(), row.bytes().size());
  }
  [[nodiscard]] tensor take() && {
    const std::size_t count = element_count(shape_) * width_;
    return {of_, std::move(shape_), shared_bytes(std::move(bytes_)), count, std::move(name_)};
  }

 private:
  format of_;
  std::vector<std::size_t> shape_;
  std::string name_;
  std::size_t width_ = 0;
  std::unique_ptr<std::byte[]> bytes_;
};

/// One output, its parts beside each other.
class gathered {
 public:
  gathered(const golden_request& asked, const std::vector<std::size_t>& shape, std::string_view name) : sums_{asked.bits != 0} {
    const std::size_t parts = sums_ ? parts_of(asked.bits) : 1;
    for (std::size_t c = 0; c < parts; ++c) parts_.emplace_back(asked.round, shape, part_name(name, c));
  }

  /// Elements [first, first + count) of a head to `at`. A head that was not answered has none.
  void put(std::size_t at, std::span<const double> head, std::span<const std::vector<double>> low, std::size_t first,
           std::size_t count) {
    if (head.empty()) return;
    parts_[0].put(at, head.subspan(first, count));
    for (std::size_t c = 0; c < low.size(); ++c) parts_[c + 1].put(at, std::span(low[c]).subspan(first, count));
  }
  void bound(const reference_tensor& head, double left) {
    if (sums_) radius_ = std::max(radius_, left);
    for (std::size_t i = 0; i < head.radius.size() && !sums_; ++i) radius_ = std::max(radius_, head.radius[i]);
  }

  [[nodiscard]] golden_tensor take(std::map<std::string, std::size_t> decided) && {
    golden_tensor out;
    for (stored& part : parts_) out.parts.push_back(std::move(part).take());
    index_list open = nan_indices(out.parts.back());
    out.undecided = open.count;
    out.undecided_indices = std::move(open.text);
    const bool nothing = out.undecided > 0 && out.undecided == out.parts[0].size();
    out.radius = sums_ && nothing ? std::numeric_limits<double>::infinity() : radius_;
    out.decided = std::move(decided);
    return out;
  }

 private:
  bool sums_;
  std::vector<stored> parts_;
  double radius_ = 0;
};

}  // namespace

golden make_golden(const problem& p, const golden_request& asked) {
  if (asked.bits != 0 && !(asked.round == fp64)) {
    throw format_error(std::to_string(asked.bits) + " bits in " + std::string(name_of(asked.round)) +
                       ": a sum of many bits is one of fp64 numbers; ask for the bits or for the format");
  }
  const auto sequences = p.sequences();
  const std::size_t heads = p.value_heads(), cols = p.value_dim(), keys = p.key_dim();
  question ask;
  ask.round_output = ask.round_state = asked.round;
  ask.parts = asked.bits == 0 ? 0 : parts_of(asked.bits);
  ask.max_bits = asked.max_bits;
  ask.always_exact = true;
  ask.threads = asked.threads;
  ask.stop = asked.stop;
  ask.progress = asked.progress;
  gathered o(asked, {p.batch(), p.tokens(), heads, cols}, "o");
  gathered state(asked, {sequences.size(), heads, keys, cols}, "final_state");
  reference ref = solve_by_head(p, ask, [&](const solved_head& head) {
    const sequence_range& range = sequences[head.sequence];
    const std::size_t first = range.batch * p.tokens() + range.first_token;
    for (std::size_t t = 0; t < range.tokens; ++t)
      o.put(((first + t) * heads + head.value_head) * cols, head.rounded_o, head.rounded_o_low, t * cols, cols);
    state.put((head.sequence * heads + head.value_head) * keys * cols, head.rounded_state, head.rounded_state_low, 0, keys * cols);
    o.bound(head.o, head.o_left);
    state.bound(head.final_state, head.state_left);
  });
  golden out;
  out.stopped = ref.stopped;
  if (ref.stopped) return out;
  out.o = std::move(o).take(std::move(ref.o_decided));
  out.final_state = std::move(state).take(std::move(ref.state_decided));
  out.tiers = std::move(ref.tiers);
  out.fallbacks = std::move(ref.fallbacks);
  return out;
}

result result_of(const golden& from, const golden_request& asked) {
  result r;
  r.o = from.o.parts.front();
  r.final_state = from.final_state.parts.front();
  r.kernel = "deltaproof oracle";
  r.path = path_kind::reference;
  r.producer = "deltaproof " DELTAPROOF_VERSION ", correctly rounded to " + std::string(name_of(asked.round));
  if (from.o.parts.size() > 1)
    r.producer += ", a sum of " + std::to_string(from.o.parts.size()) + " such numbers, each the rounded rest";
  for (const auto& [name, part] : {std::pair{"o", &from.o}, std::pair{"final_state", &from.final_state}}) {
    const std::string of = std::string(".") + name;
    r.metadata["radius" + of] = detail::general(part->radius, 17);
    r.metadata["tier" + of] = counts_text(part->decided);
    r.metadata["undecided" + of] = std::to_string(part->undecided);
    if (part->undecided > 0) r.metadata["undecided" + of + ".indices"] = part->undecided_indices;
  }
  if (!from.fallbacks.empty()) r.metadata["fallbacks"] = counts_text(from.fallbacks);
  return r;
}

std::vector<tensor> low_parts_of(const golden& from) {
  std::vector<tensor> low(from.o.parts.begin() + 1, from.o.parts.end());
  low.insert(low.end(), from.final_state.parts.begin() + 1, from.final_state.parts.end());
  return low;
}

std::string counts_text(const std::map<std::string, std::size_t>& counts) {
  std::string text;
  for (const auto& [name, count] : counts) text += (text.empty() ? "" : ", ") + name + ": " + std::to_string(count);
  return text.empty() ? "none" : text;
}

index_list nan_indices(const tensor& t, std::size_t most_bytes) {
  index_list out;
  bool cut = false;
  const auto add = [&](std::size_t first, std::size_t last) {
    std::string run = (out.text.empty() ? "" : ",") + std::to_string(first);
    if (last > first) run += "-" + std::to_string(last);
    if (!cut && out.text.size() + run.size() > most_bytes) {
      out.text += ",...";
      cut = true;
    }
    if (!cut) out.text += run;
  };
  std::size_t first = 0, run = 0;
  std::vector<double> block(std::min<std::size_t>(t.size(), 4096));
  for (std::size_t at = 0; at < t.size(); at += block.size()) {
    const std::size_t count = std::min(block.size(), t.size() - at);
    t.read(at, std::span(block).first(count));
    for (std::size_t i = 0; i < count; ++i) {
      const bool open = std::isnan(block[i]);
      if (open && run++ == 0) first = at + i;
      if (open) ++out.count;
      if (open || run == 0) continue;
      add(first, first + run - 1);
      run = 0;
    }
  }
  if (run > 0) add(first, first + run - 1);
  return out;
}

}  // namespace deltaproof
