// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT

#include "support/mapped_bytes.hpp"

#if __has_include(<sys/mman.h>)
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#define DELTAPROOF_MAPS_FILES
#endif

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <string>

namespace deltaproof::detail {

#ifdef DELTAPROOF_MAPS_FILES
namespace {

/// What a signal handler may read of a mapping.
struct known_mapping {
  std::atomic<bool> taken{false};
  std::atomic<std::uintptr_t> begin{0}, end{0};
  std::array<char, 1024> name{};
};
std::array<known_mapping, 8> known_mappings;

known_mapping* remember(const void* address, std::size_t size, const std::filesystem::path& path) {
  for (known_mapping& one : known_mappings) {
    if (one.taken.exchange(true)) continue;
    const std::string name = path.string();
    one.name[name.copy(one.name.data(), one.name.size() - 1)] = '\0';
    one.end = reinterpret_cast<std::uintptr_t>(address) + size;
    one.begin = reinterpret_cast<std::uintptr_t>(address);
    return &one;
  }
  return nullptr;
}

void forget_mapping(known_mapping* one) {
  if (one == nullptr) return;
  one->begin = one->end = 0;
  one->taken = false;
}

/// Owns a mapping and the open file behind it; what tells mapped bytes from others.
struct unmap {
  void* address = nullptr;
  std::size_t size = 0;
  int descriptor = -1;
  struct stat status = {};
  known_mapping* known = nullptr;

  void operator()(const std::byte*) const {
    forget_mapping(known);
    ::munmap(address, size);
    ::close(descriptor);
  }
};

}  // namespace

shared_bytes map_file(const std::filesystem::path& path, std::size_t size) {
  unmap owner;
  owner.size = size;
  owner.descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (owner.descriptor < 0) return {};
  const bool known = ::fstat(owner.descriptor, &owner.status) == 0 && static_cast<std::size_t>(owner.status.st_size) == size;
  owner.address = known ? ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, owner.descriptor, 0) : MAP_FAILED;
  if (owner.address == MAP_FAILED) {
    ::close(owner.descriptor);
    return {};
  }
  owner.known = remember(owner.address, size, path);
  return {static_cast<const std::byte*>(owner.address), owner};
}

bool changed_since_mapped(const shared_bytes& bytes) {
  const unmap* owner = std::get_deleter<unmap>(bytes);
  if (owner == nullptr) return false;
  struct stat now = {};
  if (::fstat(owner->descriptor, &now) != 0) return true;
  const struct stat& then = owner->status;
  return now.st_size != then.st_size || now.st_mtim.tv_sec != then.st_mtim.tv_sec || now.st_mtim.tv_nsec != then.st_mtim.tv_nsec;
}

void forget(const shared_bytes& bytes, const std::byte* first, std::size_t count) {
  const unmap* owner = std::get_deleter<unmap>(bytes);
  if (owner == nullptr || count == 0) return;
  // Whole pages: what else lies on the outer ones is read again from the file.
  const auto page = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
  const std::size_t before = reinterpret_cast<std::uintptr_t>(first) % page;
  const std::size_t pages = (before + count + page - 1) / page;
  static_cast<void>(
      ::madvise(const_cast<std::byte*>(first) - before, pages * page, MADV_DONTNEED));  // its failure changes nothing
}

const char* mapped_file_at(const void* address) noexcept {
  const auto at = reinterpret_cast<std::uintptr_t>(address);
  for (const known_mapping& one : known_mappings) {
    if (at >= one.begin && at < one.end) return one.name.data();
  }
  return nullptr;
}
#else
shared_bytes map_file(const std::filesystem::path&, std::size_t) { return {}; }
bool changed_since_mapped(const shared_bytes&) { return false; }
void forget(const shared_bytes&, const std::byte*, std::size_t) {}
const char* mapped_file_at(const void*) noexcept { return nullptr; }
#endif

}  // namespace deltaproof::detail
