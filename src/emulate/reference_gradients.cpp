// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// Groups of heads as a backward pass takes them, and the adjoint of the token recurrence on them: in fp64, and in double-doubles
// for what is itself in fp64. States are kept at every ~sqrt(T)-th token and formed again between, so memory grows as sqrt(T).
#include <algorithm>
#include <array>
#include <cmath>
#include <type_traits>

#include "deltaproof/emulate/emulate_gradients.hpp"
#include "deltaproof/number/double_double.hpp"
#include "deltaproof/number/random.hpp"
#include "deltaproof/rule/rules.hpp"
#include "deltaproof/support/errors.hpp"
#include "emulate/inputs.hpp"
#include "emulate/step_slopes.hpp"
#include "support/widest_vectors.hpp"

namespace deltaproof {

namespace {

using emulation_detail::head_rows;
using emulation_detail::move_all;
using emulation_detail::step_slopes;

/// One head in the recurrence's own terms: q and k normalised, effective steps, decays.
template <class S>
struct plain_head {
  const gradient_head& given;
  matrix<double> q, k, decay;
  std::vector<double> step;
  std::vector<step_slopes> slopes;

  explicit plain_head(const gradient_head& of) : given{of}, q{of.in.q}, k{of.in.k}, decay{of.in.g}, step(of.in.rows()) {
    const head_input& in = of.in;
    if (in.qk_l2norm) {
      for (matrix<double>* m : {&q, &k}) {
        for (std::size_t i = 0; i < m->rows(); ++i) {
          double sum = in.l2norm_epsilon;
          for (const double x : m->row(i)) sum += x * x;
          for (double& x : m->row(i)) x /= std::sqrt(sum);
        }
      }
    }
    for (double& g : decay.entries()) g = std::exp(g);
    for (std::size_t r = 0; r < in.rows(); ++r) {
      double norm = 0;
      for (const double x : k.row(r)) norm += x * x;
      slopes.push_back(emulation_detail::slopes_of_step(in, in.beta[r], norm));
      step[r] = emulation_detail::reference_step(in, in.beta[r], norm);
    }
  }
};

/// Columns of a state are independent of each other: a few at a time stay in the nearest cache.
constexpr std::size_t columns = 4;
/// Partial sums, so that a sum runs in vectors; rows are filled up with zeros to a multiple of it.
template <class S>
constexpr std::size_t parts = std::is_same_v<S, double> ? 16 : 1;

template <class S>
std::size_t padded(std::size_t count) {
  return (count + parts<S> - 1) / parts<S> * parts<S>;
}
template <class S>
matrix<double> padded(const matrix<double>& m) {
  matrix<double> out(m.rows(), padded<S>(m.cols()), 0.0);
  for (std::size_t i = 0; i < m.rows(); ++i) std::copy(m.row(i).begin(), m.row(i).end(), out.row(i).begin());
  return out;
}
template <class S>
matrix<S> unpadded(const matrix<S>& m, std::size_t cols) {
  matrix<S> out(m.rows(), cols);
  for (std::size_t i = 0; i < m.rows(); ++i) std::copy_n(m.row(i).begin(), cols, out.row(i).begin());
  return out;
}

template <class S>
using few = std::array<S, columns>;

template <class S>
[[gnu::always_inline]] inline S sum_of(const S* sums) {
  S sum(0);
  for (std::size_t l = 0; l < parts<S>; ++l) sum = sum + sums[l];
  return sum;
}

// The four passes over columns of `keys` entries each, one after the other. `keys` is a multiple of parts<S>.

/// x <- a x, with a copy of it in `before` if Keep; the sums of k x.
template <bool Keep, class S>
[[gnu::always_inline]] inline void decay_and_read(std::size_t keys, const double* __restrict a, const double* __restrict k, S* x,
                                                  S* before, few<S>& sums) {
  for (std::size_t c = 0; c < columns; ++c) {
    S* __restrict const at = x + c * keys;
    S* __restrict const copy = Keep ? before + c * keys : nullptr;
    S own[parts<S>] = {};
    for (std::size_t i = 0; i < keys; i += parts<S>) {
      for (std::size_t l = 0; l < parts<S>; ++l) {
        const S decayed = at[i + l] * S(a[i + l]);
        at[i + l] = decayed;
        if constexpr (Keep) copy[i + l] = decayed;
        own[l] = own[l] + S(k[i + l]) * decayed;
      }
    }
    sums[c] = sum_of<S>(own);
  }
}

/// x <- x + k change; to <- to + x weight.
template <class S>
[[gnu::always_inline]] inline void write_and_weigh(std::size_t keys, const double* __restrict k, const few<S>& change,
                                                   const few<S>& weight, S* __restrict x, S* __restrict to) {
  for (std::size_t i = 0; i < keys; ++i) {
    S sum = to[i];
    for (std::size_t c = 0; c < columns; ++c) {
      const S written = x[c * keys + i] + S(k[i]) * change[c];
      x[c * keys + i] = written;
      sum = sum + written * weight[c];
    }
    to[i] = sum;
  }
}

/// G <- G + q read; the sums of k G and of k x.
template <class S>
[[gnu::always_inline]] inline void read_back(std::size_t keys, const double* __restrict q, const few<S>& read,
                                             const double* __restrict k, S* G, const S* x, few<S>& of_G, few<S>& of_x) {
  for (std::size_t c = 0; c < columns; ++c) {
    S* __restrict const g = G + c * keys;
    const S* __restrict const state = x + c * keys;
    const S weight = read[c];
    S first[parts<S>] = {}, second[parts<S>] = {};
    for (std::size_t i = 0; i < keys; i += parts<S>) {
      for (std::size_t l = 0; l < parts<S>; ++l) {
        const S now = g[i + l] + S(q[i + l]) * weight;
        g[i + l] = now;
        first[l] = first[l] + S(k[i + l]) * now;
        second[l] = second[l] + S(k[i + l]) * state[i + l];
      }
    }
    of_G[c] = sum_of<S>(first);
    of_x[c] = sum_of<S>(second);
  }
}

/// dk <- dk + G change - x dv; G <- G - k dv; dg <- dg + G x; G <- a G.
template <class S>
[[gnu::always_inline]] inline void write_back(std::size_t keys, const double* __restrict k, const double* __restrict a,
                                              const few<S>& change, const few<S>& dv, S* __restrict G, const S* __restrict x,
                                              S* __restrict dk, S* __restrict dg) {
  for (std::size_t i = 0; i < keys; ++i) {
    S of_k = dk[i], of_g = dg[i];
    for (std::size_t c = 0; c < columns; ++c) {
      S g = G[c * keys + i];
      const S state = x[c * keys + i];
      of_k = of_k + (g * change[c] - state * dv[c]);
      g = g - S(k[i]) * dv[c];
      of_g = of_g + g * state;
      G[c * keys + i] = g * S(a[i]);
    }
    dk[i] = of_k;
    dg[i] = of_g;
  }
}

template <class S, class Loop>
void in_vectors(const Loop& loop) {
  if constexpr (std::is_same_v<S, double>) {
    detail::in_widest_vectors(loop);
  } else {
    loop();
  }
}

template <class S>
struct plain_gradients {
  matrix<S> dq, dk, dv, dg, d_state;
  std::vector<S> d_step;
};

/// The adjoint of one head, `columns` columns of its state after the others.
template <class S>
class token_adjoint {
 public:
  explicit token_adjoint(const plain_head<S>& h)
      : h_{h},
        in_{h.given.in},
        keys_{padded<S>(in_.key_dim())},
        block_{columns * keys_},
        q_{padded<S>(h.q)},
        k_{padded<S>(h.k)},
        ones_(keys_, 1.0),
        zeros_(keys_, 0.0),
        decay_(keys_, 1.0),
        gate_(keys_),
        unread_(keys_) {}

