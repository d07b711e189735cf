// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT

#include "study/theme.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <span>

#include "support/printable.hpp"

namespace deltaproof::detail {
namespace {

using rgb = std::array<int, 3>;

struct look {
  const char* light;
  const char* dark;
  const char* dash;
};

constexpr std::array<look, series_limit> looks{{
    {"#0f2cb1", "#7f7dfa", ""},
    {"#b02a0b", "#f2622f", "7 3"},
    {"#00a282", "#59f09a", "2 2.4"},
    {"#a51d92", "#d96bb0", "8 3 2 3"},
    {"#bc8612", "#fad030", "12 3.5"},
    {"#65334c", "#dce2de", "4.5 2.5"},
    {"#4c80ee", "#91c2fa", "1.2 3.2"},
    {"#8a8548", "#a8836f", "10 2.5 2 2.5 2 2.5"},
}};

// viridis: even steps of lightness, the same in both themes.
constexpr std::array<rgb, 6> one_sided{
    {{68, 1, 84}, {65, 68, 135}, {42, 120, 142}, {34, 168, 132}, {122, 209, 81}, {253, 231, 37}}};
constexpr std::array<rgb, 5> two_sided_light{{{11, 79, 148}, {122, 176, 219}, {240, 241, 243}, {240, 165, 96}, {161, 73, 0}}};
constexpr std::array<rgb, 5> two_sided_dark{{{120, 196, 255}, {38, 102, 158}, {37, 41, 48}, {164, 88, 24}, {255, 176, 92}}};

rgb blend(std::span<const rgb> anchors, int level) {
  const double t = static_cast<double>(level) / (heat_levels - 1) * static_cast<double>(anchors.size() - 1);
  const std::size_t i = std::min(static_cast<std::size_t>(t), anchors.size() - 2);
  const double f = t - static_cast<double>(i);
  rgb result{};
  for (std::size_t c = 0; c < 3; ++c) result[c] = static_cast<int>(std::lround(anchors[i][c] * (1 - f) + anchors[i + 1][c] * f));
  return result;
}

double luminance(const rgb& colour) { return (0.2126 * colour[0] + 0.7152 * colour[1] + 0.0722 * colour[2]) / 255; }

std::string heat_rules(const char* name, std::span<const rgb> anchors) {
  std::string out;
  for (int i = 0; i < heat_levels; ++i) out += name + std::to_string(i) + "{color:" + hex(blend(anchors, i)) + "}\n";
  return out;
}

}  // namespace

std::string hex(const rgb& colour) {
  constexpr std::string_view digits = "0123456789abcdef";
  std::string text = "#";
  for (const int c : colour) {
    text += digits[static_cast<std::size_t>(c / 16)];
    text += digits[static_cast<std::size_t>(c % 16)];
  }
  return text;
}

std::string style_sheet(bool one_sided_heat, bool two_sided_heat) {
  std::string out =
      ".dpf{font-family:system-ui,-apple-system,\"Segoe UI\",Roboto,\"Noto Sans\",\"DejaVu Sans\",sans-serif;font-size:11px}\n"
      ".dpf .bg{fill:#fff}\n"
      ".dpf text{fill:#59616b}\n"
      ".dpf .t{fill:#1b1f24;font-size:13px;font-weight:600}\n"
      ".dpf .y{fill:#3b424a;font-size:12px}\n"
      ".dpf .ha{stroke:#fff;stroke-width:3.5px;stroke-linejoin:round;paint-order:stroke}\n"
      ".dpf .g{stroke:#e6e9ed;fill:none}\n"
      ".dpf .a{stroke:#9aa3ad;fill:none}\n"
      ".dpf .m{stroke:#59616b;stroke-dasharray:3 3;fill:none}\n"
      ".dpf .n{color:#b4bac2}\n"
      ".dpf .hl{fill:#fff}.dpf .hd{fill:#000}.dpf .he{fill:#15191e}.dpf .hx{fill:#fff}\n"
      ".dpf .sn{color:#7d8690}\n"
      ".dpf .ln{stroke:currentColor;stroke-width:1.8px;fill:none;stroke-linejoin:round}\n"
      ".dpf .ar{fill:currentColor;stroke:none}\n"
      ".dpf .bd{fill:currentColor;fill-opacity:.2;stroke:none}\n"
      ".dpf .br{fill:currentColor;fill-opacity:.3;stroke:none}\n"
      ".dpf .bo{stroke:currentColor;stroke-width:1.4px;fill:none}\n"
      ".dpf .ce{fill:currentColor;stroke:none;shape-rendering:crispEdges}\n"
      ".dpf .cl{stroke:currentColor;fill:none;stroke-linecap:round}\n"
      ".dpf .mk{fill:currentColor;stroke:#fff;stroke-width:.8px}\n"
      ".dpf .x{stroke:currentColor;stroke-width:2px;fill:none;stroke-linecap:round}\n";
  std::string dark =
      ".dpf .bg{fill:#14181d}\n"
      ".dpf text{fill:#a3acb7}\n"
      ".dpf .t{fill:#eef1f4}\n"
      ".dpf .y{fill:#ccd2d9}\n"
      ".dpf .ha{stroke:#14181d}\n"
      ".dpf .g{stroke:#2a3038}\n"
      ".dpf .a{stroke:#6b7480}\n"
      ".dpf .m{stroke:#a3acb7}\n"
      ".dpf .n{color:#4a525c}\n"
      ".dpf .hl{fill:#fff}.dpf .hd{fill:#000}.dpf .he{fill:#f4f6f8}.dpf .hx{fill:#0b0e12}\n"
      ".dpf .sn{color:#8b95a1}\n"
      ".dpf .mk{stroke:#14181d}\n";
  for (std::size_t i = 0; i < looks.size(); ++i) {
    const std::string name = ".dpf .s" + std::to_string(i);
    out += name + "{color:" + looks[i].light + "}";
    if (looks[i].dash[0] != '\0') out += name + ".ln{stroke-dasharray:" + looks[i].dash + "}";
    out += "\n";
    dark += name + "{color:" + looks[i].dark + "}\n";
  }
  if (one_sided_heat) out += heat_rules(".dpf .h", one_sided);
  if (two_sided_heat) {
    out += heat_rules(".dpf .e", two_sided_light);
    dark += heat_rules(".dpf .e", two_sided_dark);
  }
  return out + "@media (prefers-color-scheme:dark){\n" + dark + "}\n";
}

std::string series_class(int index) { return index == no_index ? "sn" : "s" + std::to_string(index); }

bool level_is_light(int level) { return luminance(blend(one_sided, level)) > 0.45; }

std::string marker(int index, double x, double y) {
  const auto shape = [&](double dx, double dy, std::string_view rest) {
    return "M" + coordinate(x + dx) + " " + coordinate(y + dy) + std::string(rest);
  };
  switch (index) {
    case 1:
      return shape(-3, -3, "h6v6h-6z");
    case 2:
      return shape(0, -4.1, "l3.8 6.8h-7.6z");
    case 3:
      return shape(0, -4.3, "l4.3 4.3-4.3 4.3-4.3-4.3z");
    case 4:
      return shape(0, 4.1, "l3.8-6.8h-7.6z");
    case 5:
      return shape(-1.3, -4, "h2.6v2.7h2.7v2.6h-2.7v2.7h-2.6v-2.7h-2.7v-2.6h2.7z");
    case 6:
      return shape(-4.2, 0, "l2.1-3.6h4.2l2.1 3.6-2.1 3.6h-4.2z");
    case 7:
      return shape(-3.8, -2, "l1.8-1.8 2 2 2-2 1.8 1.8-2 2 2 2-1.8 1.8-2-2-2 2-1.8-1.8 2-2z");
    default:
      return shape(-3.4, 0, "a3.4 3.4 0 1 0 6.8 0a3.4 3.4 0 1 0-6.8 0z");
  }
}

std::string coordinate(double value) {
  const long tenths = std::lround(value * 10);
  const long whole = std::labs(tenths) / 10;
  const long tenth = std::labs(tenths) % 10;
  std::string text = tenths < 0 ? "-" : "";
  if (whole != 0 || tenth == 0) text += std::to_string(whole);
  if (tenth != 0) text += "." + std::to_string(tenth);
  return text;
}

double text_width(std::string_view text, double font_size) {
  double width = 0;
  for (const char c : text) {
    if ((static_cast<unsigned char>(c) & 0xC0U) == 0x80U) continue;  // inside a character
    if (std::string_view("iljI.,:;'|!()[] ").find(c) != std::string_view::npos)
      width += 0.37;
    else if (std::string_view("mwMW@%").find(c) != std::string_view::npos)
      width += 0.93;
    else if (c >= 'A' && c <= 'Z')
      width += 0.7;
    else
      width += 0.61;
  }
  return width * font_size;
}

std::string xml_escaped(std::string_view text) {
  std::string out = markup_escaped(text);
  for (char& c : out) {
    if (c == '\n' || c == '\t') c = ' ';
  }
  return out;
}

}  // namespace deltaproof::detail
