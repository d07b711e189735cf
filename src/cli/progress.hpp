// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// How far long work is, on stderr. On a terminal one line that moves every quarter of a second, whatever the work itself
// reports; elsewhere a line every half minute, so that a log shows life and no more.
#pragma once

#include <memory>
#include <string>

namespace deltaproof::cli {

class progress_line {
 public:
  explicit progress_line(std::string stage);
  ~progress_line();
  progress_line(const progress_line&) = delete;
  progress_line& operator=(const progress_line&) = delete;
  void update(double fraction);         ///< of the stage; 0: not known
  void stage(const std::string& name);  ///< new work: its time starts now
  void rename(std::string name);        ///< the same work under another name

 private:
  class ticker;
  std::unique_ptr<ticker> ticker_;
};

}  // namespace deltaproof::cli
