// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// Faults of where a kernel looks: heads, sequences, their ends. They need the whole problem, not one head.
#include "emulate/faults.hpp"

namespace deltaproof::emulation_detail {
namespace {

constexpr condition several_key_heads{"several heads of k", [](const problem& p) { return p.key_heads() > 1; }};
constexpr condition grouped_heads =
    several_key_heads & condition{"more heads of v than of k", [](const problem& p) { return p.value_heads() > p.key_heads(); }};
constexpr condition gated_heads = gated & several_heads;
constexpr condition state_of_heads = with_initial_state & several_heads;
constexpr condition state_of_sequences = with_initial_state & several_sequences;
constexpr condition packed{"two or more packed sequences that are not empty", [](const problem& p) {
                             const auto all = p.sequences();
                             return !p.cu_seqlens.empty() && std::count_if(all.begin(), all.end(), [](const sequence_range& r) {
                                                               return r.tokens > 0;
                                                             }) > 1;
                           }};
constexpr condition single_token{"a sequence of one token", [](const problem& p) {
                                   const auto all = p.sequences();
                                   return std::any_of(all.begin(), all.end(),
                                                      [](const sequence_range& r) { return r.tokens == 1; });
                                 }};

/// The head of v, beta and gates after this one.
std::size_t neighbour(const problem& p, std::size_t head) { return (head + 1) % p.value_heads(); }
/// A value head that reads this key head.
std::size_t reader_of(const problem& p, std::size_t key_head) { return key_head * (p.value_heads() / p.key_heads()); }

/// The last sequence before this one that has a token.
std::optional<std::size_t> sequence_before(const problem& p, std::size_t sequence) {
  while (sequence-- > 0) {
    if (sequence_at(p, sequence).tokens > 0) return sequence;
  }
  return std::nullopt;
}

matrix<double> last_rows(const matrix<double>& m, std::size_t count) {
  matrix<double> out(count, m.cols());
  std::copy(m.entries().end() - static_cast<std::ptrdiff_t>(out.size()), m.entries().end(), out.data());
  return out;
}

/// The last tokens of a head.
head_input last_tokens(const head_input& in, std::size_t tokens) {
  head_input out = in;
  const std::size_t n = in.steps_per_token;
  out.q = last_rows(in.q, tokens);
  out.g = last_rows(in.g, tokens);
  out.k = last_rows(in.k, tokens * n);
  out.v = last_rows(in.v, tokens * n);
  out.beta.erase(out.beta.begin(), out.beta.end() - static_cast<std::ptrdiff_t>(tokens * n));
  return out;
}

/// Rows move down by those of `ahead`, which come first; as many fall off the end.
void shift_in(matrix<double>& m, const matrix<double>& ahead) {
  std::copy_backward(m.entries().begin(), m.entries().end() - static_cast<std::ptrdiff_t>(ahead.size()), m.entries().end());
  std::copy(ahead.entries().begin(), ahead.entries().end(), m.data());
}

}  // namespace

fault_table head_faults() {
  return {
      {"heads-grouped-modulo", "inputs", "value head i reads key head i mod H, not i / (HV/H)", paths::both,
       reads(grouped_heads,
             [](const problem& p, std::size_t s, std::size_t head, const plan_variant&, head_input& in) {
               const head_input other = take_head(p, s, reader_of(p, head % p.key_heads()));
               in.q = other.q;
               in.k = other.k;
             })},
      {"k-of-neighbouring-head", "inputs", "k is read from the next head", paths::both,
       reads(several_key_heads,
             [](const problem& p, std::size_t s, std::size_t head, const plan_variant&, head_input& in) {
               in.k = take_head(p, s, reader_of(p, (p.key_head(head) + 1) % p.key_heads())).k;
             })},
      {"beta-of-neighbouring-head", "inputs", "beta is read from the next head", paths::both,
       reads(several_heads, [](const problem& p, std::size_t s, std::size_t head, const plan_variant&,
                               head_input& in) { in.beta = take_head(p, s, neighbour(p, head)).beta; })},
      {"gate-of-neighbouring-head", "g_cumsum_log2", "the gate is read from the next head", paths::both,
       reads(gated_heads, [](const problem& p, std::size_t s, std::size_t head, const plan_variant&,
                             head_input& in) { in.g = take_head(p, s, neighbour(p, head)).g; })},
      {"initial-state-of-neighbouring-head", "h", "the initial state is read from the next head", paths::both,
       reads(state_of_heads, [](const problem& p, std::size_t s, std::size_t head, const plan_variant&,
                                head_input& in) { in.state = take_head(p, s, neighbour(p, head)).state; })},
      {"initial-state-of-first-sequence", "h", "every sequence starts from the initial state of the first", paths::both,
       reads(state_of_sequences, [](const problem& p, std::size_t, std::size_t head, const plan_variant&,
                                    head_input& in) { in.state = take_head(p, 0, head).state; })},
      {"state-carried-between-sequences", "h", "a packed sequence starts from the final state of the sequence before it",
       paths::both,
       reads(packed,
             [](const problem& p, std::size_t s, std::size_t head, const plan_variant& plan, head_input& in) {
               if (const auto from = sequence_before(p, s)) in.state = emulate_head(take_head(p, *from, head), plan).final_state;
             })},
      {"chunks-not-restarted", "h",
       "chunks are counted from the start of the packed tensor, not from the start of each sequence: the first chunk of a "
       "sequence also holds the last tokens of the sequence before it",
       paths::chunk,
       reads(packed,
             [](const problem& p, std::size_t s, std::size_t head, const plan_variant& plan, head_input& in) {
               const auto from = sequence_before(p, s);
               if (!from || plan.chunk == 0) return;
               const std::size_t n = p.num_householder;
               const std::size_t first_row = sequence_at(p, s).first_token * n;
               head_input ahead = take_head(p, *from, head);
               const std::size_t tokens = std::min(first_row % plan.chunk / n, ahead.tokens());
               if (tokens == 0) return;
               ahead = last_tokens(ahead, tokens);
               ahead.state = in.state;
               in.state = emulate_head(ahead, plan).final_state;
             })},
      {"cu-seqlens-off-by-one", "inputs",
       "each packed sequence but the first is read one token too early: it begins with the last token of the sequence before it",
       paths::both,
       reads(packed,
             [](const problem& p, std::size_t s, std::size_t head, const plan_variant&, head_input& in) {
               const auto from = sequence_before(p, s);
               if (!from || in.tokens() == 0) return;
               const head_input ahead = last_tokens(take_head(p, *from, head), 1);
               shift_in(in.q, ahead.q);
               shift_in(in.k, ahead.k);
               shift_in(in.v, ahead.v);
               shift_in(in.g, ahead.g);
               std::copy_backward(in.beta.begin(), in.beta.end() - static_cast<std::ptrdiff_t>(ahead.beta.size()), in.beta.end());
               std::copy(ahead.beta.begin(), ahead.beta.end(), in.beta.begin());
             })},
      {"single-token-state-lost", "final_state",
       "the final state of a sequence of one token is not updated: it stays the initial state", paths::both,
       hooks(single_token, {after(step_kind::finish,
                                  []<class Real>(site<Real>& s) {
                                    if (s.in.tokens() == 1) s.now.state = as<Real>(s.in.state);
                                  })})},
  };
}

}  // namespace deltaproof::emulation_detail
