// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
#include "check/identity_equations.hpp"

#include <Eigen/Core>
#include <cmath>
#include <numeric>

#include "deltaproof/oracle/measure.hpp"

namespace deltaproof::check_detail {
namespace {

/// One side less the other of one equation, term by term: a term is an input times a number of the answers.
class equation {
 public:
  equation(const answers& given, head_equations& to) : given_{given}, to_{to} {}

  void add(double coefficient, quantity x, std::size_t index) {
    const double value = given_.value[x][index], term = coefficient * value;
    residual_ += static_cast<long double>(coefficient) * static_cast<long double>(value);
    to_.squares[x] += term * term;
    const double stored = coefficient * coefficient * given_.rounding(x, index);
    rounding_ += stored;
    variance_ += stored + coefficient * coefficient * given_.off(x, index);
  }
  /// sum over i < count of coefficient[i] answers[index + i], times `factor`.
  void add(double factor, const double* coefficient, quantity x, std::size_t index, std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) add(factor * coefficient[i], x, index + i);
  }
  void close() {
    to_.residual.push_back(static_cast<double>(residual_));
    to_.expected.push_back(variance_);
    to_.expected_sum += variance_;
    to_.rounding_sum += rounding_;
    residual_ = 0;
    rounding_ = variance_ = 0;
  }

 private:
  const answers& given_;
  head_equations& to_;
  long double residual_ = 0;
  double rounding_ = 0, variance_ = 0;
};

using rows_map =
    Eigen::Map<const Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>, 0, Eigen::OuterStride<>>;
using square_matrix = Eigen::MatrixXd;

class equation_writer {
 public:
  equation_writer(const inputs_as_doubles& asked, const answers& given)
      : p_{asked.asked},
        in_{asked},
        given_{given},
        ranges_{p_.sequences()},
        n_{p_.num_householder},
        K_{p_.key_dim()},
        V_{p_.value_dim()},
        H_{p_.key_heads()},
        HV_{p_.value_heads()},
        reads_by_q_{!given.has(of_o) && H_ == HV_ && !p_.qk_l2norm && given.has(of_dq)} {}

  std::vector<identity_equations> all() {
    std::vector<identity_equations> out;
    out.push_back(formed({"I1", "q . dq = o . do, each token", {}, true, true}, lacking({of_dq}, outputs::themselves, false),
                         &equation_writer::reads));
    out.push_back(formed({"I2", "k . dk + v . dv = 2 beta dbeta, each step", {}, true, true, n_},
                         lacking({of_dk, of_dv, of_dbeta}, outputs::unread, false), &equation_writer::writes));
    out.push_back(formed({"I3", "dg_t - dg_(t+1) = o_t . do_t - v_t . dv_t, each token", {}, true, false},
                         p_.g ? lacking({of_dg, of_dv}, outputs::or_queries, true) : "the problem has no gate g",
                         &equation_writer::gates));
    out.push_back(formed({"I4", "sum v . dv + <h0, dh0> = sum o . do + <S_T, dS_T>", {}},
                         lacking({of_dv}, outputs::or_queries, true), &equation_writer::sums));
    out.push_back(formed({"I4M", "sum v dv^T + h0^T dh0 = sum o do^T + S_T^T dS_T", {}},
                         lacking({of_dv}, outputs::themselves, true), &equation_writer::value_sums));
    std::string no_rotation = p_.gate_per_channel() ? "it does not hold with a gate per channel" : "";
    if (K_ < 2) no_rotation = "K is 1";
    if (no_rotation.empty()) no_rotation = lacking({of_dq, of_dk}, outputs::unread, true);
    out.push_back(formed({"I5", "sum q dq^T + sum k dk^T + h0 dh0^T + dS_T S_T^T is symmetric", {}, false, true}, no_rotation,
                         &equation_writer::key_sums));
    return out;
  }

 private:
  /// Whether an identity reads o, or q . dq in its place.
  enum class outputs { unread, themselves, or_queries };

