// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT

#include <initializer_list>
#include <string>
#include <utility>

#include "studies/wy/cost.hpp"
#include "studies/wy/sections.hpp"

namespace deltaproof::detail::wy {
namespace {

// The head that kernels are tuned for; errors are computed on a smaller one, operations need no run.
constexpr std::uint64_t key_dim = 128;
constexpr std::uint64_t value_dim = 128;

double per_token(const operation_counts& counts, std::uint64_t tokens) {
  return static_cast<double>(counts.total()) / static_cast<double>(tokens);
}

struct agreement {
  std::uint64_t equal = 0;
  std::uint64_t cases = 0;
};

agreement compare_counts() {
  agreement result;
  const inverse_method forward = inverse_named("forward");
  for (const std::size_t tokens : std::initializer_list<std::size_t>{1, 2, 7, 16, 33, 40}) {
    for (const std::size_t k : std::initializer_list<std::size_t>{1, 3, 8}) {
      for (const std::size_t v : std::initializer_list<std::size_t>{1, 2, 5}) {
        for (const std::size_t chunk : std::initializer_list<std::size_t>{1, 2, 3, 5, 8, 16, 33}) {
          ++result.cases;
          if (counted_chunkwise(tokens, chunk, k, v, forward) == chunkwise_operations(tokens, chunk, k, v)) ++result.equal;
        }
        ++result.cases;
        if (counted_recurrent(tokens, k, v) == recurrent_operations(tokens, k, v)) ++result.equal;
      }
    }
  }
  return result;
}

figure cost_figure(const settings& size) {
  figure f;
  f.id = "cost";
  f.title = "Operations and bytes a token, K = V = 128";
  f.caption =
      "Left: + − × of the chunkwise form (forward substitution) against chunk length; the recurrence needs 6KV + 2V whatever C. "
      "Right: bytes between memory and "
      "processor, bf16 stages. The chunkwise form pays in operations, C(2K + 1.5V) + C²/6 products a token beyond those of the "
      "recurrence, for what it saves: where the state does not stay on the chip the "
      "recurrence moves it twice a token, a chunk kernel once a chunk.";
  f.alt =
      "Left, a curve that starts at the recurrence's line and rises with the chunk length. Right, bytes of the staged chunk "
      "kernel fall toward C of 64 and rise "
      "again; the recurrence with its state in memory lies two orders of magnitude above.";
  f.columns = 2;
  f.shared_x = true;
  const double last = static_cast<double>(size.chunks.back());
  panel operations;
  operations.title = "Operations";
  operations.x = {"chunk length C", axis_scale::logarithmic, 1, last, {1, 2, 4, 8, 16, 32, 64, 128}};
  operations.y = {"operations a token", axis_scale::linear, 0, {}};
  panel bytes = operations;
  bytes.title = "Bytes";
  bytes.y = {"bytes a token", axis_scale::logarithmic, 500, 300000};
  series chunk{"chunkwise", {}, {}};
  series recurrence{"recurrence", {}, {}};
  series staged{"chunkwise, stages through memory", {}, {}};
  series fused{"one kernel, state on chip", {}, {}};
  series memory{"recurrence, state in memory", {}, {}};
  for (const std::size_t c : size.chunks) {
    const auto at = static_cast<double>(c);
    const traffic t = traffic_of(at, key_dim, value_dim, 2);
    for (series* s : {&chunk, &recurrence, &staged, &fused, &memory}) s->x.push_back(at);
    chunk.y.push_back(per_token(chunk_operations(c, key_dim, value_dim), c));
    recurrence.y.push_back(per_token(recurrent_operations(1, key_dim, value_dim), 1));
    staged.y.push_back(t.chunk_stages);
    fused.y.push_back(t.chunk_fused);
    memory.y.push_back(t.recurrent_in_memory);
  }
  operations.curves = {std::move(chunk), std::move(recurrence)};
  bytes.curves = {std::move(staged), std::move(fused), std::move(memory)};
  f.panels = {std::move(operations), std::move(bytes)};
  return f;
}

}  // namespace

void add_cost(const run_options&, const settings& size, report& r) {
  const agreement same = compare_counts();
  r.findings.push_back(
      {"counts-are-polynomials",
       same.equal == same.cases
           ? "A chunk of C rows costs (K+1)·C(C−1)/2 + K·C(C+1)/2 + (C³−C)/6 + C(K+V) + C²(K+V) + 3CKV + V·C(C+1)/2 products "
             "and, less C(C−1)/2 + C(K+V) and plus CV, as many additions; CV "
             "subtractions. A token of the recurrence costs 3KV + V, 3KV and V. Counted in the code that runs, all " +
                 std::to_string(same.cases) + " cases agree, tails included."
           : "The polynomials miss " + std::to_string(same.cases - same.equal) + " of " + std::to_string(same.cases) + " counts.",
       evidence::exhaustive(same.cases),
       {{"equal", same.equal}, {"cases", same.cases}},
       "T in {1, 2, 7, 16, 33, 40}, C in {1, 2, 3, 5, 8, 16, 33}, K in {1, 3, 8}, V in {1, 2, 5}, each with every other, and the "
       "recurrence for every T, K and V; forward substitution, over counting<double>; W and U take whole rows of the inverse, "
       "as a tile product does."});
  const double one = per_token(recurrent_operations(1, key_dim, value_dim), 1);
  const double sixty_four = per_token(chunk_operations(64, key_dim, value_dim), 64);
  const traffic t = traffic_of(64, key_dim, value_dim, 2);
  r.findings.push_back({"operations-for-bytes",
                        "At K = V = 128 and in the memory model stated, a chunk of 64 makes " + number(sixty_four / one, 3) +
                            " times the operations of the recurrence (" + number(sixty_four, 6) + " a token against " +
                            number(one, 6) + "), and moves " + number(t.recurrent_in_memory / t.chunk_stages, 3) +
                            " times fewer bytes than a recurrence whose state lives in memory, " +
                            number(t.chunk_stages / t.recurrent_on_chip, 3) +
                            " times more than one whose state stays on the chip.",
                        evidence::proved(),
                        {{"operations_ratio", sixty_four / one},
                         {"bytes_saved", t.recurrent_in_memory / t.chunk_stages},
                         {"bytes_more", t.chunk_stages / t.recurrent_on_chip}},
                        "The polynomials above, and the stated model of memory: each kernel reads its operands once and writes "
                        "its results once; stages 2 bytes, A and the state 4."});
  table costs;
  costs.id = "cost";
  costs.title = "Cost a token, K = V = 128";
  costs.columns = {
      "form", {"×", 6}, {"+ and −", 6}, {"operations / recurrence", 3}, {"bytes, bf16 stages", 6}, {"operations / byte", 3}};
  const operation_counts token = recurrent_operations(1, key_dim, value_dim);
  const traffic any = traffic_of(1, key_dim, value_dim, 2);
  const auto multiplications = [](const operation_counts& c, std::uint64_t n) {
    return static_cast<double>(c.multiplications) / static_cast<double>(n);
  };
  const auto sums = [](const operation_counts& c, std::uint64_t n) {
    return static_cast<double>(c.additions + c.subtractions) / static_cast<double>(n);
  };
  costs.rows.push_back({"recurrence, state in memory", multiplications(token, 1), sums(token, 1), 1.0, any.recurrent_in_memory,
                        one / any.recurrent_in_memory});
  costs.rows.push_back({"recurrence, state on chip", multiplications(token, 1), sums(token, 1), 1.0, any.recurrent_on_chip,
                        one / any.recurrent_on_chip});
  for (const std::uint64_t c : size.chunks) {
    const operation_counts chunk = chunk_operations(c, key_dim, value_dim);
    const traffic moved = traffic_of(static_cast<double>(c), key_dim, value_dim, 2);
    const double all = per_token(chunk, c);
    costs.rows.push_back({"chunkwise, C = " + std::to_string(c), multiplications(chunk, c), sums(chunk, c), all / one,
                          moved.chunk_stages, all / moved.chunk_stages});
  }
  costs.note =
      "Bytes of the chunkwise form: five kernels (A; Ai; w and u; states; outputs) that hand stages through memory. Time is the "
      "machine's: `./run bench` measures it beside the error.";
  r.tables.push_back(std::move(costs));

  table inverses;
  inverses.id = "inverse-operations";
  inverses.title = "Operations of one inverse (counted)";
  inverses.columns = {"method"};
  const std::vector<std::size_t> lengths{16, 32, 64, 128};
  for (const std::size_t c : lengths) inverses.columns.push_back({"C = " + std::to_string(c)});
  inverses.columns.push_back({"of the whole chunk, C = 64", 3});
  for (const named_inverse& row : inverse_methods) {
    std::vector<cell> cells{std::string(row.name)};
    std::uint64_t at64 = 0;
    for (const std::size_t c : lengths) {
      const std::uint64_t total = counted_inverse(c, row.method).total();
      if (c == 64) at64 = total;
      cells.emplace_back(total);
    }
    const std::uint64_t rest =
        chunk_operations(64, key_dim, value_dim).total() - counted_inverse(64, inverse_named("forward")).total();
    cells.emplace_back(static_cast<double>(at64) / static_cast<double>(rest + at64));
    inverses.rows.push_back(std::move(cells));
  }
  inverses.note =
      "+, − and ×; products of triangular matrices leave out what is zero by structure. Last column: share of all operations of "
      "a chunk at K = V = 128.";
  r.tables.push_back(std::move(inverses));
  r.figures.push_back(cost_figure(size));
}

}  // namespace deltaproof::detail::wy
