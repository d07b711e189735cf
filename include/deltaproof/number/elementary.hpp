// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// exp, expm1, log and sigmoid of rounded<F>: the exact value rounded once, in the mode of the type, so
// that these functions too are the same everywhere. They are computed by MPFR in the compiled library,
// at microseconds a call: right for gates and catalogues, not for inner loops.
#pragma once

#include "deltaproof/number/rounded.hpp"

namespace deltaproof {

namespace detail {

/// The 128 leading bits of f(x), and whether more follow.
unrounded wide_exp(double x);
unrounded wide_expm1(double x);
unrounded wide_log(double x);
unrounded wide_sigmoid(double x);

template <format F, class Mode>
rounded<F, Mode> round_function(const unrounded& value) {
  Mode mode;
  return rounded<F, Mode>::from_exact(round_unrounded<F>(value, mode));
}

}  // namespace detail

/// e^x.
template <format F, class Mode>
rounded<F, Mode> exp(rounded<F, Mode> x) {
  return detail::round_function<F, Mode>(detail::wide_exp(x.value()));
}

/// e^x - 1.
template <format F, class Mode>
rounded<F, Mode> expm1(rounded<F, Mode> x) {
  return detail::round_function<F, Mode>(detail::wide_expm1(x.value()));
}

/// The natural logarithm; -inf at 0 (NaN in a format without infinities), NaN below.
template <format F, class Mode>
rounded<F, Mode> log(rounded<F, Mode> x) {
  return detail::round_function<F, Mode>(detail::wide_log(x.value()));
}

/// 1 / (1 + e^-x).
template <format F, class Mode>
rounded<F, Mode> sigmoid(rounded<F, Mode> x) {
  return detail::round_function<F, Mode>(detail::wide_sigmoid(x.value()));
}

}  // namespace deltaproof

// Theorems behind this file, by their names in proofs/README.md.
// proved: float.sigmoid.sigmoid_saturates_from, code.constants.sigmoid_bf16_saturates