  /// "the result has no dk, dbeta"; empty if nothing is.
  [[nodiscard]] std::string lacking(std::initializer_list<quantity> needed, outputs read, bool states) const {
    std::string list;
    const auto need = [&](quantity x) {
      if (!given_.has(x)) list += (list.empty() ? "the result has no " : ", ") + std::string(quantity_names[x]);
    };
    for (const quantity x : needed) need(x);
    if (!in_.d_o.empty() && (read == outputs::themselves || (read == outputs::or_queries && !reads_by_q_))) need(of_o);
    if (states && !in_.d_final_state.empty()) need(of_final_state);
    if (states && !in_.initial_state.empty()) need(of_dinitial_state);
    return list;
  }

  identity_equations formed(identity_equations out, const std::string& missing,
                            void (equation_writer::*write)(const sequence_range&, std::size_t, head_equations&)) {
    out.missing = missing;
    if (!missing.empty()) return out;
    for (std::size_t s = 0; s < ranges_.size(); ++s) {
      if (ranges_[s].tokens == 0) continue;
      sequence_ = s;
      for (std::size_t h = 0; h < (out.by_key_head ? H_ : HV_); ++h) {
        head_equations of{s, h, {}, {}, 0, 0, {}};
        (this->*write)(ranges_[s], h, of);
        out.heads.push_back(std::move(of));
      }
    }
    return out;
  }

  [[nodiscard]] std::size_t first(const sequence_range& s) const { return s.batch * p_.tokens() + s.first_token; }
  [[nodiscard]] std::size_t state(std::size_t head) const { return (sequence_ * HV_ + head) * K_ * V_; }
  /// What the derivative through the kernel's own normalisation leaves of x . dx.
  [[nodiscard]] double radial(const double* x) const {
    if (!p_.qk_l2norm) return 1;
    const double square = std::inner_product(x, x + K_, x, 0.0);
    return p_.l2norm_epsilon / (square + p_.l2norm_epsilon);
  }
  /// d(2 beta dbeta) / d(dbeta of the file): 2 beta, or 2 beta divided by the derivative of the activation.
  [[nodiscard]] double step_coefficient(double beta) const {
    return p_.beta_activation == activation_kind::none ? 2 * beta : 2 * (1 + std::exp(beta));
  }
  /// factor o . do of one token and value head.
  void read_out(equation& e, double factor, std::size_t token, std::size_t head) const {
    if (in_.d_o.empty()) return;
    if (reads_by_q_) return e.add(factor, &in_.q[(token * H_ + head) * K_], of_dq, (token * H_ + head) * K_, K_);
    e.add(factor, &in_.d_o[(token * HV_ + head) * V_], of_o, (token * HV_ + head) * V_, V_);
  }
  void write_in(equation& e, double factor, std::size_t row, std::size_t head) const {
    e.add(factor, &in_.v[(row * HV_ + head) * V_], of_dv, (row * HV_ + head) * V_, V_);
  }
  void last_state(equation& e, double factor, std::size_t head) const {
    if (!in_.d_final_state.empty()) e.add(factor, &in_.d_final_state[state(head)], of_final_state, state(head), K_ * V_);
  }
  void first_state(equation& e, double factor, std::size_t head) const {
    if (!in_.initial_state.empty()) e.add(factor, &in_.initial_state[state(head)], of_dinitial_state, state(head), K_ * V_);
  }

