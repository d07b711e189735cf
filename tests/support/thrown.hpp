// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// What an error says, and a folder that lasts as long as a test.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <functional>
#include <string>

#include "deltaproof/support/errors.hpp"

namespace deltaproof::testing {

/// The words of the error that `work` throws.
inline std::string thrown(const std::function<void()>& work) {
  try {
    work();
  } catch (const error& e) {
    return e.what();
  }
  return "nothing was thrown";
}

/// A new folder under the system's temporary one, removed with all that is in it.
struct temporary_folder {
  temporary_folder() {
    std::string name = (std::filesystem::temp_directory_path() / "deltaproof-test-XXXXXX").string();
    path = mkdtemp(name.data());
  }
  ~temporary_folder() { std::filesystem::remove_all(path); }
  temporary_folder(const temporary_folder&) = delete;
  temporary_folder& operator=(const temporary_folder&) = delete;
  std::filesystem::path path;
};

}  // namespace deltaproof::testing
