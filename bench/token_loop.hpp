// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// The fp64 token loops of bench/token_loop.py as rows of a C++ timing: the worker runs beside this process and answers one
// request at a time with seconds of its own processor time. Python is $DELTAPROOF_PYTHON, else /usr/bin/python3 (the
// distribution's, which has its torch and numpy).
#pragma once

#include <sys/stat.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

namespace deltaproof::bench {

class token_loop_worker {
 public:
  /// `script`: token_loop.py. Without python, or without numpy and torch, there are no loops and `found` is empty.
  explicit token_loop_worker(const std::string& script) {
    folder_ = std::filesystem::temp_directory_path() / "deltaproof-bench-XXXXXX";
    std::string made = folder_.string();
    if (mkdtemp(made.data()) == nullptr) return;
    folder_ = made;
    const std::string pipe = (folder_ / "answers").string();
    if (mkfifo(pipe.c_str(), 0600) != 0) return;
    const char* python = std::getenv("DELTAPROOF_PYTHON");
    const std::string command = std::string("exec ") + (python != nullptr ? python : "/usr/bin/python3") + " '" + script +
                                "' > '" + pipe + "' 2> /dev/null";
    requests_ = popen(command.c_str(), "w");
    if (requests_ == nullptr) return;
    answers_.open(pipe);
    std::getline(answers_, found_);
  }
  ~token_loop_worker() {
    if (requests_ != nullptr) pclose(requests_);
    std::error_code ignored;
    std::filesystem::remove_all(folder_, ignored);
  }
  token_loop_worker(const token_loop_worker&) = delete;
  token_loop_worker& operator=(const token_loop_worker&) = delete;

  /// "numpy 1.24.2 torch 1.13.1", or nothing.
  [[nodiscard]] const std::string& found() const { return found_; }
  [[nodiscard]] bool has(const std::string& package) const { return found_.find(package + " ") != std::string::npos; }
  /// Seconds of one loop of T tokens over one head of d x d; negative where the worker gave up.
  [[nodiscard]] double seconds(const std::string& loop, std::size_t d, std::size_t T) {
    std::fprintf(requests_, "%s %zu %zu\n", loop.c_str(), d, T);
    std::fflush(requests_);
    double answer = -1;
    answers_ >> answer;
    return answer;
  }

 private:
  std::filesystem::path folder_;
  std::FILE* requests_ = nullptr;
  std::ifstream answers_;
  std::string found_;
};

}  // namespace deltaproof::bench