  void reads(const sequence_range& s, std::size_t head, head_equations& to) {
    equation e(given_, to);
    for (std::size_t t = first(s); t < first(s) + s.tokens; ++t) {
      const double* q = &in_.q[(t * H_ + head) * K_];
      e.add(1, q, of_dq, (t * H_ + head) * K_, K_);
      const double left = radial(q);
      for (std::size_t of = head * (HV_ / H_); of < (head + 1) * (HV_ / H_); ++of) read_out(e, -left, t, of);
      e.close();
    }
  }
  void writes(const sequence_range& s, std::size_t head, head_equations& to) {
    equation e(given_, to);
    for (std::size_t row = first(s) * n_; row < (first(s) + s.tokens) * n_; ++row) {
      const double* k = &in_.k[(row * H_ + head) * K_];
      e.add(1, k, of_dk, (row * H_ + head) * K_, K_);
      const double left = radial(k);
      for (std::size_t of = head * (HV_ / H_); of < (head + 1) * (HV_ / H_); ++of) {
        write_in(e, left, row, of);
        e.add(-left * step_coefficient(in_.beta[row * HV_ + of]), of_dbeta, row * HV_ + of);
      }
      e.close();
    }
  }
  void gate(equation& e, double factor, std::size_t token, std::size_t head) const {
    const std::size_t width = p_.gate_per_channel() ? K_ : 1;
    for (std::size_t c = 0; c < width; ++c) e.add(factor, of_dg, (token * HV_ + head) * width + c);
  }
  void gates(const sequence_range& s, std::size_t head, head_equations& to) {
    equation e(given_, to);
    for (std::size_t t = first(s); t < first(s) + s.tokens; ++t) {
      gate(e, 1, t, head);
      if (t + 1 < first(s) + s.tokens)
        gate(e, -1, t + 1, head);
      else
        last_state(e, -1, head);
      read_out(e, -1, t, head);
      for (std::size_t row = t * n_; row < (t + 1) * n_; ++row) write_in(e, 1, row, head);
      e.close();
    }
    gate(e, 1, first(s), head);
    first_state(e, -1, head);
    e.close();
  }
  void sums(const sequence_range& s, std::size_t head, head_equations& to) {
    equation e(given_, to);
    for (std::size_t t = first(s); t < first(s) + s.tokens; ++t) {
      read_out(e, -1, t, head);
      for (std::size_t row = t * n_; row < (t + 1) * n_; ++row) write_in(e, 1, row, head);
    }
    first_state(e, 1, head);
    last_state(e, -1, head);
    e.close();
    to.expected.clear();
  }

