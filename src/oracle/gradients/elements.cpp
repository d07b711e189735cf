// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// With S~ the state before a step, G the cotangent of the state after it and c_t = scale d_o (formulas: scan/adjoint.hpp), and a
// vector x of K numbers for which one of these is wanted:
//   S~^T x = sum over rows before of a_s v_s + S_0^T x_0: x runs backwards through decays and steps, x <- (I - b k k^T) x, and
//   a_s = b k^T x of each row that it meets;
//   G^T x  = sum over tokens from then on of (q_s^T x) c_s + dS_T^T x_T: x runs forwards.
// So dq_i = x^T S c, dk_i = (G^T x) . w - (S~^T x) . dv, dv = b G^T k, db = (G^T k) . (v - S~^T k), dlog alpha_i = (G'^T e_i) .
// (S~^T e_i) with G' before the step, dS_0 = G_0, where x = e_i, or what the normalisation makes of it: that map is symmetric.
// Radius: proofs/notes/oracle-radius.md, "Elements by themselves".
#include "oracle/gradients/elements.hpp"

#include <algorithm>
#include <cstdint>
#include <map>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "oracle/gradients/chain.hpp"
#include "oracle/gradients/head_tokens.hpp"

namespace deltaproof {
namespace {

enum tensor_index : std::size_t { of_q, of_k, of_v, of_beta, of_g, of_initial_state };

/// A sum of rows of V numbers, each times a number (line P).
template <class Field>
class row_sum {
 public:
  using value = typename Field::value;
  using radius = typename Field::radius;

  row_sum(const Field& field, std::size_t cols)
      : field_{field}, sum_(cols, field.zero()), error_(cols, radius(0)), sizes_(cols, radius(0)) {}

  /// `size`: at least the magnitudes of the row, `rounded` once if so; `gamma` of all the terms, in units of u.
  void add(const value& a, const radius& a_error, const value* row, const radius* size, bool rounded, double gamma,
           const radius& u) {
    const radius magnitude = Field::magnitude(a);
    if (magnitude == radius(0) && a_error == radius(0)) return;
    field_.predict_row(sum_.data(), a, row, sum_.size());
    const radius times = rounded ? a_error * (1 + u) + magnitude * (gamma + 1) : a_error + magnitude * gamma;
    for (std::size_t v = 0; v < sum_.size(); ++v) {
      if (size[v] == radius(0)) continue;
      error_[v] += times * size[v];
      sizes_[v] += magnitude + size[v];
    }
    ++terms_;
  }
  [[nodiscard]] std::vector<known<Field>> numbers() {
    const double slack = detail::radius_slack * (1 + static_cast<double>(8 * terms_ + 64) * 0x1p-52);
    std::vector<known<Field>> out;
    for (std::size_t v = 0; v < sum_.size(); ++v) {
      const radius e = sizes_[v] == radius(0) ? radius(0) : error_[v] * slack + Field::underflow_unit * (1 + sizes_[v]) * slack;
      out.push_back({std::move(sum_[v]), detail::finite_or_infinite(e)});
    }
    return out;
  }

 private:
  Field field_;
  std::vector<value> sum_;
  std::vector<radius> error_, sizes_;
  std::size_t terms_ = 0;
};

/// Where a vector enters: before the first decay, before a row's step, after it.
constexpr std::size_t at_start = 0;
constexpr std::size_t before(std::size_t row) { return 2 * row + 1; }
constexpr std::size_t after(std::size_t row) { return 2 * row + 2; }
constexpr std::size_t row_at(std::size_t slot) { return slot == at_start ? 0 : (slot - 1) / 2; }

/// The vectors that run one way, each known by where it enters and what it is there.
template <class Field>
struct vectors {
  using numbers = std::vector<known<Field>>;
  enum kind : std::uint8_t { unit, key, through_query_norm, through_key_norm };
  using name = std::tuple<std::size_t, kind, std::size_t>;  // the slot first, so that they lie in the order of entry

  std::map<name, numbers> sums;  // of V numbers: S~^T x or G^T x, once they have run

