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
#include <thread>
#include <vector>

namespace deltaproof {

/// Frees what MPFR has cached for the current thread (constants, spare limbs): it outlives a thread otherwise.
struct mpfr_thread_caches {
  mpfr_thread_caches() = default;
  mpfr_thread_caches(const mpfr_thread_caches&) = delete;
  mpfr_thread_caches& operator=(const mpfr_thread_caches&) = delete;
  ~mpfr_thread_caches() { mpfr_free_cache2(MPFR_FREE_LOCAL_CACHE); }
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
  std::vector<std::thread> pool;
  for (unsigned w = 1; w < workers; ++w) {
    pool.emplace_back([&work] {
      const mpfr_thread_caches freed_at_the_end;
      work();
    });
  }
  if (count > 0) work();
  for (auto& thread : pool) thread.join();
  if (failure) std::rethrow_exception(failure);
}

}  // namespace deltaproof