  /// sum += factor sum over rows of coefficient^T answer (swapped: its transpose), rows `stride` apart.
  void add_products(square_matrix& sum, head_equations& to, double factor, const std::vector<double>& coefficient, quantity x,
                    std::size_t at, std::size_t rows, std::size_t width, std::size_t stride, bool off_diagonal) const {
    const auto map = [&](const std::vector<double>& from) {
      return rows_map(&from[at], static_cast<Eigen::Index>(rows), static_cast<Eigen::Index>(width),
                      Eigen::OuterStride<>(static_cast<Eigen::Index>(stride)));
    };
    const rows_map a = map(coefficient), b = map(given_.value[x]);
    sum.noalias() += factor * (a.transpose() * b);
    for (Eigen::Index i = 0; i < a.rows(); ++i) {
      double squares = a.row(i).squaredNorm(), terms = squares * b.row(i).squaredNorm(), rounding = 0, off = 0;
      for (Eigen::Index j = 0; j < a.cols(); ++j) {
        const double square = a(i, j) * a(i, j), others = squares - (off_diagonal ? square : 0);
        const std::size_t index = at + static_cast<std::size_t>(i) * stride + static_cast<std::size_t>(j);
        rounding += others * given_.rounding(x, index);
        off += others * given_.off(x, index);
        if (off_diagonal) terms -= square * b(i, j) * b(i, j);
      }
      to.squares[x] += terms;
      to.rounding_sum += rounding;
      to.expected_sum += rounding + off;
    }
  }
  void value_sums(const sequence_range& s, std::size_t head, head_equations& to) {
    square_matrix sum = square_matrix::Zero(static_cast<Eigen::Index>(V_), static_cast<Eigen::Index>(V_));
    const std::size_t t = first(s);
    add_products(sum, to, 1, in_.v, of_dv, (t * n_ * HV_ + head) * V_, s.tokens * n_, V_, HV_ * V_, false);
    if (!in_.initial_state.empty())
      add_products(sum, to, 1, in_.initial_state, of_dinitial_state, state(head), K_, V_, V_, false);
    square_matrix other = square_matrix::Zero(static_cast<Eigen::Index>(V_), static_cast<Eigen::Index>(V_));
    if (!in_.d_o.empty()) add_products(other, to, 1, in_.d_o, of_o, (t * HV_ + head) * V_, s.tokens, V_, HV_ * V_, false);
    if (!in_.d_final_state.empty()) add_products(other, to, 1, in_.d_final_state, of_final_state, state(head), K_, V_, V_, false);
    sum -= other.transpose();
    to.residual.assign(sum.data(), sum.data() + sum.size());
  }
  void key_sums(const sequence_range& s, std::size_t head, head_equations& to) {
    const auto size = static_cast<Eigen::Index>(K_);
    square_matrix sum = square_matrix::Zero(size, size);
    const std::size_t t = first(s);
    add_products(sum, to, 1, in_.q, of_dq, (t * H_ + head) * K_, s.tokens, K_, H_ * K_, true);
    add_products(sum, to, 1, in_.k, of_dk, (t * n_ * H_ + head) * K_, s.tokens * n_, K_, H_ * K_, true);
    for (std::size_t of = head * (HV_ / H_); of < (head + 1) * (HV_ / H_); ++of) {
      if (!in_.initial_state.empty()) add_states(sum, to, in_.initial_state, of_dinitial_state, of);
      if (!in_.d_final_state.empty()) add_states(sum, to, in_.d_final_state, of_final_state, of);
    }
    for (Eigen::Index j = 1; j < size; ++j) {
      for (Eigen::Index i = 0; i < j; ++i) to.residual.push_back(sum(i, j) - sum(j, i));
    }
  }
  /// sum += coefficient answer^T of a state, K x V each.
  void add_states(square_matrix& sum, head_equations& to, const std::vector<double>& coefficient, quantity x,
                  std::size_t head) const {
    const std::size_t at = state(head);
    const auto rows = static_cast<Eigen::Index>(K_), cols = static_cast<Eigen::Index>(V_);
    const rows_map a(&coefficient[at], rows, cols, Eigen::OuterStride<>(cols));
    const rows_map b(&given_.value[x][at], rows, cols, Eigen::OuterStride<>(cols));
    sum.noalias() += a * b.transpose();
    for (Eigen::Index v = 0; v < cols; ++v) {
      const double squares = a.col(v).squaredNorm();
      for (Eigen::Index k = 0; k < rows; ++k) {
        const double others = squares - a(k, v) * a(k, v);
        const std::size_t index = at + static_cast<std::size_t>(k * cols + v);
        to.squares[x] += others * b(k, v) * b(k, v);
        to.rounding_sum += others * given_.rounding(x, index);
        to.expected_sum += others * (given_.rounding(x, index) + given_.off(x, index));
      }
    }
  }

  const problem& p_;
  const inputs_as_doubles& in_;
  const answers& given_;
  std::vector<sequence_range> ranges_;
  std::size_t n_, K_, V_, H_, HV_;
  bool reads_by_q_;
  std::size_t sequence_ = 0;
};

std::vector<double> doubles_of(const std::optional<tensor>& t) { return t ? t->to_doubles() : std::vector<double>(); }

}  // namespace

inputs_as_doubles::inputs_as_doubles(const problem& p)
    : asked{p},
      q{p.q.to_doubles()},
      k{p.k.to_doubles()},
      v{p.v.to_doubles()},
      beta{p.beta.to_doubles()},
      initial_state{doubles_of(p.initial_state)},
      d_o{doubles_of(p.d_o)},
      d_final_state{doubles_of(p.d_final_state)} {}

double answers::rounding(quantity x, std::size_t i) const {
  if (!std::isfinite(value[x][i])) return 0;
  const double unit = ulp_at(value[x][i], *stored[x]);
  return unit * unit / 12;
}

double head_equations::terms() const { return std::accumulate(squares.begin(), squares.end(), 0.0); }

std::vector<identity_equations> equations_of(const inputs_as_doubles& asked, const answers& given) {
  return equation_writer(asked, given).all();
}

}  // namespace deltaproof::check_detail
