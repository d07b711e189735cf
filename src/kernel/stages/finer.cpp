// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
#include <algorithm>
#include <array>
#include <set>
#include <string>
#include <utility>

#include "deltaproof/kernel/stages.hpp"

namespace deltaproof {

namespace {

const narrowing kept{fp32, false};

bool rounds(const narrowing& n) { return n.to.precision < fp32.precision; }
bool rounds(const std::optional<format>& f) { return f && f->precision < fp32.precision; }

/// Every alternative with any of its roundings left out, after those declared. Each of `leave_out` leaves out one, and says
/// which, or nothing where the alternative does not have it.
template <class Rounding, std::size_t N>
std::vector<Rounding> with_fewer(const std::vector<Rounding>& declared, const std::array<std::string (*)(Rounding&), N>& leave_out) {
  std::vector<Rounding> out = declared;
  std::set<std::string> names;
  for (const Rounding& one : declared) {
    for (std::size_t chosen = 1; chosen < std::size_t{1} << N; ++chosen) {
      Rounding less = one;
      std::string what;
      bool all = true;
      for (std::size_t i = 0; i < N; ++i) {
        if ((chosen >> i & 1) == 0) continue;
        const std::string left = leave_out[i](less);
        all = all && !left.empty();
        what += (what.empty() ? "" : " and ") + left;
      }
      if (!all) continue;
      less.name += (less.name.empty() ? "" : ", ") + what + " not rounded";
      if (names.insert(less.name).second) out.push_back(std::move(less));
    }
  }
  return out;
}

template <class Rounding>
std::string keep_operand(Rounding& r) {
  if (!rounds(r.operand)) return {};
  r.operand = kept;
  return "operands";
}
template <class Rounding>
std::string keep_step(Rounding& r) {
  if (!rounds(r.step)) return {};
  r.step.reset();
  return "the step";
}
std::string keep_store(gram_rounding& r) {
  if (!rounds(r.store)) return {};
  r.store.reset();
  return "A";
}
std::string keep_inverse(inverse_rounding& r) {
  if (!rounds(r.merge_operand)) return {};
  r.merge_operand = kept;
  return "operands of merges";
}
std::string keep_product(scaled_rounding& r) {
  if (!(r.beta_product.precision < fp32.precision)) return {};
  r.beta_product = fp32;
  return "beta times a row";
}
std::string keep_state_operand(state_rounding& r) {
  if (!rounds(r.operand)) return {};
  if (!r.update_operand) r.update_operand = r.operand;
  r.operand = kept;
  return "w and the state";
}
std::string keep_update(state_rounding& r) {
  const bool twice = r.update == update_kind::stored_value;
  if (!twice && !rounds(r.update_operand.value_or(r.operand))) return {};
  if (twice) r.update = update_kind::value;
  r.update_operand = kept;
  return "operands of the update";
}
std::string keep_between(state_rounding& r) {
  if (!rounds(r.between_chunks)) return {};
  r.between_chunks.reset();
  return "the state between chunks";
}
std::string keep_query(output_rounding& r) {
  if (!rounds(r.query_operand.value_or(r.operand))) return {};
  r.query_operand = kept;
  return "q with its decay";
}
std::string keep_weights(output_rounding& r) {
  if (!rounds(r.operand)) return {};
  if (!r.query_operand) r.query_operand = r.operand;
  r.operand = kept;
  return "q k^T with its decay";
}

constexpr std::array<std::array<std::string_view, 3>, 2> share_a_choice{{{"A", "Aqk", ""}, {"h", "v_new", "final_state"}}};

/// Beyond its bound by more than overflow, which no rounding explains.
bool is_off(const stage_measurement& m) { return m.bad > m.nonfinite; }

}  // namespace

stage_roundings finer(const stage_roundings& declared, const std::vector<std::string>& stages) {
  const auto any = [&](std::initializer_list<std::string_view> names) {
    return std::any_of(stages.begin(), stages.end(), [&](const std::string& s) { return std::find(names.begin(), names.end(), s) != names.end(); });
  };
  using gram = std::array<std::string (*)(gram_rounding&), 3>;
  using inverse = std::array<std::string (*)(inverse_rounding&), 1>;
  using scaled = std::array<std::string (*)(scaled_rounding&), 3>;
  using state = std::array<std::string (*)(state_rounding&), 3>;
  using output = std::array<std::string (*)(output_rounding&), 2>;
  stage_roundings r = declared;
  if (any({"A", "Aqk"})) r.gram = with_fewer(r.gram, gram{keep_operand<gram_rounding>, keep_step<gram_rounding>, keep_store});
  if (any({"Ai"})) r.inverse = with_fewer(r.inverse, inverse{keep_inverse});
  if (any({"w"})) r.w = with_fewer(r.w, scaled{keep_product, keep_operand<scaled_rounding>, keep_step<scaled_rounding>});
  if (any({"u"})) r.u = with_fewer(r.u, scaled{keep_product, keep_operand<scaled_rounding>, keep_step<scaled_rounding>});
  if (any({"h", "v_new", "final_state"})) r.state = with_fewer(r.state, state{keep_state_operand, keep_update, keep_between});
  if (any({"o"})) r.output = with_fewer(r.output, output{keep_query, keep_weights});
  return r;
}

namespace {

/// What a kernel may do to every stage at once: nothing more, keep normalised rows as computed, read o from each chunk's state.
enum class everywhere { as_declared, normalised_rows_kept, output_of_each_chunk };

bool concerns(everywhere what, const problem& p, const stage_roundings& declared) {
  if (what == everywhere::normalised_rows_kept) return p.qk_l2norm && rounds(declared.l2norm_store);
  return what == everywhere::as_declared || declared.output_span > 1;
}

/// Takes from `other` each stage that is off in `report` and, with those that share its choice, nowhere off in `other`.
void take_those_that_fit(const stage_report& other, const std::string& because, stage_report& report) {
  for (stage_measurement& m : report.stages) {
    std::vector<std::string_view> together{m.name};
    for (const auto& group : share_a_choice) {
      if (std::find(group.begin(), group.end(), m.name) != group.end()) together.assign(group.begin(), group.end());
    }
    const bool fits = std::none_of(together.begin(), together.end(), [&](std::string_view name) {
      const stage_measurement* const one = other.find(name);
      return one != nullptr && is_off(*one);
    });
    if (!is_off(m) || !fits) continue;
    m = *other.find(m.name);
    m.finer = true;
    m.rounding += std::string(m.rounding.empty() || because.empty() ? "" : ", ") + because;
  }
}

}  // namespace

stage_report measure_stages_at_least(const problem& p, const result& r, const stage_roundings& declared, const stage_options& options) {
  stage_report report = measure_stages(p, r, declared, options);
  for (const everywhere what : {everywhere::as_declared, everywhere::normalised_rows_kept, everywhere::output_of_each_chunk}) {
    if (!concerns(what, p, declared)) continue;
    std::vector<std::string> off;
    for (const stage_measurement& m : report.stages) {
      if (is_off(m)) off.push_back(m.name);
    }
    if (off.empty()) break;
    stage_roundings less = finer(declared, off);
    std::string because;
    if (what == everywhere::normalised_rows_kept) {
      less.l2norm_store.reset();
      because = "normalised rows not rounded";
    } else if (what == everywhere::output_of_each_chunk) {
      less.output_span = 1;
      because = "o from the state of each chunk";
    }
    take_those_that_fit(measure_stages(p, r, less, options), because, report);
  }
  return report;
}

}  // namespace deltaproof
