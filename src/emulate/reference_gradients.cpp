// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// Groups of heads as a backward pass takes them, and the adjoint of the token recurrence on them: in fp64, and in double-doubles
// for what is itself in fp64. States are kept at every ~sqrt(T)-th token and formed again between, so memory grows as sqrt(T).
#include <algorithm>
#include <cmath>

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
          double sum = reference_l2norm_epsilon;
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
  [[nodiscard]] double decay_of(std::size_t token, std::size_t channel) const {
    return decay.cols() == 0 ? 1.0 : decay(token, decay.cols() == 1 ? 0 : channel);
  }
};

/// S <- S + k change^T, entry by entry; the same with a minus is a step of the adjoint.
template <class S>
void add_outer(matrix<S>& state, std::span<const double> k, const std::vector<S>& change) {
  for (std::size_t i = 0; i < state.rows(); ++i) {
    const S ki(k[i]);
    S* const row = state.row(i).data();
    for (std::size_t j = 0; j < change.size(); ++j) row[j] = row[j] + ki * change[j];
  }
}
template <class S>
std::vector<S> transposed_times(const matrix<S>& state, std::span<const double> k) {
  std::vector<S> out(state.cols(), S(0));
  for (std::size_t i = 0; i < state.rows(); ++i) {
    const S ki(k[i]);
    const S* const row = state.row(i).data();
    for (std::size_t j = 0; j < out.size(); ++j) out[j] = out[j] + ki * row[j];
  }
  return out;
}
template <class S>
S dot(const S* a, const S* b, std::size_t count) {
  S sum(0);
  for (std::size_t i = 0; i < count; ++i) sum = sum + a[i] * b[i];
  return sum;
}
/// Four partial sums, so that the compiler need not wait for each.
template <>
double dot<double>(const double* a, const double* b, std::size_t count) {
  double sums[8] = {};
  std::size_t i = 0;
  for (; i + 8 <= count; i += 8) {
    for (std::size_t lane = 0; lane < 8; ++lane) sums[lane] += a[i + lane] * b[i + lane];
  }
  double sum = 0;
  for (; i < count; ++i) sum += a[i] * b[i];
  for (const double part : sums) sum += part;
  return sum;
}

template <class S>
struct plain_gradients {
  matrix<S> dq, dk, dv, dg, d_state;
  std::vector<S> d_step;
};

template <class S>
class token_adjoint {
 public:
  explicit token_adjoint(const plain_head<S>& h) : h_{h}, in_{h.given.in} {}

  plain_gradients<S> run() {
    const std::size_t T = in_.tokens(), K = in_.key_dim(), V = in_.value_dim();
    out_ = {matrix<S>(T, K, S(0)),          matrix<S>(in_.rows(), K, S(0)),
            matrix<S>(in_.rows(), V, S(0)), matrix<S>(T, in_.g.cols(), S(0)),
            matrix<S>(K, V, S(0)),          std::vector<S>(in_.rows(), S(0))};
    const matrix<double>& last = h_.given.d.d_final_state;
    for (std::size_t i = 0; i < last.size(); ++i) out_.d_state.data()[i] = S(last.data()[i]);
    std::size_t segment = 1;
    while (segment * segment < T) ++segment;
    std::vector<matrix<S>> starts;
    matrix<S> state(K, V, S(0));
    for (std::size_t i = 0; i < state.size(); ++i) state.data()[i] = S(in_.state.data()[i]);
    for (std::size_t first = 0; first < T; first += segment) {
      starts.push_back(state);
      replay(first, std::min(first + segment, T), state, false);
    }
    for (std::size_t part = starts.size(); part-- > 0;) {
      const std::size_t first = part * segment;
      before_.clear();
      replay(first, std::min(first + segment, T), starts[part], true);
      for (std::size_t t = std::min(first + segment, T); t-- > first;) step_back(t, first);
    }
    return std::move(out_);
  }

 private:
  void replay(std::size_t first, std::size_t last, matrix<S>& state, bool keep) {
    const std::size_t n = in_.steps_per_token;
    for (std::size_t t = first; t < last; ++t) {
      decay(state, t);
      for (std::size_t row = t * n; row < (t + 1) * n; ++row) {
        if (keep) before_.push_back(state);
        std::vector<S> change = transposed_times(state, h_.k.row(row));
        for (std::size_t j = 0; j < change.size(); ++j) change[j] = S(h_.step[row]) * (S(in_.v(row, j)) - change[j]);
        add_outer(state, h_.k.row(row), change);
      }
      if (!keep) continue;
      for (std::size_t i = 0; i < state.rows(); ++i) {
        S sum(0);
        for (std::size_t j = 0; j < state.cols(); ++j) sum = sum + state(i, j) * S(h_.given.d.d_o(t, j));
        out_.dq(t, i) = sum * S(in_.scale);
      }
    }
  }
  void decay(matrix<S>& state, std::size_t t) {
    for (std::size_t i = 0; i < state.rows() && in_.gated(); ++i) {
      const S a(h_.decay_of(t, i));
      for (S& x : state.row(i)) x = x * a;
    }
  }

  void step_back(std::size_t t, std::size_t first) {
    const std::size_t n = in_.steps_per_token, K = in_.key_dim(), V = in_.value_dim();
    matrix<S>& G = out_.d_state;
    std::vector<S> read(V);
    for (std::size_t j = 0; j < V; ++j) read[j] = S(h_.given.d.d_o(t, j)) * S(in_.scale);
    add_outer(G, h_.q.row(t), read);
    for (std::size_t row = (t + 1) * n; row-- > t * n;) {
      const matrix<S>& state = before_[row - first * n];
      const auto k = h_.k.row(row);
      const std::vector<S> y = transposed_times(G, k);
      std::vector<S> residual = transposed_times(state, k), change(V), dv(V), back(V);
      const S step(h_.step[row]);
      for (std::size_t j = 0; j < V; ++j) {
        residual[j] = S(in_.v(row, j)) - residual[j];
        change[j] = step * residual[j];
        out_.dv(row, j) = dv[j] = step * y[j];
        back[j] = -dv[j];
      }
      out_.d_step[row] = dot(y.data(), residual.data(), V);
      for (std::size_t i = 0; i < K; ++i)
        out_.dk(row, i) = dot<S>(G.row(i).data(), change.data(), V) - dot<S>(state.row(i).data(), dv.data(), V);
      add_outer(G, k, back);
    }
    const matrix<S>& decayed = before_[(t - first) * n];
    for (std::size_t i = 0; i < K && in_.gated(); ++i) {
      S& sum = out_.dg(t, in_.g.cols() == 1 ? 0 : i);
      sum = sum + dot<S>(G.row(i).data(), decayed.row(i).data(), V);
    }
    decay(G, t);
  }

  const plain_head<S>& h_;
  const head_input& in_;
  std::vector<matrix<S>> before_;
  plain_gradients<S> out_;
};

/// dx = r (dy - y <dy, y>), y = r x as the recurrence read it.
template <class S>
void through_norm(matrix<S>& d, const matrix<double>& given, const matrix<double>& y) {
  for (std::size_t i = 0; i < d.rows(); ++i) {
    double squares = reference_l2norm_epsilon;
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
    through_norm(dq, first.q, plain.q);
    through_norm(dk, first.k, plain.k);
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
