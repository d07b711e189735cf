// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <deque>
#include <istream>
#include <memory>
#include <nlohmann/json.hpp>
#include <ostream>
#include <thread>

#include "deltaproof/sweep/sweep.hpp"
#include "support/parallel.hpp"

extern char** environ;  // NOLINT: POSIX has it so

namespace deltaproof {
namespace {

std::string how_it_ended(int status) {
  if (WIFSIGNALED(status)) return "signal " + std::to_string(WTERMSIG(status)) + " (" + strsignal(WTERMSIG(status)) + ")";
  return "exit code " + std::to_string(WEXITSTATUS(status));
}

/// A child process that runs tasks, and the one it is at.
class worker {
 public:
  explicit worker(const std::vector<std::string>& command) {
    int ends[2] = {-1, -1};
    if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) throw wrong("no socket", errno);
    socket_ = ends[0];
    posix_spawn_file_actions_t files;
    posix_spawn_file_actions_init(&files);
    posix_spawn_file_actions_adddup2(&files, ends[1], STDIN_FILENO);
    posix_spawn_file_actions_adddup2(&files, ends[1], STDOUT_FILENO);
    std::vector<char*> words;
    for (const std::string& word : command) words.push_back(const_cast<char*>(word.c_str()));  // NOLINT: posix_spawn writes none
    words.push_back(nullptr);
    // A group of its own: Ctrl-C is for the sweep, which then ends its workers.
    posix_spawnattr_t how;
    posix_spawnattr_init(&how);
    posix_spawnattr_setflags(&how, POSIX_SPAWN_SETPGROUP);
    posix_spawnattr_setpgroup(&how, 0);
    const int error = ::posix_spawnp(&process_, words.front(), &files, &how, words.data(), environ);
    posix_spawnattr_destroy(&how);
    posix_spawn_file_actions_destroy(&files);
    ::close(ends[1]);
    if (error != 0) {
      ::close(socket_);
      throw wrong(command.front(), error);
    }
  }
  ~worker() {
    ::close(socket_);  // one that waits for a task ends itself
    if (process_ <= 0) return;
    if (at) ::kill(process_, SIGKILL);
    ::waitpid(process_, nullptr, 0);
  }
  worker(const worker&) = delete;
  worker& operator=(const worker&) = delete;

  [[nodiscard]] int socket() const { return socket_; }
  [[nodiscard]] bool ready() const { return ready_; }
  /// Whether it took it: one that has just ended does not.
  bool give(const sweep_task& t) {
    at = t;
    const std::string line = std::to_string(t.index) + " " + t.key + "\n";
    return ::send(socket_, line.data(), line.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(line.size());
  }
  /// The next line that has come whole; nothing where there is none yet. `ended`: the process has.
  std::optional<std::string> line(bool& ended) {
    char bytes[4096];
    const ssize_t got = ::recv(socket_, bytes, sizeof bytes, MSG_DONTWAIT);
    if (got > 0) text_.append(bytes, static_cast<std::size_t>(got));
    const std::size_t end = text_.find('\n');
    if (end == std::string::npos) {
      ended = got == 0 || (got < 0 && errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR);
      return {};
    }
    std::string out = text_.substr(0, end);
    text_.erase(0, end + 1);
    if (!ready_) {
      ready_ = out == "ready";
      return {};
    }
    return out;
  }
  /// Waits for the process, which has ended or is about to: its status, as waitpid has it.
  int end() {
    int status = 0;
    while (::waitpid(process_, &status, 0) < 0 && errno == EINTR) {
    }
    process_ = -1;
    return status;
  }

  std::optional<sweep_task> at;

 private:
  static format_error wrong(const std::string& what, int error) {
    return format_error("sweep: a worker cannot be started: " + what + ": " + std::strerror(error));
  }
  int socket_ = -1;
  pid_t process_ = -1;
  bool ready_ = false;
  std::string text_;
};

class driver {
 public:
  driver(const campaign& c, const sweep_folder& folder, const sweep_options& options)
      : c_(c), folder_(folder), options_(options) {}

  sweep_outcome run() {
    look_before();
    const std::size_t cores = options_.threads == 0 ? std::max(1U, std::thread::hardware_concurrency()) : options_.threads;
    workers_.resize(std::min<std::size_t>(cores, waiting_.size()));
    report();
    while (!stopped() && (!waiting_.empty() || busy() > 0)) {
      feed();
      listen();
    }
    out_.left += waiting_.size() + busy();
    return out_;
  }

 private:
  [[nodiscard]] bool stopped() const { return options_.stop != nullptr && *options_.stop; }
  [[nodiscard]] std::size_t busy() const {
    return static_cast<std::size_t>(std::count_if(workers_.begin(), workers_.end(), [](const auto& w) { return w && w->at; }));
  }
  void report() const {
    if (!options_.progress) return;
    const std::uint64_t lost = out_.lost.size();
    options_.progress({out_.before + out_.ran + lost, out_.tasks, out_.failed, lost});
  }

