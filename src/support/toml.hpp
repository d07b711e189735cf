// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// The TOML parser as the readers here want it. Hostile text breaks assertions inside it whose cases it then refuses in order:
// with NDEBUG clang would take them for promises, without it they would end the program. Here they are neither.
#pragma once

#undef NDEBUG
#define TOML_ASSERT(expr) static_cast<void>(0)
#define TOML_ENABLE_FORMATTERS 0
#define TOML_ENABLE_WINDOWS_COMPAT 0
#include <toml++/toml.h>
