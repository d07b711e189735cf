// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
#include "deltaproof/check/advise.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <mutex>

#include "check/advise_parts.hpp"
#include "deltaproof/referee/inverse_cost.hpp"
#include "deltaproof/referee/judging.hpp"
#include "deltaproof/support/errors.hpp"
#include "deltaproof/support/read_file.hpp"
#include "support/parallel.hpp"
#include "support/text.hpp"

namespace deltaproof {

namespace advise_detail {

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr std::size_t first_range = 64;  ///< tokens; each further range is as long as all before it
constexpr std::size_t first_part = 8;    ///< of the tokens: the beginning

/// |run - truth| / |truth| of rows first ... last - 1.
double relative(const matrix<double>& run, const matrix<double>& truth, std::size_t first, std::size_t last) {
  double error = 0, size = 0;
  for (std::size_t i = first * truth.cols(); i < last * truth.cols(); ++i) {
    const double e = run.data()[i] - truth.data()[i];
    error += e * e;
    size += truth.data()[i] * truth.data()[i];
  }
  if (!std::isfinite(error)) return infinity;
  return error == 0 ? 0 : size == 0 ? infinity : std::sqrt(error / size);
}

}  // namespace

looked_at::looked_at(const problem& p, std::size_t sequence, std::size_t head)
    : in_(take_head(p, sequence, head)),
      beginning_(first_tokens(in_, std::max<std::size_t>(1, in_.tokens() / first_part))),
      truth_(reference_run(in_)),
      early_(reference_run(beginning_)) {}

bool looked_at::finite() const {
  const auto all = [](const matrix<double>& m) {
    return std::all_of(m.data(), m.data() + m.size(), [](double x) { return std::isfinite(x); });
  };
  return all(truth_.o) && all(truth_.final_state);
}

run_errors looked_at::errors(const head_output& run, double limit) const {
  run_errors out;
  const std::size_t tokens = run.o.rows();
  for (std::size_t first = 0, last = first_range; first < tokens; first = last, last *= 2) {
    const double error = relative(run.o, truth_.o, first, std::min(last, tokens));
    out.worst = std::max(out.worst, error);
    if (error > limit && !out.until) out.until = first;
  }
  if (tokens < in_.tokens()) return out;
  const double state = relative(run.final_state, truth_.final_state, 0, truth_.final_state.rows());
  out.worst = std::max(out.worst, state);
  if (state > limit && !out.until) out.until = tokens;
  return out;
}

void set_limit(const looked_at& head, const plan_variant& base, const advise_options& options, advised_kind& out) {
  const head_output run = emulate_head(head.all(), base);
  const double own = head.errors(run, infinity).worst;
  if (!options.accuracy && std::isinf(own))
    throw domain_error("advise: the relative error of the unchanged plan " + out.base +
                       " is infinite (what it gives is not finite, or the exact numbers are 0), so 8 times it is no limit; name "
                       "another plan (" +
                       (out.kind == "chunk" ? "--chunk-plan" : "--recurrent-plan") + "), or give --accuracy");
  out.limit = options.accuracy.value_or(allowed_ratio * own);
  out.limit_says = options.accuracy
                       ? "as --accuracy says"
                       : "8 times the error of the unchanged plan " + out.base + " (" + detail::general(own, 3) + ")";
  out.unchanged.name = out.base;
  out.unchanged.says = "the unchanged plan";
  out.unchanged.word = own <= out.limit ? advice_word::adequate : advice_word::inadequate;
  out.unchanged.known = "emulated";
  out.unchanged.error = own;
  out.unchanged.until_token = head.errors(run, out.limit).until;
}

namespace {

advice_word word_of(double error, double limit) {
  return error <= limit / sure   ? advice_word::adequate
         : error <= limit * sure ? advice_word::borderline
                                 : advice_word::inadequate;
}

/// One candidate: by its bound, on the beginning, then on everything.
void decide(candidate& c, const looked_at& head, double limit) {
  c.choice.known = "emulated";
  c.choice.until_token.reset();
  if (head.beginning().tokens() < head.all().tokens()) {
    const run_errors early = head.errors(c.run(head.beginning()), limit);
    if (early.worst > limit * sure) {
      c.choice.error = early.worst;
      c.choice.until_token = early.until;
      c.choice.word = advice_word::inadequate;
      return;
    }
  }
  const run_errors whole = head.errors(c.run(head.all()), limit);
  c.choice.error = whole.worst;
  c.choice.until_token = whole.until;
  c.choice.word = word_of(whole.worst, limit);
}

}  // namespace

void search(const looked_at& head, std::vector<candidate> all, const advise_options& options, advised_kind& out) {
  out.grid = all.size();
  // Those of one cost stay in their order.
  for (auto next = all.begin(); next != all.end(); ++next) {
    std::rotate(std::upper_bound(all.begin(), next, *next,
                                 [](const candidate& a, const candidate& b) { return a.choice.cost() < b.choice.cost(); }),
                next, next + 1);
  }
  std::vector<candidate*> open;
  for (candidate& c : all) {
    if (!(c.bound > out.limit * sure)) {
      open.push_back(&c);
      continue;
    }
    ++out.refused_by_bounds;
    c.choice.known = "bound";
    c.choice.error = c.bound;
    if (!c.choice.until_token) c.choice.until_token = head.all().tokens();
    c.choice.word = advice_word::inadequate;
  }
  // A few at a time, so that little is run beyond what is wanted.
  std::size_t found = 0, next = 0;
  const std::size_t batch = options.threads == 0 ? std::max(1U, std::thread::hardware_concurrency()) : options.threads;
  while (found < options.wanted && next < open.size() && !(options.stop != nullptr && *options.stop)) {
    const std::size_t count = std::min(batch, open.size() - next);
    parallel_for(count, options.threads, [&](std::size_t i) { decide(*open[next + i], head, out.limit); });
    for (std::size_t i = 0; i < count; ++i) found += open[next + i]->choice.word == advice_word::adequate ? 1 : 0;
    next += count;
    if (options.progress) options.progress(out.kind.c_str(), static_cast<double>(next) / static_cast<double>(open.size()));
  }
  out.emulated = next;
  double most = next == open.size() ? infinity : 0;
  for (std::size_t i = 0; i < next; ++i) {
    if (open[i]->choice.word == advice_word::adequate) most = std::max(most, open[i]->choice.cost());
  }
  for (candidate& c : all) {
    if (c.choice.known == "emulated" || (c.choice.known == "bound" && c.choice.cost() <= most))
      out.choices.push_back(std::move(c.choice));
  }
}

std::string text_of_plan(const std::string& name) {
  return name.ends_with(".toml") ? read_file(name, plan_limit) : std::string(plan_text(name));
}

plan_variant variant_of(const std::string& text, const problem& p, path_kind path, std::size_t chunk) {
  return variants(parse_plan(text, "advise"), p, path, chunk).front();
}

}  // namespace advise_detail

