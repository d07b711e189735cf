// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// Distances between what a kernel gave and the reference, each as an enclosure that accounts for the reference's
// radius: `measure` computes them all in one pass, `judge` sets one against a bound. Also the numbers the field uses
// (fla's ratio, NMSE, torch's allclose), so that people recognise their metric. Elements may be skipped (tokens from
// a divergence on): they are counted, not judged. Errors are |got - exact| with got taken exactly.
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "deltaproof/number/format.hpp"
#include "deltaproof/oracle/reference.hpp"
#include "deltaproof/oracle/verdict.hpp"

namespace deltaproof {

/// What an error limit can be set on: a row of `metrics`, in its order.
enum class metric { max_abs, rel_fro, fla_ratio, ulps };

/// A value of the result and the reference's, at a flat index of the tensor.
struct element_error {
  std::size_t index = 0;
  double got = 0;
  double want = 0;
};

/// The metrics are infinite where a judged element of the result is not finite.
struct measurement {
  std::size_t elements = 0;  ///< judged
  std::size_t skipped = 0;
  std::size_t unknown = 0;  ///< judged elements the reference could not enclose
  enclosure max_abs;
  enclosure rel_fro;  ///< 0 / 0 is 0
  enclosure fla_ratio;
  enclosure ulps;
  enclosure worst_row;                  ///< largest |error| / |exact| of one row (the last axis), rows of exact zeros left out
  double nmse = 0;                      ///< sum error^2 / sum exact^2
  std::size_t allclose_violations = 0;  ///< |error| > atol + rtol |exact| or not finite, torch's defaults for the dtype
  double radius = 0;                    ///< largest bound on |reference - exact|
  std::size_t nonfinite = 0;            ///< of the result, where the exact value is finite
  std::optional<element_error> first_nonfinite;
  std::optional<element_error> worst;  ///< largest finite error; nothing if no element was judged
};

/// A metric, what it is and where `measure` leaves it. `over_norm`: the error is divided by a norm of exact values, of which an
/// element that is not known may be most. A new one is its entry of `metric`, its member of `measurement`, its row here and its
/// computation in `measure`.
struct named_metric {
  metric which;
  std::string_view name;
  std::string_view what;
  enclosure measurement::* value;
  bool over_norm;
};
inline constexpr auto metrics = std::to_array<named_metric>({
    {metric::max_abs, "max_abs", "largest |error|", &measurement::max_abs, false},
    {metric::rel_fro, "rel_fro", "|error|_F / |exact|_F", &measurement::rel_fro, true},
    {metric::fla_ratio, "fla_ratio", "rms(error) / (rms(exact) + 1e-8), as fla's assert_close", &measurement::fla_ratio, true},
    {metric::ulps, "ulps", "largest |error| in ulps of the result's format; each ulp is taken at the exact value",
     &measurement::ulps, false},
});
[[nodiscard]] std::string_view name_of(metric m);
/// Throws: format_error that lists the names there are.
[[nodiscard]] metric metric_named(std::string_view name);
/// "max_abs, rel_fro, ...": every name.
[[nodiscard]] std::string metric_list();

/// Shapes: got, reference and (if any) skip have one element for each of `want.shape`. `of` is the format the result
/// is stored in. Throws: shape_error if counts differ.
[[nodiscard]] measurement measure(std::span<const double> got, const reference_tensor& want, const format& of,
                                  const std::vector<bool>& skip = {});

[[nodiscard]] enclosure value_of(const measurement& m, metric which);

/// The verdict on one tensor: refuted if anything is non-finite where the exact value is finite, vacuous if nothing was
/// left to judge, else every bound against its metric; without bounds measured, or undecided where the reference could
/// not enclose an element.
struct metric_bound {
  metric which;
  bound limit;
};
[[nodiscard]] verdict judge(const measurement& m, std::span<const metric_bound> bounds);

/// Units in the last place of `of` at x: 2^(max(exponent(x), emin) - precision + 1).
[[nodiscard]] double ulp_at(double x, const format& of);

}  // namespace deltaproof