  plain_gradients<S> run() {
    const std::size_t T = in_.tokens(), K = in_.key_dim(), V = in_.value_dim();
    out_ = {matrix<S>(T, keys_, S(0)),      matrix<S>(in_.rows(), keys_, S(0)),
            matrix<S>(in_.rows(), V, S(0)), matrix<S>(T, in_.g.cols(), S(0)),
            matrix<S>(K, V, S(0)),          std::vector<S>(in_.rows(), S(0))};
    while (segment_ * segment_ < T) ++segment_;
    before_.resize(segment_ * in_.steps_per_token * block_);
    std::vector<S> states = by_columns(in_.state), cotangents = by_columns(h_.given.d.d_final_state);
    std::vector<std::vector<S>> starts;
    for (std::size_t token = 0; token < T; token += segment_) {
      starts.push_back(states);
      for_each_block(states, cotangents, [&] { replay<false>(token, std::min(token + segment_, T)); });
    }
    // Of one segment all columns, while its rows are near.
    for (std::size_t part = starts.size(); part-- > 0;) {
      const std::size_t token = part * segment_, last = std::min(token + segment_, T);
      for_each_block(starts[part], cotangents, [&] {
        replay<true>(token, last);
        for (std::size_t t = last; t-- > token;) step_back(t, token);
      });
    }
    for (std::size_t j = 0; j < V; ++j) {
      for (std::size_t i = 0; i < K; ++i) out_.d_state(i, j) = cotangents[j * keys_ + i];
    }
    out_.dq = unpadded(out_.dq, K);
    out_.dk = unpadded(out_.dk, K);
    return std::move(out_);
  }

