// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
#include "check/invariant_parts.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "deltaproof/number/rounded.hpp"
#include "deltaproof/number/visit_format.hpp"
#include "support/text.hpp"

namespace deltaproof::invariant_detail {
namespace {

std::string digits(double x) { return detail::general(x, 17); }

/// "[0, 17, 2, 3]" of a flat index.
std::string index_text(const tensor& t, std::size_t flat) {
  std::vector<std::size_t> index(t.rank());
  for (std::size_t axis = t.rank(); axis-- > 0; flat /= t.dim(axis)) index[axis] = flat % t.dim(axis);
  return shape_text(index);
}

std::string value_text(const tensor& t, std::size_t flat) { return bits_of(t, flat) + " (" + digits(t.at(flat)) + ")"; }

[[noreturn]] void fail_at(const recorded_run& part, const char* name, const tensor& w, std::size_t iw, const tensor& p,
                          std::size_t ip, const char* remedy) {
  throw domain_error(part.problem_path + ": tensor " + name + " at " + index_text(p, ip) + " is " + value_text(p, ip) +
                     " where the whole has " + value_text(w, iw) + " at " + index_text(w, iw) + "; " + remedy);
}

void require_same_rows(const recorded_run& part, const char* name, const rows& w, const rows& p) {
  const auto at = first_difference(w, p);
  if (at)
    fail_at(part, name, *w.of, w.first * w.width() + *at, *p.of, p.first * p.width() + *at,
            "a part must hold the same numbers as the whole: record both from the same tensors");
}

/// A kernel that writes one value everywhere, or nothing, gives the same bits whatever it is asked.
void look_at_values(bit_comparison& to, const rows& w) {
  std::vector<double> values(w.count * w.width());
  if (values.empty()) return;
  w.of->read(w.first * w.width(), values);
  const bool first_seen = to.elements == 0;
  const double one = first_seen ? values.front() : to.only_value.value_or(0);
  const bool same =
      std::all_of(values.begin(), values.end(), [&](double x) { return x == one || (std::isnan(x) && std::isnan(one)); });
  if (first_seen) to.only_value = one;
  if (!same) to.only_value.reset();
  to.nonfinite +=
      static_cast<std::size_t>(std::count_if(values.begin(), values.end(), [](double x) { return !std::isfinite(x); }));
}

/// Adds the rows of one tensor to `to`, bit for bit. `place`: of the first row; without a token the rows are heads of a state,
/// else `steps` rows are a token.
void compare_rows(bit_comparison& to, const rows& w, const rows& p, bit_difference place, std::size_t steps = 1) {
  if (w.of->dtype() != p.of->dtype() || w.width() != p.width()) {
    to.other_format = true;
    return;
  }
  look_at_values(to, w);
  to.elements += w.count * w.width();
  if (!first_difference(w, p)) return;
  const std::size_t bytes = element_bytes(*w.of), first_w = w.first * w.width(), first_p = p.first * p.width();
  const auto a = w.bytes(), b = p.bytes();
  const std::optional<std::size_t> first_token = place.token;
  for (std::size_t i = 0; i < w.count * w.width(); ++i) {
    if (std::memcmp(a.data() + i * bytes, b.data() + i * bytes, bytes) == 0) continue;
    const double x = w.of->at(first_w + i), y = p.of->at(first_p + i);
    ++to.differing;
    if (std::isfinite(x) && std::isfinite(y)) to.largest = std::max(to.largest, std::abs(x - y));
    if (to.first) continue;
    place.whole_value = x;
    place.part_value = y;
    place.whole_bits = bits_of(*w.of, first_w + i);
    place.part_bits = bits_of(*p.of, first_p + i);
    const std::size_t row = i / w.width(), last = w.of->rank() > 3 ? w.of->dim(3) : 1;
    std::size_t rest = i % w.width() / last;
    place.element.clear();
    if (!first_token) {
      place.head = row;
      place.element = {rest, i % last};
    } else {
      place.token = *first_token + row / steps;
      place.head = rest;
      if (w.of->rank() > 3) place.element = {i % last};
    }
    to.first = place;
  }
}

}  // namespace

std::size_t element_bytes(const tensor& t) { return t.size() == 0 ? 1 : t.bytes().size() / t.size(); }

std::size_t rows::width() const {
  std::size_t n = 1;
  for (std::size_t axis = 2; axis < of->rank(); ++axis) n *= of->dim(axis);
  return n;
}

std::span<const std::byte> rows::bytes() const {
  const std::size_t row = width() * element_bytes(*of);
  return of->bytes().subspan(first * row, count * row);
}

std::optional<std::size_t> first_difference(const rows& a, const rows& b) {
  const auto x = a.bytes(), y = b.bytes();
  const auto at = std::mismatch(x.begin(), x.end(), y.begin(), y.end());
  if (at.first == x.end()) return std::nullopt;
  return static_cast<std::size_t>(at.first - x.begin()) / element_bytes(*a.of);
}

std::string bits_of(const tensor& t, std::size_t flat) {
  const std::size_t bytes = element_bytes(t);
  std::string out = "0x";
  for (std::size_t i = bytes; i-- > 0;) {
    const auto byte = std::to_integer<unsigned>(t.bytes()[flat * bytes + i]);
    out += "0123456789abcdef"[byte >> 4];
    out += "0123456789abcdef"[byte & 15];
  }
  return out;
}

void require_same_question(const recorded_run& whole, const recorded_run& part) {
  const problem &w = whole.given, &p = part.given;
  const auto same = [&](const std::string& what, const auto& a, const auto& b) {
    if (a == b) return;
    std::string left, right;
    if constexpr (std::is_convertible_v<decltype(a), double>) {
      left = digits(static_cast<double>(a));
      right = digits(static_cast<double>(b));
    } else {
      left = std::string(a);
      right = std::string(b);
    }
    throw format_error(part.problem_path + ": " + what + " is " + right + " here, but " + left + " in " + whole.problem_path +
                       "; record both runs with the same value");
  };
  same("op", name_of(w.op), name_of(p.op));
  same("rule", name_of(w.rule), name_of(p.rule));
  same("beta_activation", name_of(w.beta_activation), name_of(p.beta_activation));
  const auto word = [](bool yes) { return std::string(yes ? "true" : "false"); };
  same("qk_l2norm", word(w.qk_l2norm), word(p.qk_l2norm));
  same("l2norm_eps", w.l2norm_epsilon, p.l2norm_epsilon);
  same("scale", w.scale, p.scale);
  same("num_householder", w.num_householder, p.num_householder);
  same("H", w.key_heads(), p.key_heads());
  same("HV", w.value_heads(), p.value_heads());
  same("K", w.key_dim(), p.key_dim());
  same("V", w.value_dim(), p.value_dim());
  same("the format of q, k, v", w.q.dtype(), p.q.dtype());
  same("the format of beta", w.beta.dtype(), p.beta.dtype());
  same("the format of g", w.g ? w.g->dtype() : std::string("none"), p.g ? p.g->dtype() : std::string("none"));
  if (w.g) same("the rank of g", w.g->rank(), p.g->rank());
}

void require_sequences(const recorded_run& whole, const recorded_run& part) {
  const std::size_t w = whole.given.sequence_count(), p = part.given.sequence_count();
  if (w == p) return;
  throw shape_error(part.problem_path + ": holds " + std::to_string(p) + (p == 1 ? " sequence, and " : " sequences, and ") +
                    whole.problem_path + " holds " + std::to_string(w) +
                    "; give each part one sequence for each sequence of the whole, in the same order");
}

void require_same_tokens(const recorded_run& whole, std::size_t from, const recorded_run& part, std::size_t at,
                         std::size_t tokens) {
  const problem &w = whole.given, &p = part.given;
  const std::size_t n = w.num_householder;
  require_same_rows(part, "q", {&w.q, from, tokens}, {&p.q, at, tokens});
  require_same_rows(part, "k", {&w.k, from * n, tokens * n}, {&p.k, at * n, tokens * n});
  require_same_rows(part, "v", {&w.v, from * n, tokens * n}, {&p.v, at * n, tokens * n});
  require_same_rows(part, "beta", {&w.beta, from * n, tokens * n}, {&p.beta, at * n, tokens * n});
  if (w.g) require_same_rows(part, "g", {&*w.g, from, tokens}, {&*p.g, at, tokens});
}

void require_same_state(const recorded_run& whole, std::size_t sequence, const recorded_run& part, std::size_t at) {
  const auto &w = whole.given.initial_state, &p = part.given.initial_state;
  const std::size_t entries = whole.given.value_heads() * whole.given.key_dim() * whole.given.value_dim();
  for (std::size_t i = 0; i < entries; ++i) {
    const double x = w ? w->at(sequence * entries + i) : 0, y = p ? p->at(at * entries + i) : 0;
    const bool same = x == y && (!w || !p || std::signbit(x) == std::signbit(y));
    if (same) continue;
    if (w && p)
      fail_at(part, "initial_state", *w, sequence * entries + i, *p, at * entries + i,
              "a part must hold the same numbers as the whole: record both from the same tensors");
    throw domain_error(
        part.problem_path + ": initial_state is " +
        (p ? value_text(*p, at * entries + i) + " at " + index_text(*p, at * entries + i) + " and the whole starts from zeros"
           : "absent (zeros) and the whole starts from " + value_text(*w, sequence * entries + i) + " at " +
                 index_text(*w, sequence * entries + i)) +
        "; give both the same initial state");
  }
  if (w && p && w->dtype() != p->dtype()) {
    throw format_error(part.problem_path + ": initial_state is " + p->dtype() + " here, but " + w->dtype() + " in " +
                       whole.problem_path + "; give it the same format in the part and in the whole");
  }
}

void require_same_cotangents(const recorded_run& whole, std::size_t sequence, const recorded_run& part, std::size_t at) {
  const sequence_range ws = sequence_at(whole.given, sequence), ps = sequence_at(part.given, at);
  const std::size_t heads = whole.given.value_heads();
  const auto same = [&](const char* name, const std::optional<tensor>& w, const std::optional<tensor>& p, std::size_t from,
                        std::size_t first, std::size_t count) {
    if (w.has_value() != p.has_value())
      throw format_error(part.problem_path + ": tensor " + name + " is " + (p ? "present here, but " : "absent here, but ") +
                         (w ? "present" : "absent") + " in " + whole.problem_path +
                         "; gradients can only be compared for the same cotangents: give both runs the same " + name);
    if (!w) return;
    if (w->dtype() != p->dtype())
      throw format_error(part.problem_path + ": tensor " + name + " is " + p->dtype() + " here, but " + w->dtype() + " in " +
                         whole.problem_path + "; give it the same format in the part and in the whole");
    require_same_rows(part, name, {&*w, from, count}, {&*p, first, count});
  };
  same("do", whole.given.d_o, part.given.d_o, flat_token(whole.given, ws), flat_token(part.given, ps), ws.tokens);
  same("dfinal_state", whole.given.d_final_state, part.given.d_final_state, sequence * heads, at * heads, heads);
}

namespace {

/// The state `given` to a call is what another `left`, rounded to nearest where it is narrower; nothing given is zeros.
void require_same_values(const recorded_run& part, const char* name, const std::optional<tensor>& given, const tensor& left,
                         const std::string& whose, const char* remedy, notes_list& notes) {
  const bool narrower = given && given->dtype() != left.dtype();
  std::size_t differing = 0;
  double largest = 0;
  std::optional<std::size_t> first;
  for (std::size_t i = 0; i < left.size(); ++i) {
    const double x = left.at(i), y = given ? given->at(i) : 0;
    const double want = narrower ? round_nearest(x, given->element_format()) : x;
    if (want == y && (!given || std::signbit(want) == std::signbit(y))) continue;
    ++differing;
    largest = std::max(largest, std::abs(x - y));
    if (!first) first = i;
  }
  if (first && !given)
    throw domain_error(part.problem_path + ": " + name + " is missing, which means zeros, and the " + whose + " is not 0; set " +
                       name + " to it; " + remedy);
  if (first) {
    throw domain_error(part.problem_path + ": " + name + " is not the " + whose + ": " + std::to_string(differing) + " of " +
                       std::to_string(left.size()) + " entries differ, by up to " + detail::general(largest, 4) +
                       "; the first at " + index_text(left, *first) + ": " + value_text(*given, *first) + " here, but " +
                       value_text(left, *first) + " there; " + remedy);
  }
  if (narrower)
    notes.push_back(part.problem_path + ": " + name + " is in " + given->dtype() + ": it equals the " + left.dtype() + " " +
                    whose + ", rounded to nearest");
}

}  // namespace

void require_carried(const recorded_run& before, const recorded_run& part, notes_list& notes) {
  const std::optional<tensor> left = before.gave.final_state_kv();
  if (!left)
    throw format_error(before.result_path +
                       ": tensor final_state is missing; a split needs the state that each part but the last leaves: record it");
  require_same_values(
      part, "initial_state", part.given.initial_state, *left, "final_state of " + before.result_path,
      "start each part from the state that the part before it left, or give the parts in the order in which they ran", notes);
}

void require_handed_back(const recorded_run& whole, std::span<const recorded_run> parts, notes_list& notes) {
  const auto w = whole.given.sequences();
  std::vector<std::size_t> done(w.size(), 0);
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const recorded_run& part = parts[i];
    if (part.given.d_o.has_value() != whole.given.d_o.has_value())
      throw format_error(part.problem_path + ": tensor do is " +
                         (part.given.d_o ? "present here and absent in " : "absent here and present in ") + whole.problem_path +
                         "; gradients are compared for the same cotangents: record both from the same tensors");
    for (std::size_t s = 0; s < w.size(); ++s) {
      const sequence_range own = sequence_at(part.given, s);
      if (whole.given.d_o)
        require_same_rows(part, "do", {&*whole.given.d_o, flat_token(whole.given, w[s]) + done[s], own.tokens},
                          {&*part.given.d_o, flat_token(part.given, own), own.tokens});
      done[s] += own.tokens;
    }
    if (i + 1 < parts.size()) {
      const auto left = parts[i + 1].gave.gradients.find("dinitial_state");
      if (left == parts[i + 1].gave.gradients.end())
        throw format_error(
            parts[i + 1].result_path +
            ": gradient dinitial_state is missing; a split needs the dinitial_state of each part but the first: record it");
      require_same_values(part, "dfinal_state", part.given.d_final_state, left->second,
                          "dinitial_state of " + parts[i + 1].result_path,
                          "run the backward passes from the last part to the first, and give each part, as its dfinal_state, the "
                          "dinitial_state that the part after it returned",
                          notes);
    } else if (whole.given.d_final_state) {
      require_same_values(part, "dfinal_state", part.given.d_final_state, *whole.given.d_final_state,
                          "dfinal_state of " + whole.problem_path, "record both from the same tensors", notes);
    }
  }
}

