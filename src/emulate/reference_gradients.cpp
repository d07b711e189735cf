// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// Groups of heads as a backward pass takes them, and the adjoint of the token recurrence on them: in fp64, and in double-doubles
// for what is itself in fp64. States are kept at every ~sqrt(T)-th token and formed again between, so memory grows as sqrt(T).
#include <algorithm>
#include <cmath>
#include <optional>
#include <type_traits>

#include "deltaproof/emulate/emulate_gradients.hpp"
#include "deltaproof/number/double_double.hpp"
#include "deltaproof/number/random.hpp"
#include "deltaproof/rule/rules.hpp"
#include "deltaproof/support/errors.hpp"
#include "emulate/inputs.hpp"
#include "emulate/step_slopes.hpp"
#include "emulate/token_passes.hpp"
#include "support/widest_vectors.hpp"

namespace deltaproof {

namespace {

using emulation_detail::head_rows;
using emulation_detail::move_all;
using emulation_detail::step_slopes;

/// One head in the recurrence's own terms: q and k normalised, effective steps, decays. Rows of keys are padded.
template <class S>
struct plain_head {
  const gradient_head& given;
  matrix<double> q, k, decay;
  std::vector<double> step;
  std::vector<step_slopes> slopes;

  explicit plain_head(const gradient_head& of)
      : given{of},
        q{padded<S>(of.in.q)},
        k{padded<S>(of.in.k)},
        decay(of.in.gated() ? of.in.tokens() : 0, padded<S>(of.in.key_dim()), 1.0),
        step(of.in.rows()) {
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
    for (std::size_t t = 0; t < decay.rows(); ++t) {
      const auto gates = in.g.row(t);
      for (std::size_t i = 0; i < in.key_dim(); ++i) decay(t, i) = i < gates.size() ? std::exp(gates[i]) : decay(t, 0);
    }
    for (std::size_t r = 0; r < in.rows(); ++r) {
      double norm = 0;
      for (const double x : k.row(r)) norm += x * x;
      slopes.push_back(emulation_detail::slopes_of_step(in, in.beta[r], norm));
      step[r] = emulation_detail::reference_step(in, in.beta[r], norm);
    }
  }
};

template <class S>
matrix<S> unpadded(matrix<S> m, std::size_t cols) {
  if (m.cols() == cols) return m;
  matrix<S> out(m.rows(), cols);
  for (std::size_t i = 0; i < m.rows(); ++i) std::copy_n(m.row(i).begin(), cols, out.row(i).begin());
  return out;
}

template <class S>
struct plain_gradients {
  matrix<S> dq, dk, dv, dg, d_state;
  std::vector<S> d_step;
  matrix<S> o, final_state;
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
        q_{h.q},
        k_{h.k},
        decay_{h.decay},
        ones_(keys_, 1.0),
        zeros_(keys_, 0.0),
        unread_(keys_),
        nowhere_(keys_) {}