 private:
  template <class Visit>
  void for_each_block(std::vector<S>& states, std::vector<S>& cotangents, const Visit& visit) {
    for (first_ = 0; first_ < in_.value_dim(); first_ += columns) {
      state_ = states.data() + first_ * keys_;
      G_ = cotangents.data() + first_ * keys_;
      visit();
    }
  }

  /// Column by column, filled up with zeros to whole blocks.
  [[nodiscard]] std::vector<S> by_columns(const matrix<double>& m) const {
    std::vector<S> out((m.cols() + columns - 1) / columns * block_, S(0));
    for (std::size_t j = 0; j < m.cols(); ++j) {
      for (std::size_t i = 0; i < m.rows(); ++i) out[j * keys_ + i] = S(m(i, j));
    }
    return out;
  }
  /// Columns [first_, first_ + columns) of a row; 0 behind the last.
  [[nodiscard]] few<S> of_row(const matrix<double>& m, std::size_t row, double scale) const {
    few<S> out;
    for (std::size_t c = 0; c < columns; ++c) out[c] = first_ + c < m.cols() ? S(m(row, first_ + c)) * S(scale) : S(0);
    return out;
  }
  const double* decay_of(std::size_t token) {
    if (!in_.gated()) return ones_.data();
    if (in_.g.cols() == 1) {
      std::fill(decay_.begin(), decay_.end(), h_.decay(token, 0));
    } else {
      std::copy(h_.decay.row(token).begin(), h_.decay.row(token).end(), decay_.begin());
    }
    return decay_.data();
  }

  template <bool Keep>
  void replay(std::size_t token, std::size_t last) {
    const std::size_t n = in_.steps_per_token, begin = token * n;
    for (std::size_t row = begin; row < last * n; ++row) {
      const double* const a = row % n == 0 ? decay_of(row / n) : ones_.data();
      const double* const k = k_.row(row).data();
      S* const before = Keep ? before_.data() + (row - begin) * block_ : nullptr;
      few<S> change{};
      in_vectors<S>([&]() __attribute__((always_inline)) { decay_and_read<Keep, S>(keys_, a, k, state_, before, change); });
      const few<S> v = of_row(in_.v, row, 1);
      for (std::size_t c = 0; c < columns; ++c) change[c] = S(h_.step[row]) * (v[c] - change[c]);
      const bool reads = Keep && row % n == n - 1;
      const few<S> weight = reads ? of_row(h_.given.d.d_o, row / n, in_.scale) : few<S>{};
      S* const dq = reads ? out_.dq.row(row / n).data() : unread_.data();
      in_vectors<S>([&]() __attribute__((always_inline)) { write_and_weigh<S>(keys_, k, change, weight, state_, dq); });
    }
  }

