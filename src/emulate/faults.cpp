// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
#include "emulate/faults.hpp"

#include <cmath>
#include <iterator>

#include "deltaproof/support/errors.hpp"
#include "support/nearest_name.hpp"

namespace deltaproof {

namespace emulation_detail {

double activated(const head_input& in, double beta) {
  if (in.activation == activation_kind::none) return beta;
  return (in.activation == activation_kind::two_sigmoid ? 2 : 1) / (1 + std::exp(-beta));
}

namespace {

/// In the order of the stages, the tables' own order inside one.
struct catalogue {
  fault_table rows;
  std::vector<fault> faults;

  catalogue() {
    rows = joined(
        {input_faults, head_faults, gate_faults, chunk_faults, state_faults, output_faults, precision_faults, recurrent_faults});
    for (const fault_row& r : rows) {
      faults.push_back({r.name, r.stage, r.what, r.where != paths::recurrent, r.where != paths::chunk, &r.code});
    }
  }
  // The faults point into the rows.
  catalogue(const catalogue&) = delete;
  catalogue& operator=(const catalogue&) = delete;
};

const catalogue& all() {
  static const catalogue made;
  return made;
}

}  // namespace

fault_table joined(std::initializer_list<table_maker> tables) {
  fault_table all;
  for (const table_maker table : tables) {
    fault_table part = table();
    std::move(part.begin(), part.end(), std::back_inserter(all));
  }
  return all;
}

}  // namespace emulation_detail

std::span<const fault> faults() { return emulation_detail::all().faults; }

const fault& fault_named(std::string_view name) {
  std::vector<std::string_view> names;
  for (const std::span<const fault> all : {faults(), backward_faults()}) {
    for (const fault& f : all) {
      if (f.name == name) return f;
      names.push_back(f.name);
    }
  }
  const std::string near(detail::nearest_name(name, names));
  throw format_error("unknown fault \"" + std::string(name) + "\"; " + (near.empty() ? "" : "did you mean \"" + near + "\"? ") +
                     "`deltaproof list faults` and `deltaproof list gradient-faults` have them all");
}

bool applies(const fault& f, const problem& p, path_kind path) {
  const bool possible = path == path_kind::chunk ? f.chunk : path == path_kind::recurrent && f.recurrent;
  return possible && (f.code->needs == nullptr || f.code->needs(p));
}

}  // namespace deltaproof