  void look_at(std::uint64_t index) {
    ++out_.tasks;
    const sweep_task t = c_.task(index);
    const sweep_folder::state state = folder_.look(c_, t.key);
    if (state == sweep_folder::state::other_build)
      throw format_error(folder_.file_of(t.key).string() +
                         ": another build of deltaproof made this result; give -o a new folder for each build");
    if (state == sweep_folder::state::done) {
      ++out_.before;
      return;
    }
    if (state == sweep_folder::state::damaged) ++out_.damaged;
    if (folder_.tries(t.key).size() >= most_tries) {
      out_.lost.push_back(t);
      return;
    }
    waiting_.push_back(index);
  }

  void look_before() {
    if (options_.only.empty()) {
      std::uint64_t i = options_.shard.index;
      for (; i < c_.count() && !stopped(); i += options_.shard.count) look_at(i);
      if (i < c_.count()) out_.left = (c_.count() - i - 1) / options_.shard.count + 1;
      out_.tasks += out_.left;
    } else {
      for (const std::uint64_t i : options_.only) look_at(i);
    }
  }

  /// The next task that nobody else has done meanwhile.
  std::optional<sweep_task> next() {
    while (!waiting_.empty()) {
      const sweep_task t = c_.task(waiting_.front());
      waiting_.pop_front();
      if (folder_.look(c_, t.key) != sweep_folder::state::done) return t;
      ++out_.before;
      report();
    }
    return {};
  }

  void feed() {
    for (std::unique_ptr<worker>& w : workers_) {
      if (!w && !waiting_.empty()) w = std::make_unique<worker>(options_.worker);
      if (!w || w->at || !w->ready()) continue;
      if (const auto t = next()) (void)w->give(*t);  // one that has ended is found by listen
    }
  }

  void listen() {
    std::vector<pollfd> sockets;
    std::vector<std::size_t> whose;
    for (std::size_t i = 0; i < workers_.size(); ++i) {
      if (!workers_[i]) continue;
      sockets.push_back({workers_[i]->socket(), POLLIN, 0});
      whose.push_back(i);
    }
    if (sockets.empty() || (busy() == 0 && waiting_.empty())) return;
    if (::poll(sockets.data(), sockets.size(), 200) <= 0) return;
    for (std::size_t s = 0; s < sockets.size(); ++s) {
      if (sockets[s].revents != 0) hear(workers_[whose[s]]);
    }
  }

  void hear(std::unique_ptr<worker>& w) {
    bool ended = false;
    const auto line = w->line(ended);
    if (w->ready()) starts_lost_ = 0;
    if (line && w->at && line->starts_with(w->at->key)) {
      ++out_.ran;
      if (line->ends_with(" failed")) ++out_.failed;
      if (!folder_.tries(w->at->key).empty()) folder_.forget_tries(w->at->key);
      w->at.reset();
      report();
    } else if (line) {
      throw format_error("sweep: a worker wrote " + in_quotes(*line) +
                         " to stdout; it may write only the key and state of its task");
    } else if (ended) {
      bury(w);
    }
  }

  /// A process that ended in a task: the task is tried again, last, or lost.
  void bury(std::unique_ptr<worker>& w) {
    const int status = w->end();
    const std::string how = how_it_ended(status);
    const std::optional<sweep_task> at = w->at;
    const bool was_ready = w->ready();
    w.reset();
    if (stopped()) {
      if (at) waiting_.push_back(at->index);
      return;
    }
    // A worker may be killed at any time, also while it starts. One that exits by itself then cannot work.
    if (!was_ready && (!WIFSIGNALED(status) || ++starts_lost_ == most_tries))
      throw format_error("sweep: a worker process ended before its first task: " + how +
                         (WIFSIGNALED(status)
                              ? ", " + std::to_string(most_tries) + " times in a row; if memory ran out, give fewer --threads"
                              : std::string("; its own error message is above, if it wrote one")) +
                         "; finished tasks are kept, and the same command runs the rest");
    if (!at) return;
    folder_.add_try(c_, *at, how);
    if (folder_.tries(at->key).size() >= most_tries) {
      out_.lost.push_back(*at);
    } else {
      waiting_.push_back(at->index);
    }
    report();
  }

  const campaign& c_;
  const sweep_folder& folder_;
  const sweep_options& options_;
  std::deque<std::uint64_t> waiting_;
  std::vector<std::unique_ptr<worker>> workers_;
  std::size_t starts_lost_ = 0;  // workers in a row that were killed while they started
  sweep_outcome out_;
};

}  // namespace

sweep_outcome run_sweep(const campaign& c, const sweep_folder& folder, const sweep_options& options) {
  require_threads(options.threads);
  if (options.worker.empty())
    throw format_error("sweep: sweep_options::worker is empty; set it to the program that runs tasks, with its arguments");
  folder.open(c);
  return driver(c, folder, options).run();
}

void work_off(const campaign& c, const sweep_folder& folder, std::istream& in, std::ostream& out, const std::atomic<bool>* stop,
              const task_runner& runner) {
  out << "ready\n" << std::flush;
  std::uint64_t index = 0;
  std::string key;
  while (in >> index >> key) {
    const sweep_task t = c.task(index);
    if (t.key != key)
      throw format_error(c.file.string() + ": task " + std::to_string(index) +
                         " has changed since the sweep began; start the sweep again");
    const auto payload = runner(c, t, stop);
    if (!payload) return;
    folder.keep(key, *payload);
    const auto made = nlohmann::ordered_json::parse(*payload);
    out << key << " " << made["state"].get<std::string>() << '\n' << std::flush;
  }
}

}  // namespace deltaproof