  void step_back(std::size_t t, std::size_t token) {
    const std::size_t n = in_.steps_per_token;
    for (std::size_t row = (t + 1) * n; row-- > t * n;) {
      const bool reads = row % n == n - 1, decays = row % n == 0;
      const S* const before = before_.data() + (row - token * n) * block_;
      const double* const k = k_.row(row).data();
      const double* const q = reads ? q_.row(t).data() : zeros_.data();
      const few<S> read = of_row(h_.given.d.d_o, t, in_.scale), v = of_row(in_.v, row, 1);
      few<S> y{}, residual{}, change, dv;
      in_vectors<S>([&]() __attribute__((always_inline)) { read_back<S>(keys_, q, read, k, G_, before, y, residual); });
      const S step(h_.step[row]);
      for (std::size_t c = 0; c < columns; ++c) {
        residual[c] = v[c] - residual[c];
        change[c] = step * residual[c];
        dv[c] = step * y[c];
        if (first_ + c < in_.value_dim()) out_.dv(row, first_ + c) = dv[c];
        out_.d_step[row] = out_.d_step[row] + y[c] * residual[c];
      }
      std::fill(gate_.begin(), gate_.end(), S(0));
      const double* const a = decays ? decay_of(t) : ones_.data();
      S* const dk = out_.dk.row(row).data();
      in_vectors<S>([&]()
                        __attribute__((always_inline)) { write_back<S>(keys_, k, a, change, dv, G_, before, dk, gate_.data()); });
      if (decays && in_.gated()) add_gate(t);
    }
  }
  void add_gate(std::size_t t) {
    if (in_.g.cols() == 1) {
      S sums[parts<S>] = {};
      for (std::size_t i = 0; i < keys_; ++i) sums[i % parts<S>] = sums[i % parts<S>] + gate_[i];
      out_.dg(t, 0) = out_.dg(t, 0) + sum_of<S>(sums);
      return;
    }
    for (std::size_t i = 0; i < in_.key_dim(); ++i) out_.dg(t, i) = out_.dg(t, i) + gate_[i];
  }

