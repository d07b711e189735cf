// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// From a format known at run time to one known at compile time: `visit_format(f, visitor)` calls the templated operator() of
// `visitor` with the row of the format table that equals f, and `round_nearest(x, f)` rounds once. Every row of the table is
// covered, also one that is added later; a format that is no row is an error, never a value that was not rounded.
#pragma once

#include <cstddef>
#include <string>
#include <utility>

#include "deltaproof/number/convert.hpp"
#include "deltaproof/number/format.hpp"
#include "deltaproof/support/errors.hpp"

namespace deltaproof {

namespace detail {

template <std::size_t Row, class Visitor>
constexpr auto visit_format_from(const format& wanted, Visitor&& visitor)
    -> decltype(visitor.template operator()<formats[0].value>()) {
  if constexpr (Row == formats.size()) {
    throw format_error("the format given, with a significand of " + std::to_string(wanted.precision) +
                       " bits, is not in the format table; use one that `deltaproof list formats` names");
  } else {
    constexpr format row = formats[Row].value;
    if (wanted == row) return visitor.template operator()<row>();
    return visit_format_from<Row + 1>(wanted, std::forward<Visitor>(visitor));
  }
}

}  // namespace detail

/// Calls the templated operator() of `visitor` with the row of the format table that equals `wanted`. Throws: format_error where
/// none does.
template <class Visitor>
constexpr decltype(auto) visit_format(const format& wanted, Visitor&& visitor) {
  return detail::visit_format_from<0>(wanted, std::forward<Visitor>(visitor));
}

/// x rounded once to `to`, to nearest even. Throws: format_error for a format that is no row of
/// the table.
template <class From>
  requires Roundable<From>
[[nodiscard]] constexpr double round_nearest(const From& x, const format& to) {
  return visit_format(to, [&]<format F>() { return static_cast<double>(round_to<F>(x).value()); });
}

}  // namespace deltaproof
