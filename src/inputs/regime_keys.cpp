// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
#include <array>
#include <bit>

#include "inputs/regime_draft.hpp"

namespace deltaproof::detail {
namespace {

// `count` unit vectors of dimension `dim`, one after the other.
class vocabulary {
 public:
  vocabulary(std::size_t count, std::size_t dim, philox& random) : dim_(dim), words_(count * dim) {
    for (std::size_t i = 0; i < count; ++i) fill_unit(std::span(words_).subspan(i * dim, dim), random);
  }
  std::span<const double> operator[](std::size_t i) const { return std::span(words_).subspan(i * dim_, dim_); }

 private:
  std::size_t dim_;
  std::vector<double> words_;
};

template <class Feature>
void feature_keys(draft& d, Feature feature) {
  philox random = d.random(stream::k);
  for (std::size_t i = 0; i < d.k.size(); i += d.key_dim) {
    const std::span<double> key = std::span(d.k).subspan(i, d.key_dim);
    fill_normal(key, random);
    for (double& x : key) x = feature(x);
    scale_to(key, 1);
  }
}

// k = sign(row) c with one c for each head.
template <class Sign>
void one_key(draft& d, Sign sign) {
  philox heads = d.random(stream::heads);
  const vocabulary directions(d.key_heads, d.key_dim, heads);
  d.for_each_key([&](std::size_t b, std::size_t row, std::size_t h, std::size_t local) {
    const std::span<double> key = d.k_at(b, row, h);
    for (std::size_t c = 0; c < d.key_dim; ++c) key[c] = sign(local) * directions[h][c];
  });
}

// One direction for each head plus noise * N(0,1) in each entry, scaled to `norm`.
void noisy_keys(draft& d, double noise, double norm) {
  philox random = d.random(stream::k);
  philox heads = d.random(stream::heads);
  const vocabulary directions(d.key_heads, d.key_dim, heads);
  d.for_each_key([&](std::size_t b, std::size_t row, std::size_t h, std::size_t) {
    const std::span<double> key = d.k_at(b, row, h);
    fill_normal(key, random);
    for (std::size_t c = 0; c < d.key_dim; ++c) key[c] = directions[h][c] + noise * key[c];
    scale_to(key, norm);
  });
}

bool task_sets_beta(const draft& d) { return d.spec.beta == beta_of_task; }

void read_with(draft& d, std::size_t b, std::size_t row, std::size_t head, std::span<const double> query) {
  if ((row + 1) % d.steps_per_token == 0) copy(query, d.q_at(b, row / d.steps_per_token, head));
}

}  // namespace

void unit_keys(draft& d) {
  philox random = d.random(stream::k);
  for (std::size_t i = 0; i < d.k.size(); i += d.key_dim) fill_unit(std::span(d.k).subspan(i, d.key_dim), random);
}

// One direction for each head, and noise that turns keys by about 3 degrees: pairs have cosine 1/(1 + 0.05^2).
void collinear_keys(draft& d) { noisy_keys(d, 0.05 / std::sqrt(static_cast<double>(d.key_dim)), 1); }

void near_repeated_keys(draft& d) { noisy_keys(d, 0.001, 1); }

// Pairs have cosine 1/(1 + 0.08/0.92) = 0.92.
void correlated_keys(draft& d) { noisy_keys(d, std::sqrt(0.08 / 0.92 / static_cast<double>(d.key_dim)), 0.9); }

void elu1_keys(draft& d) {
  feature_keys(d, [&](double x) { return x > 0 ? x + 1 : d.math.exp(x); });
}

void silu_keys(draft& d) {
  feature_keys(d, [&](double x) { return x * d.math.sigmoid(x); });
}

void repeated_keys(draft& d) {
  one_key(d, [](std::size_t) { return 1.0; });
}

void alternating_keys(draft& d) {
  one_key(d, [](std::size_t row) { return row % 2 == 0 ? 1.0 : -1.0; });
}

// Norms around the root of the epsilon, 10^-6, that kernels put under the root of their l2norm.
void tiny_keys(draft& d) {
  constexpr std::array<double, 5> norms{0, 1e-4, 1e-3, 1e-2, 1};
  unit_keys(d);
  d.qk_l2norm = true;
  d.for_each_key([&](std::size_t b, std::size_t row, std::size_t h, std::size_t local) {
    for (double& x : d.k_at(b, row, h)) x *= norms[local % norms.size()];
    if (local % d.steps_per_token == 0) {
      for (double& x : d.q_at(b, row / d.steps_per_token, h)) x *= norms[(local / d.steps_per_token + 2) % norms.size()];
    }
  });
}

// |k|^2 = 1, 4, 16, ... 1024, drawn for each key.
void huge_keys(draft& d) {
  unit_keys(d);
  philox plan = d.random(stream::plan);
  d.for_each_key([&](std::size_t b, std::size_t row, std::size_t h, std::size_t) {
    const auto factor = static_cast<double>(std::uint64_t{1} << plan.below(6));
    for (double& x : d.k_at(b, row, h)) x *= factor;
  });
}

void unit_keys_large_values(draft& d) {
  unit_keys(d);
  for (double& x : d.v) x *= 4096;
  for (double& x : d.initial_state) x *= 4096;
}

// Writes pairs in the first quarter, then asks for them in random order with beta = 0.
void recall_task(draft& d) {
  philox random = d.random(stream::k);
  philox plan = d.random(stream::plan);
  for (const sequence_range& s : d.sequences) {
    const std::size_t rows = s.tokens * d.steps_per_token;
    const std::size_t pairs = std::max<std::size_t>(1, std::min(rows / 4, d.key_dim / 2));
    for (std::size_t h = 0; h < d.key_heads; ++h) {
      const vocabulary keys(pairs, d.key_dim, random);
      for (std::size_t i = 0; i < rows; ++i) {
        const std::size_t row = s.first_token * d.steps_per_token + i;
        const bool writes = i < pairs;
        const std::size_t asked = static_cast<std::size_t>(plan.below(std::min(i + 1, pairs)));
        copy(keys[writes ? i : asked], d.k_at(s.batch, row, h));
        read_with(d, s.batch, row, h, keys[asked]);
        if (task_sets_beta(d)) d.set_beta(s.batch, row, h, writes ? 1 : 0);
      }
    }
  }
}

// Content at random places among noise with beta = 0 in the first half, then read back in order.
void copy_task(draft& d) {
  unit_keys(d);
  philox random = d.random(stream::heads);
  philox plan = d.random(stream::plan);
  for (const sequence_range& s : d.sequences) {
    const std::size_t rows = s.tokens * d.steps_per_token;
    const std::size_t half = rows / 2;
    for (std::size_t h = 0; h < d.key_heads; ++h) {
      const vocabulary places(half + 1, d.key_dim, random);
      std::size_t stored = 0;
      for (std::size_t i = 0; i < rows; ++i) {
        const std::size_t row = s.first_token * d.steps_per_token + i;
        const bool content = i < half && plan.below(2) == 0;
        if (content) copy(places[stored++], d.k_at(s.batch, row, h));
        if (i >= half) read_with(d, s.batch, row, h, places[(i - half) % std::max<std::size_t>(1, stored)]);
        if (task_sets_beta(d)) d.set_beta(s.batch, row, h, content ? 1 : 0);
      }
    }
  }
}

// A random automaton of 8 symbols, 3 successors each: the key is the symbol, the value the one after it.
void automaton_task(draft& d) {
  constexpr std::size_t symbols = 8;
  constexpr std::size_t successors = 3;
  philox random = d.random(stream::k);
  philox value_random = d.random(stream::v);
  philox plan = d.random(stream::plan);
  philox beta_random = d.random(stream::beta);
  for (const sequence_range& s : d.sequences) {
    for (std::size_t h = 0; h < d.key_heads; ++h) {
      const vocabulary keys(symbols, d.key_dim, random);
      std::vector<double> values(symbols * d.group * d.value_dim);
      fill_normal(values, value_random);
      std::array<std::size_t, symbols * successors> next{};
      for (std::size_t& symbol : next) symbol = static_cast<std::size_t>(plan.below(symbols));
      std::size_t symbol = static_cast<std::size_t>(plan.below(symbols));
      for (std::size_t i = 0; i < s.tokens * d.steps_per_token; ++i) {
        const std::size_t row = s.first_token * d.steps_per_token + i;
        const std::size_t following = next[symbol * successors + static_cast<std::size_t>(plan.below(successors))];
        copy(keys[symbol], d.k_at(s.batch, row, h));
        read_with(d, s.batch, row, h, keys[symbol]);
        for (std::size_t j = 0; j < d.group; ++j) {
          copy(std::span(values).subspan((following * d.group + j) * d.value_dim, d.value_dim),
               d.v_at(s.batch, row, h * d.group + j));
        }
        if (task_sets_beta(d)) d.set_beta(s.batch, row, h, d.math.sigmoid(2 + beta_random.normal()));
        symbol = following;
      }
    }
  }
}

// Rows of the Sylvester-Hadamard matrix over sqrt(K), integers for q, v and the initial state, steps 1/2 and 1: the state
// holds one coefficient for each key, and no more than two halvings lie between two steps of 1, so nothing is rounded.
void exact_task(draft& d) {
  philox random = d.random(stream::k);
  philox q_random = d.random(stream::q);
  philox v_random = d.random(stream::v);
  philox beta_random = d.random(stream::beta);
  const double norm = std::sqrt(static_cast<double>(d.key_dim));
  for (double& x : d.q) x = static_cast<double>(q_random.below(3)) - 1;
  for (double& x : d.v) x = static_cast<double>(v_random.below(5)) - 2;
  if (d.spec.initial_state == "normal") {
    for (double& x : d.initial_state) x = static_cast<double>(v_random.below(3)) - 1;
  }
  for (const sequence_range& s : d.sequences) {
    std::vector<int> halvings(d.value_heads * d.key_dim, 0);
    for (std::size_t i = 0; i < s.tokens * d.steps_per_token; ++i) {
      const std::size_t row = s.first_token * d.steps_per_token + i;
      for (std::size_t h = 0; h < d.key_heads; ++h) {
        const std::size_t which = static_cast<std::size_t>(random.below(d.key_dim));
        const std::span<double> key = d.k_at(s.batch, row, h);
        for (std::size_t c = 0; c < d.key_dim; ++c) key[c] = (std::popcount(which & c) % 2 == 0 ? 1.0 : -1.0) / norm;
        for (std::size_t j = 0; j < d.group && task_sets_beta(d); ++j) {
          const std::size_t head = h * d.group + j;
          int& count = halvings[head * d.key_dim + which];
          const bool halves = count < 2 && beta_random.below(2) == 0;
          count = halves ? count + 1 : 0;
          d.beta_at(s.batch, row, head) = halves ? 0.5 : 1;
        }
      }
    }
  }
}

// Every third step is 0, the next 2^-24, which every format of q holds.
void absent_steps(draft& d) {
  unit_keys(d);
  philox random = d.random(stream::beta);
  d.for_each_key([&](std::size_t b, std::size_t row, std::size_t head, std::size_t at) {
    const double drawn = d.math.sigmoid(random.normal());
    d.set_beta(b, row, head, at % 3 == 0 ? 0 : at % 3 == 1 ? 0x1p-24 : drawn);
  });
}

std::vector<double> signed_powers(std::size_t count, philox& random) {
  std::vector<double> out(count);
  for (double& x : out) {
    const int exponent = static_cast<int>(random.below(31)) - 25;
    x = std::ldexp(random.below(2) == 0 ? 1.0 : -1.0, exponent);
  }
  return out;
}

void states_of_powers(draft& d) {
  unit_keys(d);
  philox random = d.random(stream::initial_state);
  d.initial_state = signed_powers(d.initial_state.size(), random);
}

// No step writes, so that the state stays what it is: 1 on the diagonal. Rows of q have lengths 0.01, 0.1, 1 and 10 in turn.
void queries_along_outputs(draft& d) {
  unit_keys(d);
  d.qk_l2norm = true;
  std::fill(d.beta.begin(), d.beta.end(), 0.0);
  for (std::size_t i = 0; i < d.initial_state.size(); ++i) {
    const std::size_t entry = i % (d.key_dim * d.value_dim);
    d.initial_state[i] = entry / d.value_dim == entry % d.value_dim ? 1 : 0;
  }
  constexpr std::array<double, 4> lengths{0.01, 0.1, 1, 10};
  for (std::size_t row = 0; row * d.key_dim < d.q.size(); ++row)
    scale_to(std::span(d.q).subspan(row * d.key_dim, d.key_dim), lengths[row % lengths.size()]);
}

}  // namespace deltaproof::detail