using namespace advise_detail;

namespace {

/// Whether a line of TOML begins with this key, or is this section's header.
bool begins_with(std::string_view line, std::string_view word, char then) {
  line.remove_prefix(std::min(line.find_first_not_of(" \t"), line.size()));
  if (!line.starts_with(word)) return false;
  line.remove_prefix(word.size());
  line.remove_prefix(std::min(line.find_first_not_of(" \t"), line.size()));
  return then == '\0' || line.starts_with(then);
}

}  // namespace

std::string with_key(std::string text, std::string_view section, std::string_view key, std::string_view value) {
  const std::string header = "[" + std::string(section) + "]";
  const std::string line = value.empty() ? "" : std::string(key) + " = " + std::string(value) + "\n";
  if (!text.ends_with('\n')) text += '\n';
  bool inside = section.empty();
  std::size_t room = 0;  // where a new line may stand
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t next = text.find('\n', at) + 1;
    const std::string_view here = std::string_view(text).substr(at, next - at - 1);
    if (begins_with(here, "[", '\0')) {
      if (inside) break;
      inside = begins_with(here, header, '\0');
      room = next;
    } else if (inside && begins_with(here, key, '=')) {
      return text.replace(at, next - at, line);
    }
    at = next;
  }
  if (line.empty()) return text;
  return inside ? text.insert(room, line) : text + "\n" + header + "\n" + line;
}

