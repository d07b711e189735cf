// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT

#include "cli/progress.hpp"

#include <unistd.h>

#include <chrono>
#include <cmath>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <system_error>
#include <thread>

#include "cli/program.hpp"
#include "cli/terminal.hpp"

namespace deltaproof::cli {
namespace {

using steady = std::chrono::steady_clock;

double seconds_since(steady::time_point then) { return std::chrono::duration<double>(steady::now() - then).count(); }

/// Between two lines where stderr is no terminal; 0: none. The variable is named in `deltaproof --help`.
double seconds_between_lines() {
  const char* const stated = std::getenv("DELTAPROOF_PROGRESS_SECONDS");
  if (stated == nullptr) return 30;
  char* end = nullptr;
  const double seconds = std::strtod(stated, &end);
  return end != stated && *end == '\0' && seconds >= 0 && seconds < 1e6 ? seconds : 30;
}

}  // namespace

/// Draws from a thread of its own: work that reports nothing for a while is seen to go on.
class progress_line::ticker {
 public:
  explicit ticker(std::string stage)
      : stage_{std::move(stage)}, terminal_{isatty(STDERR_FILENO) != 0}, every_{terminal_ ? 0.25 : seconds_between_lines()} {
    if (every_ <= 0) return;
    try {
      thread_ = std::thread([this] { run(); });
    } catch (const std::system_error&) {
      every_ = 0;  // no thread to be had: the work goes on unseen
    }
  }

  ~ticker() {
    {
      const std::lock_guard guard(lock_);
      done_ = true;
    }
    woken_.notify_all();
    if (thread_.joinable()) thread_.join();
    if (shown_) std::fprintf(stderr, "\r\033[K");
  }
  ticker(const ticker&) = delete;
  ticker& operator=(const ticker&) = delete;

  void update(double fraction) {
    const std::lock_guard guard(lock_);
    fraction_ = fraction;
  }
  void stage(const std::string& name) {
    const std::lock_guard guard(lock_);
    if (name == stage_) return;
    stage_ = name;
    fraction_ = 0;
    stage_began_ = steady::now();
  }
  void rename(std::string name) {
    const std::lock_guard guard(lock_);
    stage_ = std::move(name);
  }

 private:
  void run() {
    std::unique_lock guard(lock_);
    while (!woken_.wait_for(guard, std::chrono::duration<double>(every_), [this] { return done_; })) draw();
  }

  void draw() {
    std::string text = stage_;
    if (fraction_ > 0 && fraction_ < 1) text += "  " + std::to_string(static_cast<int>(100 * fraction_)) + " %";
    text += "  " + duration_text(seconds_since(began_));
    const double spent = seconds_since(stage_began_);
    if (fraction_ > 0.02 && fraction_ < 1) {
      const double left = spent * (1 - fraction_) / fraction_;
      text += (left < 1 ? ", under a second" : ", about " + duration_text(std::ceil(left))) + " left for this phase";
    }
    if (stop_requested()) {
      text = (was_interrupted() ? "interrupted: finishing (" : "time is up: finishing (") + stage_ + ")" +
             (was_interrupted() ? "; Ctrl-C again ends the program at once" : "");
    }
    if (!terminal_) {
      std::fprintf(stderr, "deltaproof: %s\n", text.c_str());
    } else {
      shown_ = true;
      // A line that wraps would not be wiped.
      text = text.substr(0, screen_of(STDERR_FILENO).columns - 1);
      std::fprintf(stderr, "\r\033[K%s", text.c_str());
    }
    std::fflush(stderr);
  }

  std::mutex lock_;
  std::condition_variable woken_;
  std::string stage_;
  double fraction_ = 0;
  bool done_ = false;
  bool shown_ = false;
  bool terminal_;
  double every_;
  steady::time_point began_ = steady::now();
  steady::time_point stage_began_ = steady::now();
  std::thread thread_;
};

progress_line::progress_line(std::string stage) : ticker_{std::make_unique<ticker>(std::move(stage))} {}
progress_line::~progress_line() = default;
void progress_line::update(double fraction) { ticker_->update(fraction); }
void progress_line::stage(const std::string& name) { ticker_->stage(name); }
void progress_line::rename(std::string name) { ticker_->rename(std::move(name)); }

}  // namespace deltaproof::cli