void require_padding(const recorded_run& whole, std::size_t first, std::size_t tokens) {
  const problem& p = whole.given;
  const std::size_t n = p.num_householder, heads = p.value_heads(), K = p.key_dim();
  const auto fail = [&](const char* name, const tensor& t, std::size_t flat, const char* why) {
    throw domain_error(whole.problem_path + ": tensor " + name + " at " + index_text(t, flat) + " is " + value_text(t, flat) +
                       ", in the padding; " + why);
  };
  for (std::size_t t = first; t < first + tokens; ++t) {
    if (p.g) {
      const std::size_t width = rows{&*p.g, 0, 0}.width();
      for (std::size_t i = t * width; i < (t + 1) * width; ++i) {
        if (p.g->at(i) == 0) continue;
        if (p.raw)
          fail("g, after gate_activation,", *p.g, i,
               "a padding token must not decay the state: record g as the log decay, with gate_activation none, and set it to 0 "
               "there");
        fail("g", *p.g, i, "a padding token must not decay the state: set its g to 0");
      }
    }
    for (std::size_t row = t * n; row < (t + 1) * n; ++row) {
      for (std::size_t h = 0; h < heads; ++h) {
        const std::size_t at = row * heads + h;
        if (p.beta.at(at) == 0 && p.beta_activation == activation_kind::none) continue;
        for (std::size_t i = 0; i < K; ++i) {
          const std::size_t k = (row * p.key_heads() + p.key_head(h)) * K + i;
          if (p.k.at(k) == 0) continue;
          if (p.beta_activation != activation_kind::none)
            fail("k", p.k, k,
                 "a padding token must not change the state: set its k to 0, because beta is never 0 after beta_activation");
          fail("beta", p.beta, at, "a padding token must not write: set its beta or its k to 0");
        }
      }
    }
  }
}

