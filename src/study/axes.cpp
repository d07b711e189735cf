// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT

#include <algorithm>
#include <cmath>

#include "deltaproof/study/report.hpp"
#include "study/layout.hpp"
#include "study/markdown.hpp"
#include "study/theme.hpp"

namespace deltaproof::detail {
namespace {

std::vector<tick> given_ticks(const std::vector<double>& given, const axis_range& r) {
  std::vector<tick> ticks;
  for (const double at : given) {
    if (r.shows(at) && r.fraction(at) >= -1e-9 && r.fraction(at) <= 1 + 1e-9) ticks.push_back({at, tick_text(at)});
  }
  return ticks;
}

/// At powers of ten, small ones between where there is room; over less than two decades at 1, 2 and 5. Fewer than two: none.
std::vector<tick> logarithmic_ticks(const axis_range& r, double pixels, bool horizontal) {
  std::vector<tick> ticks;
  const int first = static_cast<int>(std::ceil(std::log10(r.low) - 1e-9));
  const int last = static_cast<int>(std::floor(std::log10(r.high) + 1e-9));
  const int decades = last - first + 1;
  if (decades < 2) {
    for (int e = first - 1; e <= last; ++e) {
      for (const int digit : {1, 2, 5}) {
        const double at = digit * std::pow(10.0, e);
        if (at >= r.low && at <= r.high) ticks.push_back({at, tick_text(at)});
      }
    }
    return ticks.size() >= 2 ? ticks : std::vector<tick>();
  }
  const double room = pixels / (horizontal ? 44 : 26);
  int step = 1;
  for (const int candidate : {1, 2, 3, 5, 10, 20, 50, 100, 200}) {
    step = candidate;
    if (decades <= room * candidate) break;
  }
  const bool plain = first >= -2 && last <= 4;
  for (int e = first; e <= last; ++e) {
    const double at = std::pow(10.0, e);
    const bool labelled = e % step == 0;
    ticks.push_back({at, !labelled ? "" : plain || (e >= -1 && e <= 1) ? tick_text(at) : power_of_ten(e)});
  }
  if (step > 1 || pixels / decades <= 18) return ticks;
  for (int e = first - 1; e <= last; ++e) {
    for (int digit = 2; digit <= 9; ++digit) {
      const double at = digit * std::pow(10.0, e);
      if (at > r.low && at < r.high) ticks.push_back({at, ""});
    }
  }
  return ticks;
}

/// The least of 1, 2, 2.5, 5 and 10 times a power of ten that is not below `rough`.
double round_step(double rough) {
  const double unit = std::pow(10.0, std::floor(std::log10(rough)));
  for (const double factor : {1.0, 2.0, 2.5, 5.0}) {
    if (factor * unit >= rough * (1 - 1e-9)) return factor * unit;
  }
  return 10 * unit;
}

}  // namespace

bool axis_range::shows(double value) const { return std::isfinite(value) && (scale == axis_scale::linear || value > 0); }

double axis_range::fraction(double value) const {
  return scale == axis_scale::linear ? (value - low) / (high - low) : std::log(value / low) / std::log(high / low);
}

double axis_range::value(double t) const {
  return scale == axis_scale::linear ? low + t * (high - low) : low * std::pow(high / low, t);
}

std::string tick_text(double value, int digits) {
  std::string text = number(value, digits);
  std::string power;
  if (const std::size_t e = text.find('e'); e != std::string::npos) {
    power = power_of_ten(std::stoi(text.substr(e + 1)));
    text.resize(e);
    if (text == "1" || text == "-1")
      text.pop_back();
    else
      text += "·";
  }
  if (text.starts_with('-')) text.replace(0, 1, "−");
  return text + power;
}

double widest(const std::vector<tick>& ticks) {
  double width = 0;
  for (const tick& t : ticks) width = std::max(width, text_width(t.label, tick_size));
  return width;
}

std::vector<tick> ticks_for(const axis& a, const axis_range& r, double pixels, bool horizontal) {
  if (!a.ticks.empty()) return given_ticks(a.ticks, r);
  if (r.scale == axis_scale::logarithmic) {
    if (auto ticks = logarithmic_ticks(r, pixels, horizontal); !ticks.empty()) return ticks;
  }
  std::vector<tick> ticks;
  const double span = r.high - r.low;
  double spacing = horizontal ? 56 : 34;
  for (int attempt = 0; attempt < 4; ++attempt) {
    const double step = round_step(span / std::max(2.0, pixels / spacing));
    ticks.clear();
    const double first = std::ceil(r.low / step - 1e-9);
    const double last = std::floor(r.high / step + 1e-9);
    for (double i = first; i <= last && ticks.size() < 100; ++i) ticks.push_back({i * step, i == 0 ? "0" : tick_text(i * step)});
    if (!horizontal || widest(ticks) + 12 < step / span * pixels) break;
    spacing = widest(ticks) + 16;
  }
  return ticks;
}

int heat_scale::level(double value) const {
  if (!std::isfinite(value)) return no_index;
  double t = 0;
  if (two_sided) {
    t = value < middle ? 0.5 * (value - range.low) / (middle - range.low) : 0.5 + 0.5 * (value - middle) / (range.high - middle);
  } else if (range.shows(value)) {
    t = range.fraction(value);
  }
  return std::clamp(static_cast<int>(std::floor(t * heat_levels)), 0, heat_levels - 1);
}

}  // namespace deltaproof::detail