  void want(std::size_t slot, kind what, std::size_t channel) { sums.try_emplace(name{slot, what, channel}); }
  [[nodiscard]] const numbers& at(std::size_t slot, kind what, std::size_t channel) const {
    return sums.find(name{slot, what, channel})->second;
  }
};

template <class Field>
class element_head {
 public:
  using value = typename Field::value;
  using radius = typename Field::radius;
  using number = known<Field>;
  using numbers = std::vector<number>;
  using kinds = vectors<Field>;

  element_head(const Field& field, int bits, const problem& p, std::size_t sequence_index, std::size_t h)
      : field_{field},
        bits_{bits},
        u_{unit_of<Field>(bits)},
        arithmetic_(field, u_),
        head_(field, bits, p, sequence_index, h),
        keys_{p.key_dim()},
        cols_{p.value_dim()},
        steps_{p.num_householder},
        tokens_{head_.tokens()},
        per_channel_{p.gate_per_channel() && keys_ > 1} {}

  /// Nothing is known of it.
  [[nodiscard]] bool underflowed() const { return head_.underflowed(); }

  /// Notes the vectors that an element needs.
  void want(const gradient_element& e) {
    const std::size_t i = e.index % keys_, line = e.index / keys_;
    switch (e.tensor) {
      case of_q:
        past_.want(after(last_row(line)), query_kind(), i);
        break;
      case of_k:
        want_step(line);
        past_.want(before(line), key_kind(), i);
        future_.want(after(line), key_kind(), i);
        break;
      case of_v:
        future_.want(after(e.index / cols_), kinds::key, 0);
        break;
      case of_beta:
        want_step(e.index);
        break;
      case of_g:
        for (const std::size_t channel : channels_of(e.index)) {
          past_.want(before(token_of_decay(e.index) * steps_), kinds::unit, channel);
          future_.want(before(token_of_decay(e.index) * steps_), kinds::unit, channel);
        }
        break;
      default:
        future_.want(at_start, kinds::unit, e.index / cols_);
    }
  }

  /// Runs them all.
  void run(const std::atomic<bool>* stop) {
    forwards(stop);
    backwards(stop);
  }

  [[nodiscard]] number result(const gradient_element& e) {
    const std::size_t i = e.index % keys_, line = e.index / keys_;
    switch (e.tensor) {
      case of_q:
        return of_query(line, i);
      case of_k:
        return of_key(line, i);
      case of_v:
        return arithmetic_.product(strength(e.index / cols_), future_.at(after(e.index / cols_), kinds::key, 0)[e.index % cols_]);
      case of_beta: {
        const number db = of_step(e.index);
        const chain_factors factors = head_.factors(e.index / steps_);
        if (factors.by_beta.empty()) return db;
        return arithmetic_.product(arithmetic_.from(factors.by_beta[e.index % steps_], bits_), db);
      }
      case of_g: {
        number sum = arithmetic_.zero();
        const std::size_t slot = before(token_of_decay(e.index) * steps_);
        for (const std::size_t channel : channels_of(e.index)) {
          sum = arithmetic_.sum(sum, dot(future_.at(slot, kinds::unit, channel), past_.at(slot, kinds::unit, channel)));
        }
        return sum;
      }
      default:
        return future_.at(at_start, kinds::unit, e.index / cols_)[e.index % cols_];
    }
  }

 private:
  [[nodiscard]] std::size_t last_row(std::size_t t) const { return (t + 1) * steps_ - 1; }
  [[nodiscard]] typename kinds::kind query_kind() const { return head_.normalises() ? kinds::through_query_norm : kinds::unit; }
  [[nodiscard]] typename kinds::kind key_kind() const { return head_.normalises() ? kinds::through_key_norm : kinds::unit; }
  [[nodiscard]] std::size_t token_of_decay(std::size_t index) const { return per_channel_ ? index / keys_ : index; }
  [[nodiscard]] std::vector<std::size_t> channels_of(std::size_t index) const {
    if (per_channel_) return {index % keys_};
    std::vector<std::size_t> all(keys_);
    for (std::size_t i = 0; i < keys_; ++i) all[i] = i;
    return all;
  }
  void want_step(std::size_t row) {
    past_.want(before(row), kinds::key, 0);
    future_.want(after(row), kinds::key, 0);
  }