const advised_choice* best_of(const advised_kind& kind) {
  const auto at = std::find_if(kind.choices.begin(), kind.choices.end(),
                               [](const advised_choice& c) { return c.word == advice_word::adequate; });
  return at == kind.choices.end() ? nullptr : &*at;
}

const advised_choice* refused_beside(const advised_kind& kind) {
  const advised_choice* best = best_of(kind);
  if (best == nullptr) return nullptr;
  for (const advised_choice* c = best; c != kind.choices.data();) {
    --c;
    if (c->word == advice_word::inadequate && c->known == "emulated" && !c->plan.empty()) return c;
  }
  for (const advised_choice* c = best; c != kind.choices.data();) {
    --c;
    if (c->word == advice_word::inadequate && !c->plan.empty()) return c;
  }
  return nullptr;
}

namespace {

/// The share of a state that a token keeps, in the root mean square: by its gate, and by its writes, which take b (2 - b |k|^2)
/// |k|^2 from one direction of K.
double kept_by_a_token(const head_input& in) {
  double logs = 0;
  const auto keys = static_cast<double>(in.key_dim());
  for (std::size_t r = 0; r < in.rows(); ++r) {
    double square = in.qk_l2norm ? 1 : 0, beta = in.beta[r];
    for (const double x : in.k.row(r)) square += in.qk_l2norm ? 0 : x * x;
    if (in.activation != activation_kind::none)
      beta = (in.activation == activation_kind::two_sigmoid ? 2 : 1) / (1 + std::exp(-beta));
    logs += std::log(std::clamp(1 - beta * (2 - beta * square) * square / keys, 1e-9, 1.0));
  }
  for (const double g : in.g.entries()) logs += 2 * std::max(g, -50.0) / static_cast<double>(in.g.cols());
  return std::exp(logs / (2 * static_cast<double>(in.tokens())));
}

std::string first_chunk_plan(const problem& p) {
  for (const plan* candidate : candidate_plans(p, path_kind::chunk)) {
    if (candidate->name.starts_with("fla-chunk")) return candidate->name;
  }
  return "fp32";
}

}  // namespace

advice advise(const problem& p, const advise_options& options) {
  if (options.accuracy) {
    if (const auto wrong = wrong_accuracy(*options.accuracy)) throw format_error("advise: " + *wrong);
  }
  require_threads(options.threads);
  advice out;
  double most = -1;
  const auto sequences = p.sequences();
  for (std::size_t s = 0; s < sequences.size(); ++s) {
    for (std::size_t h = 0; h < p.value_heads() && sequences[s].tokens > 0; ++h) {
      const double kept = kept_by_a_token(take_head(p, s, h));
      if (kept <= most) continue;
      most = kept;
      out.sequence = s;
      out.head = h;
    }
  }
  if (most < 0)
    throw domain_error(
        "advise: the problem has no tokens, so nothing can be emulated on it; give a problem with at least one token");
  out.tokens = sequences[out.sequence].tokens;
  out.memory = most < 1 ? -1 / std::log(most) : std::numeric_limits<double>::infinity();
  const looked_at head(p, out.sequence, out.head);
  if (!head.finite())
    throw domain_error("advise: sequence " + std::to_string(out.sequence) + ", head " + std::to_string(out.head) +
                       ": the outputs or the state are not finite even in fp64, so no choice can be adequate; deltaproof inspect "
                       "says what is unusual about the inputs");
  const auto stopped = [&] { return options.stop != nullptr && *options.stop; };
  const auto by = [&](const char* option, const std::string& named, const auto& advised) {
    try {
      out.kinds.push_back(advised());
    } catch (const format_error& e) {
      throw format_error("advise: " + (named.empty() ? "" : option + named + ": ") + e.what());
    }
  };
  by("--recurrent-plan ", options.recurrent_plan, [&] { return advise_states(p, head, options); });
  const std::string chunk_plan = options.chunk_plan.empty() ? first_chunk_plan(p) : options.chunk_plan;
  if (!stopped()) by("--chunk-plan ", options.chunk_plan, [&] { return advise_chunks(p, head, chunk_plan, options); });
  if (!stopped() && p.g) out.kinds.push_back(advise_decays(p, head, options));
  out.stopped = stopped();
  return out;
}

}  // namespace deltaproof