void require_same_kernel(const recorded_run& whole, const recorded_run& part) {
  const result &w = whole.gave, &p = part.gave;
  const auto same = [&](const char* what, const std::string& a, const std::string& b) {
    if (a != b)
      throw format_error(part.result_path + ": " + what + " is " + b + " here, but " + a + " in " + whole.result_path +
                         "; this invariant compares bits: record both with the same kernel, path and chunk_size");
  };
  const auto chunk_size = [](const result& r) { return r.chunk_size ? std::to_string(*r.chunk_size) : "not stated"; };
  same("kernel", in_quotes(w.kernel), in_quotes(p.kernel));
  same("path", std::string(name_of(path_of(w))), std::string(name_of(path_of(p))));
  same("chunk_size", chunk_size(w), chunk_size(p));
}

void compare_o(bit_comparison& to, const recorded_run& whole, std::size_t from, const recorded_run& part, std::size_t at,
               std::size_t tokens, std::size_t part_index, std::size_t sequence, std::size_t token) {
  bit_difference place;
  place.part = part_index;
  place.sequence = sequence;
  place.token = token;
  compare_rows(to, {&whole.gave.o, from, tokens}, {&part.gave.o, at, tokens}, place);
}

void compare_state(bit_comparison& to, const recorded_run& whole, std::size_t sequence, const recorded_run& part, std::size_t at,
                   std::size_t part_index) {
  const auto w = whole.gave.final_state_kv(), p = part.gave.final_state_kv();
  if (!w || !p) return;
  bit_difference place;
  place.part = part_index;
  place.sequence = sequence;
  // [N, HV, K, V] as rows: a row is one head's state, HV of them a sequence.
  const std::size_t heads = whole.given.value_heads();
  compare_rows(to, {&*w, sequence * heads, heads}, {&*p, at * heads, heads}, place);
}