  [[nodiscard]] const value* key(std::size_t row) { return head_.key(row); }
  [[nodiscard]] numbers row_of(const value* x, double relative_error) const {
    numbers out;
    for (std::size_t i = 0; i < keys_; ++i) out.push_back({x[i], Field::magnitude(x[i]) * relative_error});
    return out;
  }
  /// What enters under a name.
  [[nodiscard]] numbers start_of(const typename kinds::name& name) {
    const auto& [slot, what, channel] = name;
    const std::size_t row = row_at(slot);
    if (what == kinds::key) return row_of(key(row), head_.error().key);
    numbers x(keys_, arithmetic_.zero());
    x[channel].x = given_to(field_, 1);
    const std::size_t t = row / steps_;
    if (what == kinds::through_key_norm) {
      const number r = arithmetic_.from(head_.factors(t).key_scale[row % steps_], bits_);
      through_norm(arithmetic_, r, key(row), head_.error().key, x.data(), keys_);
    } else if (what == kinds::through_query_norm) {
      const number r = arithmetic_.from(head_.factors(t).query_scale[0], bits_);
      through_norm(arithmetic_, r, head_.query(t), head_.error().query, x.data(), keys_);
    }
    return x;
  }

  /// Vectors on their way: those of `wanted` enter in the order of their slots, or against it.
  struct running {
    certified_rows<Field> rows;
    std::vector<row_sum<Field>> sums;
    std::vector<const typename kinds::name*> names;
  };
  [[nodiscard, gnu::noinline]] running start(const vectors<Field>& wanted) const {
    const std::size_t n = wanted.sums.size();
    running out{certified_rows<Field>(field_, u_, keys_, n, std::vector<value>(keys_ * n, field_.zero())),
                std::vector<row_sum<Field>>(n, row_sum<Field>(field_, cols_)),
                {}};
    for (const auto& [name, sum] : wanted.sums) out.names.push_back(&name);
    return out;
  }
  [[gnu::noinline]] void enter(running& r, std::size_t slot) {
    auto at = std::lower_bound(r.names.begin(), r.names.end(), slot,
                               [](const typename kinds::name* a, std::size_t b) { return std::get<0>(*a) < b; });
    for (; at != r.names.end() && std::get<0>(**at) == slot; ++at) {
      std::vector<value> x;
      radius error = 0;
      for (number& one : start_of(**at)) {
        x.push_back(std::move(one.x));
        error += one.error;
      }
      r.rows.start_column(static_cast<std::size_t>(at - r.names.begin()), x.data(), error * detail::radius_slack);
    }
  }
  [[gnu::noinline]] void finish(running& r, vectors<Field>& wanted) const {
    std::size_t n = 0;
    for (auto& [name, sum] : wanted.sums) sum = r.sums[n++].numbers();
  }
  void decay(running& r, std::size_t t) {
    if (head_.decays()) r.rows.decay(head_.decay(t), per_channel_, head_.error());
  }
  /// x <- (I - b k k^T) x; with `sums`, b k^T x times the values joins the sums.
  void step(running& r, std::size_t row, bool sums) {
    const auto s = r.rows.bounds_of(key(row), head_.step(row), detail::norm_bound<Field>(key(row), keys_), head_.error(),
                                    head_.step_floor(row));
    if (s.key == radius(0)) return;
    const std::vector<value> zeros(r.names.size(), field_.zero());
    r.rows.predict(key(row));
    r.rows.innovate(zeros.data(), head_.step(row));
    if (sums) {
      const value* const values = head_.values(row);
      const std::vector<radius> sizes = sizes_of(values);
      const bool acts = !(s.step == radius(0)) || !(s.floor == radius(0));
      const double gamma = r.rows.gamma(tokens_ * steps_ + keys_);
      for (std::size_t v = 0; v < r.names.size(); ++v) {
        const radius &norm = r.rows.norm()[v], &error = r.rows.error()[v];
        if (norm == radius(0) && error == radius(0)) continue;
        radius e = r.rows.write_error(v, s, norm) + s.step_plus * s.key_plus * error;
        if (acts) e += s.under;
        r.sums[v].add(field_.negated(r.rows.written()[v]), e * detail::radius_slack, values, sizes.data(), false, gamma, u_);
      }
    }
    r.rows.update(key(row), s);
  }
  /// q^T x of token t times its cotangent joins the sums.
  void read(running& r, std::size_t t) {
    const value* q = head_.query(t);
    const radius chi = detail::norm_bound<Field>(q, keys_);
    if (chi == radius(0)) return;
    const radius chi_plus = chi * (1 + head_.error().query * u_) * detail::radius_slack;
    r.rows.predict(q);
    const double gamma = r.rows.gamma(tokens_ + keys_);
    for (std::size_t v = 0; v < r.names.size(); ++v) {
      const radius &norm = r.rows.norm()[v], &error = r.rows.error()[v];
      if (norm == radius(0) && error == radius(0)) continue;
      const radius e =
          (r.rows.gamma(keys_) + head_.error().query) * chi * norm + chi_plus * error + Field::underflow_unit * (1 + chi_plus);
      r.sums[v].add(r.rows.prediction()[v], e * detail::radius_slack, head_.cotangents(t), head_.cotangent_sizes(t), true, gamma,
                    u_);
    }
  }
  /// x^T times a matrix of K x V given numbers.
  void end(running& r, const value* matrix) const {
    const double gamma = r.rows.gamma(tokens_ * steps_ + keys_);
    for (std::size_t i = 0; i < keys_; ++i) {
      const std::vector<radius> sizes = sizes_of(matrix + i * cols_);
      for (std::size_t v = 0; v < r.names.size(); ++v) {
        r.sums[v].add(r.rows.row(i)[v], r.rows.error()[v], matrix + i * cols_, sizes.data(), false, gamma, u_);
      }
    }
  }
  [[nodiscard]] std::vector<radius> sizes_of(const value* x) const {
    std::vector<radius> out;
    for (std::size_t v = 0; v < cols_; ++v) out.push_back(Field::magnitude(x[v]));
    return out;
  }