  const plain_head<S>& h_;
  const head_input& in_;
  std::size_t keys_, block_, first_ = 0, segment_ = 1;
  matrix<double> q_, k_;
  std::vector<double> ones_, zeros_, decay_;
  S *state_ = nullptr, *G_ = nullptr;  ///< of the columns at work
  std::vector<S> gate_, unread_, before_;
  plain_gradients<S> out_;
};

/// dx = r (dy - y <dy, y>), y = r x as the recurrence read it.
template <class S>
void through_norm(matrix<S>& d, const matrix<double>& given, const matrix<double>& y, double epsilon) {
  for (std::size_t i = 0; i < d.rows(); ++i) {
    double squares = epsilon;
    for (const double x : given.row(i)) squares += x * x;
    const S r(1 / std::sqrt(squares));
    S along(0);
    for (std::size_t m = 0; m < d.cols(); ++m) along = along + d(i, m) * S(y(i, m));
    for (std::size_t m = 0; m < d.cols(); ++m) d(i, m) = r * (d(i, m) - S(y(i, m)) * along);
  }
}

double part_of(double x, double minus) { return minus - x; }
double part_of(const double_double& x, double minus) { return (double_double(minus) - x).hi(); }

/// `d` itself or, where there is a run, the run less it.
template <class S>
matrix<double> given_back(const matrix<S>& d, const matrix<double>* run) {
  matrix<double> out(d.rows(), d.cols());
  for (std::size_t i = 0; i < d.size(); ++i) {
    const double difference = part_of(d.data()[i], run == nullptr ? 0.0 : run->data()[i]);
    out.data()[i] = run == nullptr ? -difference : difference;
  }
  return out;
}

template <class S>
group_gradients run_reference(std::span<const gradient_head> group, const group_gradients* run) {
  if (group.empty()) throw domain_error("reference_group_gradients: a group of no heads; give at least one");
  group_gradients out;
  matrix<S> dq, dk;
  for (std::size_t head = 0; head < group.size(); ++head) {
    const plain_head<S> plain(group[head]);
    const head_input& in = group[head].in;
    plain_gradients<S> d = token_adjoint<S>(plain).run();
    matrix<S> d_beta(in.rows(), 1, S(0));
    for (std::size_t r = 0; r < in.rows(); ++r) {
      for (std::size_t m = 0; m < in.key_dim() && in.rule != rule_kind::euler; ++m)
        d.dk(r, m) = d.dk(r, m) + d.d_step[r] * S(plain.slopes[r].by_key) * S(plain.k(r, m));
      d_beta(r, 0) = d.d_step[r] * S(plain.slopes[r].by_beta);
    }
    const head_gradients* const of = run == nullptr ? nullptr : &run->heads[head];
    head_gradients one;
    one.dv = given_back(d.dv, of == nullptr ? nullptr : &of->dv);
    const matrix<double> run_beta = of == nullptr ? matrix<double>() : matrix<double>(in.rows(), 1, of->dbeta);
    const matrix<double> beta = given_back(d_beta, of == nullptr ? nullptr : &run_beta);
    one.dbeta.assign(beta.entries().begin(), beta.entries().end());
    one.dg = given_back(d.dg, of == nullptr ? nullptr : &of->dg);
    one.dinitial_state = given_back(d.d_state, of == nullptr ? nullptr : &of->dinitial_state);
    out.heads.push_back(std::move(one));
    if (head == 0) {
      dq = std::move(d.dq);
      dk = std::move(d.dk);
      continue;
    }
    for (std::size_t i = 0; i < dq.size(); ++i) dq.data()[i] = dq.data()[i] + d.dq.data()[i];
    for (std::size_t i = 0; i < dk.size(); ++i) dk.data()[i] = dk.data()[i] + d.dk.data()[i];
  }
  const head_input& first = group.front().in;
  if (first.qk_l2norm) {
    const plain_head<S> plain(group.front());
    through_norm(dq, first.q, plain.q, first.l2norm_epsilon);
    through_norm(dk, first.k, plain.k, first.l2norm_epsilon);
  }
  out.dq = given_back(dq, run == nullptr ? nullptr : &run->dq);
  out.dk = given_back(dk, run == nullptr ? nullptr : &run->dk);
  return out;
}

}  // namespace

head_cotangents take_cotangents(const problem& p, std::size_t sequence, std::size_t value_head) {
  const sequence_range range = sequence_at(p, sequence);
  head_cotangents d;
  d.d_o = matrix<double>(range.tokens, p.value_dim(), 0.0);
  d.d_o_format = p.q.element_format();
  if (p.d_o) {
    d.d_o = head_rows(*p.d_o, range.batch, range.first_token, range.tokens, value_head, p.value_dim());
    d.d_o_format = p.d_o->element_format();
  }
  d.d_final_state = matrix<double>(p.key_dim(), p.value_dim(), 0.0);
  if (p.d_final_state) {
    d.d_final_state_format = p.d_final_state->element_format();
    p.d_final_state->read((sequence * p.value_heads() + value_head) * d.d_final_state.size(),
                          {d.d_final_state.data(), d.d_final_state.size()});
  }
  return d;
}

std::vector<gradient_head> take_group(const problem& p, std::size_t sequence, std::size_t key_head) {
  const std::size_t heads = p.value_heads() / p.key_heads();
  std::vector<gradient_head> group;
  for (std::size_t head = key_head * heads; head < (key_head + 1) * heads; ++head)
    group.push_back({take_head(p, sequence, head), take_cotangents(p, sequence, head)});
  return group;
}

std::vector<gradient_head> perturbed(std::span<const gradient_head> group, std::uint64_t seed, const format& read) {
  std::vector<gradient_head> out(group.begin(), group.end());
  for (std::size_t head = 0; head < out.size(); ++head) {
    const std::uint64_t own = seed + head * 0x9e3779b97f4a7c15U;
    out[head].in = perturbed(group[head].in, own, read);
    out[head].in.q = out.front().in.q;
    out[head].in.k = out.front().in.k;
    philox draw(own, 0xd0e4);
    const auto unit = [&](const format& f) {
      const format fine = f.precision < fp32.precision ? f : fp32;
      return read.precision < fine.precision ? read : fine;
    };
    head_cotangents& d = out[head].d;
    move_all(std::span<double>(d.d_o.data(), d.d_o.size()), d.d_o_format, unit(d.d_o_format), draw);
    move_all(std::span<double>(d.d_final_state.data(), d.d_final_state.size()), d.d_final_state_format,
             unit(d.d_final_state_format), draw);
  }
  return out;
}

group_gradients reference_group_gradients(std::span<const gradient_head> group) { return run_reference<double>(group, nullptr); }

group_gradients error_of_wide_gradients(std::span<const gradient_head> group, const group_gradients& run) {
  return run_reference<double_double>(group, &run);
}

}  // namespace deltaproof