  plain_gradients<S> run() {
    const std::size_t T = in_.tokens(), K = in_.key_dim(), V = in_.value_dim();
    out_ = {matrix<S>(T, keys_, S(0)),      matrix<S>(in_.rows(), keys_, S(0)),
            matrix<S>(in_.rows(), V, S(0)), matrix<S>(T, by_channel() ? keys_ : in_.g.cols(), S(0)),
            matrix<S>(K, V, S(0)),          std::vector<S>(in_.rows(), S(0)),
            matrix<S>(T, V, S(0)),          matrix<S>(K, V, S(0))};
    while (segment_ * segment_ < T) ++segment_;
    before_.resize(segment_ * in_.steps_per_token * block_);
    residual_.resize(segment_ * in_.steps_per_token);
    std::vector<S> states = by_columns(in_.state), cotangents = by_columns(h_.given.d.d_final_state);
    std::vector<std::vector<S>> starts;
    for (std::size_t token = 0; token < T; token += segment_) {
      starts.push_back(states);
      for_each_block(states, cotangents, [&] { replay<false>(token, std::min(token + segment_, T)); });
    }
    take_columns(states, out_.final_state);
    // Of one segment all columns, while its rows are near.
    for (std::size_t part = starts.size(); part-- > 0;) {
      const std::size_t token = part * segment_, last = std::min(token + segment_, T);
      for_each_block(starts[part], cotangents, [&] {
        replay<true>(token, last);
        by_channel() ? back<true>(token, last) : back<false>(token, last);
      });
    }
    take_columns(cotangents, out_.d_state);
    out_.dq = unpadded(std::move(out_.dq), K);
    out_.dk = unpadded(std::move(out_.dk), K);
    if (by_channel()) out_.dg = unpadded(std::move(out_.dg), K);
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
  void take_columns(const std::vector<S>& from, matrix<S>& to) const {
    for (std::size_t j = 0; j < to.cols(); ++j) {
      for (std::size_t i = 0; i < to.rows(); ++i) to(i, j) = from[j * keys_ + i];
    }
  }
  /// Columns [first_, first_ + columns) of a row; 0 behind the last.
  [[nodiscard]] few<S> of_row(const matrix<double>& m, std::size_t row, double scale) const {
    few<S> out;
    for (std::size_t c = 0; c < columns; ++c) out[c] = first_ + c < m.cols() ? S(m(row, first_ + c)) * S(scale) : S(0);
    return out;
  }
  [[nodiscard]] bool reads(std::size_t row) const { return row % in_.steps_per_token == in_.steps_per_token - 1; }
  /// The decays before a row of k: those of its token before the first of its rows, and none before the others.
  [[nodiscard]] const double* decays_before(std::size_t row) const {
    const bool decays = in_.gated() && row % in_.steps_per_token == 0;
    return decays ? decay_.row(row / in_.steps_per_token).data() : ones_.data();
  }

  /// Keep: the states before each write and the residuals stay, and dq is added up; otherwise o is formed, and state_ ends after
  /// the last token.
  template <bool Keep>
  void replay(std::size_t token, std::size_t last) {
    const std::size_t n = in_.steps_per_token, begin = token * n, end = last * n;
    few<S> sums{};
    step_ended<S> step{zeros_.data(), zeros_.data(), {}, {}, unread_.data(), {}};
    for (std::size_t row = begin; row <= end; ++row) {
      // The write of the row before, and the decay of this one.
      const bool writes = row > begin, read = writes && reads(row - 1), ends = row == end;
      const std::size_t token_before = read ? (row - 1) / n : 0;
      if (writes) step.k = k_.row(row - 1).data();
      if constexpr (Keep) {
        step.weight = read ? of_row(h_.given.d.d_o, token_before, in_.scale) : few<S>{};
        step.dq = read ? out_.dq.row(token_before).data() : unread_.data();
      } else {
        step.q = read ? q_.row(token_before).data() : zeros_.data();
      }
      const double* const a = ends ? ones_.data() : decays_before(row);
      const double* const next = ends ? zeros_.data() : k_.row(row).data();
      const S* const from = Keep && writes ? kept(row - 1 - begin) : state_;
      S* const to = Keep && !ends ? kept(row - begin) : state_;
      detail::in_widest_vectors(
          [&]() __attribute__((always_inline)) { forward_pass<Keep, S>(keys_, step, a, next, from, to, sums); });
      for (std::size_t c = 0; !Keep && read && first_ + c < in_.value_dim() && c < columns; ++c)
        out_.o(token_before, first_ + c) = step.read[c] * S(in_.scale);
      if (ends) break;
      const few<S> v = of_row(in_.v, row, 1);
      for (std::size_t c = 0; c < columns; ++c) {
        const S residual = v[c] - sums[c];
        if constexpr (Keep) residual_[row - begin][c] = residual;
        step.change[c] = S(h_.step[row]) * residual;
      }
    }
  }
  [[nodiscard]] bool by_channel() const { return in_.g.cols() > 1; }
  [[nodiscard]] S* kept(std::size_t row) { return before_.data() + row * block_; }

  template <bool ByChannel>
  void back(std::size_t token, std::size_t last) {
    const std::size_t n = in_.steps_per_token, begin = token * n, end = last * n;
    step_behind<S> behind{zeros_.data(), ones_.data(), state_, {}, {}, nowhere_.data(), unread_.data(), S(0)};
    few<S> y{};
    for (std::size_t row = end + 1; row-- > begin;) {
      // What is left of the row after this one, and what this one reads.
      const bool begins = row == end, ends = row == begin, queries = !ends && reads(row - 1);
      const bool decays = !begins && in_.gated() && row % n == 0;
      const double* const q = queries ? q_.row((row - 1) / n).data() : zeros_.data();
      const few<S> read = queries ? of_row(h_.given.d.d_o, (row - 1) / n, in_.scale) : few<S>{};
      const double* const k = ends ? zeros_.data() : k_.row(row - 1).data();
      if (!begins) {
        const S step(h_.step[row]);
        const few<S>& residual = residual_[row - begin];
        for (std::size_t c = 0; c < columns; ++c) {
          behind.change[c] = step * residual[c];
          behind.dv[c] = step * y[c];
          if (first_ + c < in_.value_dim()) out_.dv(row, first_ + c) = behind.dv[c];
          out_.d_step[row] = out_.d_step[row] + y[c] * residual[c];
        }
        behind.k = k_.row(row).data();
        behind.a = decays_before(row);
        behind.x = kept(row - begin);
        behind.dk = out_.dk.row(row).data();
        if (ByChannel) behind.dg = decays ? out_.dg.row(row / n).data() : unread_.data();
      }
      detail::in_widest_vectors(
          [&]() __attribute__((always_inline)) { backward_pass<ByChannel, S>(keys_, behind, q, read, k, G_, y); });
      if (!ByChannel && decays) out_.dg(row / n, 0) = out_.dg(row / n, 0) + behind.total;
    }
  }

  const plain_head<S>& h_;
  const head_input& in_;
  std::size_t keys_, block_, first_ = 0, segment_ = 1;
  const matrix<double>&q_, &k_, &decay_;
  std::vector<double> ones_, zeros_;
  S *state_ = nullptr, *G_ = nullptr;  ///< of the columns at work
  std::vector<S> unread_, nowhere_, before_;
  std::vector<few<S>> residual_;
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
matrix<double> given_back(matrix<S> d, const matrix<double>* run) {
  if constexpr (std::is_same_v<S, double>) {
    if (run == nullptr) return d;
  }
  matrix<double> out(d.rows(), d.cols());
  for (std::size_t i = 0; i < d.size(); ++i) {
    const double difference = part_of(d.data()[i], run == nullptr ? 0.0 : run->data()[i]);
    out.data()[i] = run == nullptr ? -difference : difference;
  }
  return out;
}

template <class S>
group_gradients run_reference(std::span<const gradient_head> group, const group_gradients* run) {
  if (group.empty()) throw domain_error("reference_group_gradients: the group has no heads; give at least one head");
  group_gradients out;
  matrix<S> dq, dk;
  std::optional<plain_head<S>> first;
  for (std::size_t head = 0; head < group.size(); ++head) {
    std::optional<plain_head<S>> other;
    const plain_head<S>& plain = (head == 0 ? first : other).emplace(group[head]);
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
    one.dv = given_back(std::move(d.dv), of == nullptr ? nullptr : &of->dv);
    const matrix<double> run_beta = of == nullptr ? matrix<double>() : matrix<double>(in.rows(), 1, of->dbeta);
    const matrix<double> beta = given_back(std::move(d_beta), of == nullptr ? nullptr : &run_beta);
    one.dbeta.assign(beta.entries().begin(), beta.entries().end());
    one.dg = given_back(std::move(d.dg), of == nullptr ? nullptr : &of->dg);
    one.dinitial_state = given_back(std::move(d.d_state), of == nullptr ? nullptr : &of->dinitial_state);
    one.forward.o = given_back(std::move(d.o), of == nullptr ? nullptr : &of->forward.o);
    one.forward.final_state = given_back(std::move(d.final_state), of == nullptr ? nullptr : &of->forward.final_state);
    out.heads.push_back(std::move(one));
    if (head == 0) {
      dq = std::move(d.dq);
      dk = std::move(d.dk);
      continue;
    }
    for (std::size_t i = 0; i < dq.size(); ++i) dq.data()[i] = dq.data()[i] + d.dq.data()[i];
    for (std::size_t i = 0; i < dk.size(); ++i) dk.data()[i] = dk.data()[i] + d.dk.data()[i];
  }
  const head_input& in = group.front().in;
  if (in.qk_l2norm) {
    through_norm(dq, in.q, first->q, in.l2norm_epsilon);
    through_norm(dk, in.k, first->k, in.l2norm_epsilon);
  }
  out.dq = given_back(std::move(dq), run == nullptr ? nullptr : &run->dq);
  out.dk = given_back(std::move(dk), run == nullptr ? nullptr : &run->dk);
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
  std::vector<gradient_head> out;
  for (std::size_t head = 0; head < group.size(); ++head) {
    const std::uint64_t own = seed + head * 0x9e3779b97f4a7c15U;
    out.push_back({perturbed(group[head].in, own, read), group[head].d});
    if (head > 0) {
      out[head].in.q = out.front().in.q;
      out[head].in.k = out.front().in.k;
    }
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
