// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT

#include "studies/horizon/formats.hpp"

#include "deltaproof/oracle/certify.hpp"
#include "deltaproof/scan/recurrent.hpp"
#include "studies/shared/common.hpp"
#include "studies/shared/formats.hpp"

namespace deltaproof::detail::horizon {
namespace {

constexpr std::array<regime, 4> all_regimes{{
    {"overwrite", key_kind::fresh, 1, false},
    {"vocabulary", key_kind::vocabulary, 1, false},
    {"slow", key_kind::fresh, 0x1p-6, true},
    {"reflection", key_kind::fresh, 1.96875, false},
}};

enum stream : std::uint64_t { of_keys = 11, of_choices = 12, of_values = 13, of_target = 14, of_rounding = 1000 };

std::vector<float> as_float(std::span<const double> x) {
  std::vector<float> result(x.size());
  std::transform(x.begin(), x.end(), result.begin(), [](double value) { return round_to<float>(value); });
  return result;
}

template <class S>
void compare(const matrix<S>& state, const matrix<double>& exact, executed_run& run) {
  const std::vector<double> found(state.entries().begin(), state.entries().end());
  const auto [error, kept] = shared::nearness_of(found, exact.entries());
  run.error.push_back(error);
  run.scale.push_back(kept);
}

/// Feeds tokens to `advance(k, v)` and calls `look()` at each checkpoint.
template <class Advance, class Look>
void feed(token_source source, std::span<const std::size_t> at, Advance&& advance, Look&& look) {
  std::size_t done = 0;
  for (const std::size_t target : at) {
    for (; done < target; ++done) {
      source.next();
      advance(source.k(), source.v());
    }
    look();
  }
}

template <class S, class Store>
executed_run run_rounded(const token_source& source, double b, const reference_run& exact, Store&& store) {
  const matrix<double>& shape = exact.states.front();
  recurrence<S> machine(shape.rows(), shape.cols());
  executed_run run;
  std::size_t next = 0;
  const auto convert = [](std::span<const double> x) {
    if constexpr (std::is_same_v<S, float>) {
      return as_float(x);
    } else {
      return x;
    }
  };
  feed(
      source, exact.tokens,
      [&](std::span<const double> k, std::span<const double> v) {
        machine.step(convert(k), convert(v), static_cast<S>(b));
        machine.store(store);
      },
      [&] { compare(machine.state(), exact.states[next++], run); });
  return run;
}

template <format F>
executed_run run_materialised(const token_source& source, double b, const reference_run& exact) {
  const std::size_t key_dim = exact.states.front().rows();
  matrix<float> state(exact.states.front().cols(), key_dim);  // transposed: one row for each value column
  matrix<float> transition(key_dim, key_dim);
  matrix<float> moved = state;
  executed_run run;
  std::size_t next = 0;
  const auto step = static_cast<float>(b);
  feed(
      source, exact.tokens,
      [&](std::span<const double> k, std::span<const double> v) {
        materialise<F>(k, b, transition);
        const std::vector<float> key = as_float(k), value = as_float(v);
        for (std::size_t j = 0; j < state.rows(); ++j) {
          const std::span<float> to = moved.row(j);
          std::fill(to.begin(), to.end(), 0.0F);
          // The matrix is symmetric: each entry takes its products first to last, and the inner loop is contiguous.
          for (std::size_t l = 0; l < key_dim; ++l) {
            const float factor = state(j, l);
            const std::span<const float> column = std::as_const(transition).row(l);
            for (std::size_t i = 0; i < key_dim; ++i) to[i] = to[i] + column[i] * factor;
          }
          for (std::size_t i = 0; i < key_dim; ++i) to[i] = to[i] + step * key[i] * value[j];
        }
        std::swap(state, moved);
      },
      [&] { compare(transpose(state), exact.states[next++], run); });
  return run;
}

}  // namespace

std::span<const regime> regimes() { return all_regimes; }

std::string_view name_of(execution how) {
  constexpr std::array<std::string_view, 3> names{"nearest", "stochastic", "materialised"};
  return names[static_cast<std::size_t>(how)];
}

token_source::token_source(const regime& r, std::size_t key_dim, std::size_t value_dim, std::uint64_t seed)
    : regime_(r),
      key_dim_(key_dim),
      key_random_(seed, of_keys),
      choice_random_(seed, of_choices),
      value_random_(seed, of_values),
      target_(key_dim, r.fixed_target ? value_dim : 0),
      k_(key_dim),
      v_(value_dim) {
  philox random(seed, of_target);
  for (double& w : target_.entries()) w = round_to<bf16>(random.normal()).value();
  if (r.keys == key_kind::fresh) return;
  words_.resize((r.keys == key_kind::repeated ? 1 : vocabulary_size) * key_dim);
  for (std::size_t i = 0; i < words_.size(); i += key_dim) draw_key(key_random_, std::span<double>(words_).subspan(i, key_dim));
}

void token_source::draw_key(philox& random, std::span<double> key) {
  shared::draw(random, key);
  const double length = std::sqrt(shared::squared_norm(key));
  for (double& x : key) x = round_to<bf16>(x / length).value();
}

void token_source::next() {
  if (regime_.keys == key_kind::fresh) {
    draw_key(key_random_, k_);
  } else {
    const std::size_t word = choice_random_.below(words_.size() / key_dim_);
    const auto from = std::span<const double>(words_).subspan(word * key_dim_, key_dim_);
    std::copy(from.begin(), from.end(), k_.begin());
  }
  for (std::size_t j = 0; j < v_.size(); ++j) {
    if (regime_.fixed_target) {
      double sum = 0;
      for (std::size_t i = 0; i < key_dim_; ++i) sum += k_[i] * target_(i, j);
      v_[j] = round_to<fp32>(sum).value();
    } else {
      v_[j] = round_to<bf16>(value_random_.normal()).value();
    }
  }
}

reference_run run_reference(const regime& r, std::size_t key_dim, std::size_t value_dim, std::uint64_t seed,
                            std::span<const std::size_t> at) {
  constexpr std::size_t longest_piece = 16384;
  reference_run run;
  run.tokens.assign(at.begin(), at.end());
  matrix<double> state(key_dim, value_dim);
  std::vector<double> radius(value_dim, 0.0);
  token_source source(r, key_dim, value_dim, seed);
  std::size_t done = 0;
  const auto advance = [&](std::size_t tokens) {
    lowered<double> piece;
    piece.scan = sequence<double>::zeros(tokens, 1, key_dim, value_dim);
    for (std::size_t t = 0; t < tokens; ++t) {
      source.next();
      std::copy(source.k().begin(), source.k().end(), piece.scan.k.begin() + static_cast<std::ptrdiff_t>(t * key_dim));
      std::copy(source.v().begin(), source.v().end(), piece.scan.v.begin() + static_cast<std::ptrdiff_t>(t * value_dim));
      piece.scan.step[t] = r.step;
      const double square = shared::squared_norm(source.k());
      // The sum is off by less than 2^-40; only then is no factor larger than 1.
      if (!(r.step * square <= 2 - 0x1p-30)) {
        throw domain_error("regime '" + std::string(r.name) + "' has b |k|^2 = " + std::to_string(r.step * square) +
                           " > 2 at token " + std::to_string(done + t) + "; its radius would not add up");
      }
    }
    piece.scan.initial_state = state;
    const certified<double> result = certifier<fp64_field>({}, fp64_field::unit_roundoff, piece).run({});
    state = matrix<double>(key_dim, value_dim, result.final_state);
    for (std::size_t j = 0; j < value_dim; ++j) radius[j] = (radius[j] + result.state_radius[j]) * radius_slack;
    done += tokens;
  };
  for (const std::size_t target : at) {
    while (done < target) advance(std::min(target - done, longest_piece));
    run.states.push_back(state);
    run.radius.push_back(std::sqrt(shared::squared_norm(radius)) * radius_slack);
  }
  return run;
}

executed_run run_executed(const regime& r, execution how, format state_format, const reference_run& exact, std::size_t key_dim,
                          std::size_t value_dim, std::uint64_t seed, std::uint64_t stream) {
  const token_source source(r, key_dim, value_dim, seed);
  return shared::with_kept_format(state_format, [&]<format F>() {
    if (how == execution::materialised) return run_materialised<F>(source, r.step, exact);
    if (how == execution::nearest) {
      return run_rounded<float>(source, r.step, exact, [](float x) { return static_cast<float>(round_to<F>(x).value()); });
    }
    stochastic mode(seed, of_rounding + stream);
    if constexpr (F == fp32) {
      return run_rounded<double>(source, r.step, exact, [&mode](double x) { return round_to<F>(x, mode).value(); });
    } else {
      return run_rounded<float>(source, r.step, exact,
                                [&mode](float x) { return static_cast<float>(round_to<F>(x, mode).value()); });
    }
  });
}

}  // namespace deltaproof::detail::horizon