  void forwards(const std::atomic<bool>* stop) {
    if (future_.sums.empty()) return;
    running r = start(future_);
    enter(r, at_start);
    for (std::size_t t = row_at(std::get<0>(*r.names.front())) / steps_; t < tokens_; ++t) {
      if (stop && stop->load(std::memory_order_relaxed)) return;
      decay(r, t);
      for (std::size_t row = t * steps_; row < (t + 1) * steps_; ++row) {
        enter(r, before(row));
        step(r, row, false);
        enter(r, after(row));
      }
      read(r, t);
    }
    end(r, head_.state_cotangent().data());
    finish(r, future_);
  }
  void backwards(const std::atomic<bool>* stop) {
    if (past_.sums.empty()) return;
    running r = start(past_);
    for (std::size_t t = row_at(std::get<0>(*r.names.back())) / steps_ + 1; t-- > 0;) {
      if (stop && stop->load(std::memory_order_relaxed)) return;
      for (std::size_t row = (t + 1) * steps_; row-- > t * steps_;) {
        enter(r, after(row));
        step(r, row, true);
        enter(r, before(row));
      }
      decay(r, t);
    }
    end(r, head_.start().data());
    finish(r, past_);
  }

  [[nodiscard]] number dot(const numbers& a, const numbers& b) const {
    number sum = arithmetic_.zero();
    for (std::size_t v = 0; v < a.size(); ++v) sum = arithmetic_.sum(sum, arithmetic_.product(a[v], b[v]));
    return sum;
  }
  [[nodiscard]] number strength(std::size_t row) {
    const value& b = head_.step(row);
    return {b, Field::magnitude(b) * head_.error().step + head_.step_floor(row)};
  }
  /// v - S~^T k.
  [[nodiscard]] numbers innovation(std::size_t row) {
    numbers out;
    const numbers& predicted = past_.at(before(row), kinds::key, 0);
    const value* const values = head_.values(row);
    for (std::size_t v = 0; v < cols_; ++v) {
      out.push_back(arithmetic_.difference({values[v], 0}, predicted[v]));
    }
    return out;
  }
  [[nodiscard]] number of_step(std::size_t row) { return dot(future_.at(after(row), kinds::key, 0), innovation(row)); }
  [[nodiscard]] number of_query(std::size_t t, std::size_t i) {
    numbers c;
    const value* const o = head_.cotangents(t);
    const radius* const size = head_.cotangent_sizes(t);
    for (std::size_t v = 0; v < cols_; ++v) c.push_back({o[v], size[v]});
    return dot(past_.at(after(last_row(t)), query_kind(), i), c);
  }
  [[nodiscard]] number of_key(std::size_t row, std::size_t i) {
    const number b = strength(row);
    number from_write = dot(future_.at(after(row), key_kind(), i), innovation(row));
    number from_state = dot(past_.at(before(row), key_kind(), i), future_.at(after(row), kinds::key, 0));
    number out = arithmetic_.product(b, arithmetic_.difference(from_write, from_state));
    const chain_factors factors = head_.factors(row / steps_);
    if (factors.by_key.empty()) return out;
    numbers x = start_of({after(row), key_kind(), i});
    const number along = arithmetic_.product(arithmetic_.from(factors.by_key[row % steps_], bits_), of_step(row));
    return arithmetic_.sum(out, arithmetic_.product(along, dot(x, row_of(key(row), head_.error().key))));
  }

