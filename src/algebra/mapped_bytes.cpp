// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT

#include "algebra/mapped_bytes.hpp"

#if __has_include(<sys/mman.h>)
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#define DELTAPROOF_MAPS_FILES
#endif

#include <cstdint>
#include <memory>

namespace deltaproof::detail {

#ifdef DELTAPROOF_MAPS_FILES
namespace {

/// Owns a mapping and the open file behind it; what tells mapped bytes from others.
struct unmap {
  void* address = nullptr;
  std::size_t size = 0;
  int descriptor = -1;
  struct stat status = {};

  void operator()(const std::byte*) const {
    ::munmap(address, size);
    ::close(descriptor);
  }
};

}  // namespace

shared_bytes map_file(const std::filesystem::path& path, std::size_t size) {
  unmap owner;
  owner.size = size;
  owner.descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (owner.descriptor < 0) return {};
  const bool known = ::fstat(owner.descriptor, &owner.status) == 0 && static_cast<std::size_t>(owner.status.st_size) == size;
  owner.address = known ? ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, owner.descriptor, 0) : MAP_FAILED;
  if (owner.address == MAP_FAILED) {
    ::close(owner.descriptor);
    return {};
  }
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
  const auto from = reinterpret_cast<std::uintptr_t>(first) / page * page;
  const auto to = (reinterpret_cast<std::uintptr_t>(first) + count + page - 1) / page * page;
  static_cast<void>(::madvise(reinterpret_cast<void*>(from), to - from, MADV_DONTNEED));  // a hint: its failure changes nothing
}
#else
shared_bytes map_file(const std::filesystem::path&, std::size_t) { return {}; }
bool changed_since_mapped(const shared_bytes&) { return false; }
void forget(const shared_bytes&, const std::byte*, std::size_t) {}
#endif

}  // namespace deltaproof::detail
