// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT

#include "studies/shared/findings.hpp"

#include <algorithm>
#include <limits>
#include <type_traits>
#include <variant>

namespace deltaproof::detail::shared {
namespace {

const cell* cell_of(const report& r, std::string_view id, const std::string& key) {
  const finding* f = find(r, id);
  if (f == nullptr) return nullptr;
  const auto at = f->values.find(key);
  return at == f->values.end() ? nullptr : &at->second;
}

}  // namespace

const finding* find(const report& r, std::string_view id) {
  const auto at = std::find_if(r.findings.begin(), r.findings.end(), [&](const finding& f) { return f.id == id; });
  return at == r.findings.end() ? nullptr : &*at;
}

double value_of(const report& r, std::string_view id, const std::string& key) {
  const cell* found = cell_of(r, id, key);
  if (found == nullptr) return std::numeric_limits<double>::quiet_NaN();
  return std::visit(
      [](const auto& x) {
        if constexpr (std::is_same_v<std::decay_t<decltype(x)>, std::string>) {
          return std::numeric_limits<double>::quiet_NaN();
        } else {
          return static_cast<double>(x);
        }
      },
      found->value());
}

std::string text_of(const report& r, std::string_view id, const std::string& key) {
  const cell* found = cell_of(r, id, key);
  return found == nullptr ? std::string() : found->text();
}

}  // namespace deltaproof::detail::shared
