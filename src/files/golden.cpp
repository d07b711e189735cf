// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
#include "deltaproof/files/golden.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <memory>
#include <span>
#include <utility>

#include "deltaproof/oracle/reference.hpp"
#include "deltaproof/support/errors.hpp"
#include "files/golden_parts.hpp"
#include "support/text.hpp"

namespace deltaproof {
namespace {

/// The bytes of one tensor as they come in; NaN where nothing came.
class stored {
 public:
  stored(const format& of, std::vector<std::size_t> shape, std::string name)
      : of_{of}, shape_{std::move(shape)}, name_{std::move(name)} {
    const tensor nan = tensor::from_doubles(of_, {1}, std::array{std::nan("")});
    width_ = nan.bytes().size();
    bytes_.reset(new std::byte[element_count(shape_) * width_]);
    for (std::size_t i = 0; i < element_count(shape_); ++i) std::memcpy(bytes_.get() + i * width_, nan.bytes().data(), width_);
  }

  /// `anew`: values replace what was known. Otherwise a NaN leaves it as it was.
  void put(std::size_t at, std::span<const double> values, bool anew) {
    const tensor row = tensor::from_doubles(of_, {values.size()}, values, name_);
    for (std::size_t i = 0; i < values.size(); ++i) {
      if (anew || !std::isnan(values[i])) std::memcpy(bytes_.get() + (at + i) * width_, row.bytes().data() + i * width_, width_);
    }
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
std::vector<stored> parts_for(const golden_request& asked, const std::vector<std::size_t>& shape, std::string_view name) {
  std::vector<stored> out;
  for (std::size_t c = 0; c < detail::part_count(asked); ++c) out.emplace_back(asked.round, shape, part_name(name, c));
  return out;
}

std::vector<tensor> taken(std::vector<stored> parts) {
  std::vector<tensor> out;
  for (stored& part : parts) out.push_back(std::move(part).take());
  return out;
}

}  // namespace

namespace detail {

question question_of(const golden_request& asked) {
  if (asked.bits != 0 && !(asked.round == fp64)) {
    throw format_error("bits = " + std::to_string(asked.bits) + " and round = " + std::string(name_of(asked.round)) +
                       " are both asked for; with bits, each value is stored as a sum of fp64 numbers, so set round to fp64, "
                       "or bits to 0");
  }
  question ask;
  ask.round_output = ask.round_state = asked.round;
  ask.parts = asked.bits == 0 ? 0 : parts_of(asked.bits);
  ask.max_bits = asked.max_bits;
  ask.always_exact = true;
  ask.threads = asked.threads;
  ask.stop = asked.stop;
  ask.progress = asked.progress;
  return ask;
}

std::size_t undecided_of(const std::map<std::string, std::size_t>& decided, std::size_t elements) {
  for (const auto& [tier, count] : decided) elements -= count;
  return elements;
}

result result_about(const golden& from, const golden_request& asked) {
  result r;
  r.kernel = "deltaproof oracle";
  r.path = path_kind::reference;
  r.producer = "deltaproof " DELTAPROOF_VERSION ", correctly rounded to " + std::string(name_of(asked.round));
  if (part_count(asked) > 1)
    r.producer += "; each value is stored as a sum of " + std::to_string(part_count(asked)) +
                  " fp64 numbers: the value correctly rounded, then what that leaves correctly rounded, and so on";
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

}  // namespace detail

golden make_golden(const problem& p, const golden_request& asked) {
  const question ask = detail::question_of(asked);
  const auto sequences = p.sequences();
  const std::size_t heads = p.value_heads(), cols = p.value_dim(), keys = p.key_dim();
  std::vector<stored> o = parts_for(asked, {p.batch(), p.tokens(), heads, cols}, "o");
  std::vector<stored> state = parts_for(asked, {sequences.size(), heads, keys, cols}, "final_state");
  double left_o = 0, left_state = 0;
  stream_sinks sinks;
  sinks.chunk = [&](const decided_chunk& c) {
    const sequence_range& range = sequences[c.sequence];
    const std::size_t first = range.batch * p.tokens() + range.first_token + c.first;
    const auto place = [&](std::size_t i) { return ((first + i / cols) * heads + c.value_head) * cols + i % cols; };
    for (std::size_t part = 0; part < o.size(); ++part) {
      const auto values = detail::part_of(c, part, c.count * cols);
      // Rows as wholes where nothing was known of them.
      for (std::size_t t = 0; t < c.count && (c.anew || !c.were_open); ++t)
        o[part].put(place(t * cols), values.subspan(t * cols, cols), c.anew);
      if (c.anew || !c.were_open) continue;
      detail::each_news(c, values, [&](std::size_t i) { o[part].put(place(i), values.subspan(i, 1), false); });
    }
  };
  sinks.head = [&](const decided_head& head) {
    const std::size_t at = (head.sequence * heads + head.value_head) * keys * cols;
    for (std::size_t part = 0; part < state.size() && !head.state.value.empty(); ++part)
      state[part].put(at, part == 0 ? head.state.value : head.state.low[part - 1], true);
    left_o = std::max(left_o, head.o_left);
    left_state = std::max(left_state, head.state_left);
  };
  reference ref = solve_by_block(p, ask, sinks);
  golden out;
  out.stopped = ref.stopped;
  if (ref.stopped) return out;
  std::vector<tensor> o_parts = taken(std::move(o)), state_parts = taken(std::move(state));
  out.o = detail::about(std::move(ref.o_decided), o_parts[0].size(), left_o, [&] { return nan_indices(o_parts.back()); });
  out.final_state = detail::about(std::move(ref.state_decided), state_parts[0].size(), left_state,
                                  [&] { return nan_indices(state_parts.back()); });
  out.o.parts = std::move(o_parts);
  out.final_state.parts = std::move(state_parts);
  out.tiers = std::move(ref.tiers);
  out.fallbacks = std::move(ref.fallbacks);
  return out;
}

result result_of(const golden& from, const golden_request& asked) {
  result r = detail::result_about(from, asked);
  r.o = from.o.parts.front();
  r.final_state = from.final_state.parts.front();
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

void detail::nan_list::end_run() {
  if (run_ == 0) return;
  std::string text = (out_.text.empty() ? "" : ",") + std::to_string(first_);
  if (run_ > 1) text += "-" + std::to_string(first_ + run_ - 1);
  if (!cut_ && out_.text.size() + text.size() > most_) {
    out_.text += ",...";
    cut_ = true;
  }
  if (!cut_) out_.text += text;
  run_ = 0;
}

void detail::nan_list::add(std::span<const double> values) {
  for (const double x : values) {
    const bool open = std::isnan(x);
    if (open && run_++ == 0) first_ = at_;
    if (open) ++out_.count;
    if (!open) end_run();
    ++at_;
  }
}

index_list detail::nan_list::finish() && {
  end_run();
  return std::move(out_);
}

index_list nan_indices(const tensor& t, std::size_t most_bytes) {
  detail::nan_list out(most_bytes);
  std::vector<double> block(std::min<std::size_t>(t.size(), 4096));
  for (std::size_t at = 0; at < t.size(); at += block.size()) {
    const std::size_t count = std::min(block.size(), t.size() - at);
    t.read(at, std::span(block).first(count));
    out.add(std::span(block).first(count));
  }
  return std::move(out).finish();
}

}  // namespace deltaproof
