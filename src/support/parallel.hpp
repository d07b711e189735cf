// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// Runs independent jobs on several threads: `parallel_for(count, threads, job)` calls job(i) once for each i. The
// first exception is thrown again on the calling thread; jobs not yet begun are then dropped.
#pragma once

#include <mpfr.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <exception>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

namespace deltaproof {

/// More threads than any machine has are a slip, or a negative number.
inline constexpr unsigned most_threads = 4096;

/// Frees what MPFR has cached for the current thread (constants, spare limbs): it outlives a thread otherwise.
struct mpfr_thread_caches {
  mpfr_thread_caches() = default;
  mpfr_thread_caches(const mpfr_thread_caches&) = delete;
  mpfr_thread_caches& operator=(const mpfr_thread_caches&) = delete;
  ~mpfr_thread_caches() { mpfr_free_cache2(MPFR_FREE_LOCAL_CACHE); }
};

/// Threads that are joined when this goes. Where the system starts no more of them (a container's limit, no memory), those that
/// there are do the work.
class helpers {
 public:
  helpers() = default;
  helpers(const helpers&) = delete;
  helpers& operator=(const helpers&) = delete;
  ~helpers() { join(); }
  template <class Work>
  void start(std::size_t count, const Work& work) {
    threads_.reserve(count);
    try {
      while (threads_.size() < count) {
        threads_.emplace_back([&work] {
          const mpfr_thread_caches freed_at_the_end;
          work();
        });
      }
    } catch (const std::system_error&) {
      return;
    }
  }
  void join() {
    for (std::thread& thread : threads_) thread.join();
    threads_.clear();
  }

 private:
  std::vector<std::thread> threads_;
};

template <class Job>
void parallel_for(std::size_t count, unsigned threads, const Job& job) {
  const unsigned cores = std::max(1U, std::thread::hardware_concurrency());
  const auto workers = static_cast<unsigned>(std::min<std::size_t>(count, threads == 0 ? cores : threads));
  std::atomic<std::size_t> next{0};
  std::exception_ptr failure;
  std::mutex failure_lock;
  const auto work = [&] {
    for (std::size_t i = next++; i < count; i = next++) {
      try {
        job(i);
      } catch (...) {
        const std::lock_guard lock(failure_lock);
        if (!failure) failure = std::current_exception();
        next = count;
      }
    }
  };
  helpers others;
  if (workers > 1) others.start(workers - 1, work);
  if (count > 0) work();
  others.join();
  if (failure) std::rethrow_exception(failure);
}

/// The same in blocks of `most` neighbours and one of what is left: calls job(first, how many).
template <class Job>
void for_blocks(std::size_t count, std::size_t most, unsigned threads, const Job& job) {
  parallel_for((count + most - 1) / most, threads,
               [&](std::size_t block) { job(block * most, std::min(most, count - block * most)); });
}

}  // namespace deltaproof