  Field field_;
  int bits_;
  radius u_;
  known_arithmetic<Field> arithmetic_;
  head_tokens<Field> head_;
  std::size_t keys_, cols_, steps_, tokens_;
  bool per_channel_;
  vectors<Field> past_, future_;
};

template <class Field>
bool run_in(const Field& field, int bits, const problem& p, std::size_t sequence_index, std::size_t key_head,
            std::span<const gradient_element> elements, const std::atomic<bool>* stop, head_part& out) {
  using number = known<Field>;
  const auto u = unit_of<Field>(bits);
  const known_arithmetic<Field> arithmetic(field, u);
  std::vector<number> sums(elements.size(), arithmetic.zero());
  const std::size_t group = p.value_heads() / p.key_heads();
  for (std::size_t i = 0; i < group; ++i) {
    const auto adds = [&](const gradient_element& e) { return e.tensor == of_q || e.tensor == of_k || e.head == i; };
    if (std::none_of(elements.begin(), elements.end(), adds)) continue;
    const std::size_t h = key_head * group + i;
    element_head<Field> run(field, bits, p, sequence_index, h);
    if (run.underflowed()) return false;
    for (const auto& e : elements) {
      if (adds(e)) run.want(e);
    }
    const auto job = [&] { run.run(stop); };
    if constexpr (std::is_same_v<Field, pair_field>)
      in_fused_vectors(job);
    else
      job();
    if (stop && stop->load()) return false;
    for (std::size_t n = 0; n < elements.size(); ++n) {
      if (adds(elements[n])) sums[n] = arithmetic.sum(sums[n], run.result(elements[n]));
    }
  }
  out = {{}, std::vector<double>(sums.size()), {}, std::vector<double>(sums.size())};
  mpfr_value rest(std::max<mpfr_prec_t>(bits, MPFR_PREC_MIN));
  for (std::size_t n = 0; n < sums.size(); ++n) put_number<Field>(out, n, sums[n].x, sums[n].error, u, rest.get());
  return true;
}

}  // namespace

std::size_t vectors_of(const problem& p, const gradient_element& element) {
  switch (element.tensor) {
    case of_q:
    case of_v:
    case of_initial_state:
      return 1;
    case of_k:
      return 4;
    case of_beta:
      return 2;
    default:
      return p.gate_per_channel() ? 2 : 2 * p.key_dim();
  }
}

bool run_elements(const problem& p, std::size_t sequence_index, std::size_t key_head, int bits,
                  std::span<const gradient_element> elements, const std::atomic<bool>* stop, head_part& out) {
  if (bits <= 106) {
    return run_in(pair_field{}, pair_field::bits, p, sequence_index, key_head, elements, stop, out);
  }
  begin_exact_run(p);
  return run_in(mpfr_field{bits}, bits, p, sequence_index, key_head, elements, stop, out);
}

}  // namespace deltaproof

// Theorems behind this file, by their names in proofs/README.md.
// proved: algebra.adjoint_run.run_state, algebra.adjoint_run.cotangent_along, algebra.gradient_chain.norm_transposed