std::vector<bit_comparison> comparisons_of(const recorded_run& whole) {
  std::vector<bit_comparison> out{{"o", 0, 0, 0, false, {}}, {"final_state", 0, 0, 0, false, {}}};
  for (const auto& [name, t] : whole.gave.gradients) out.push_back({name, 0, 0, 0, false, {}});
  return out;
}

void compare_sequence(std::vector<bit_comparison>& to, const recorded_run& whole, std::size_t sequence, const recorded_run& part,
                      std::size_t at, std::size_t part_index) {
  const sequence_range w = sequence_at(whole.given, sequence), p = sequence_at(part.given, at);
  const std::size_t from = flat_token(whole.given, w), first = flat_token(part.given, p), heads = whole.given.value_heads();
  compare_o(to[0], whole, from, part, first, w.tokens, part_index, sequence, 0);
  compare_state(to[1], whole, sequence, part, at, part_index);
  for (std::size_t i = 2; i < to.size(); ++i) {
    const std::string& name = to[i].tensor;
    const auto found = part.gave.gradients.find(name);
    if (found == part.gave.gradients.end()) continue;
    const tensor &a = whole.gave.gradients.at(name), &b = found->second;
    bit_difference place;
    place.part = part_index;
    place.sequence = sequence;
    if (name == "dinitial_state") {
      compare_rows(to[i], {&a, sequence * heads, heads}, {&b, at * heads, heads}, place);
      continue;
    }
    place.token = 0;
    const std::size_t steps = name == "dq" || name == "dg" ? 1 : whole.given.num_householder;
    compare_rows(to[i], {&a, from * steps, w.tokens * steps}, {&b, first * steps, w.tokens * steps}, place, steps);
  }
}

std::string describe(const bit_comparison& c) {
  const bit_difference& d = *c.first;
  std::string text = "sequence " + std::to_string(d.sequence) + ", " + detail::head_text(c.tensor, d.head);
  if (d.token) text += ", token " + std::to_string(*d.token);
  for (std::size_t i = 0; i < d.element.size(); ++i) text += (i > 0 ? "," : ", element ") + std::to_string(d.element[i]);
  return text + ": " + d.whole_bits + " (" + digits(d.whole_value) + ") in the whole, " + d.part_bits + " (" +
         digits(d.part_value) + ") in part " + std::to_string(d.part + 1);
}

}  // namespace deltaproof::invariant_detail
