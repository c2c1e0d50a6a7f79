// Ring memory in the test's own process, between inaccessible pages: an access outside it ends the test.
#pragma once

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <bit>
#include <cstddef>
#include <cstdint>

#include "collect/ring/layout.h"

namespace tidemark::testing {

class RingMemory {
 public:
  RingMemory() {
    void* mapped = ::mmap(nullptr, sizeof(ring::Shared) + 2 * kGuard, PROT_NONE,
                          MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (mapped == MAP_FAILED) std::abort();
    begin_ = static_cast<std::byte*>(mapped);
    if (::mprotect(begin_ + kGuard, sizeof(ring::Shared), PROT_READ | PROT_WRITE) != 0) std::abort();
    clear();
  }
  ~RingMemory() { ::munmap(begin_, sizeof(ring::Shared) + 2 * kGuard); }
  RingMemory(const RingMemory&) = delete;
  RingMemory& operator=(const RingMemory&) = delete;

  [[nodiscard]] ring::Shared* get() const { return reinterpret_cast<ring::Shared*>(begin_ + kGuard); }

  /// The state in which a process sends it: all zero, every chunk free.
  void clear() {
    ::madvise(begin_ + kGuard, sizeof(ring::Shared), MADV_DONTNEED);
    for (auto& word : get()->free_chunks) word.store(~std::uint64_t{0}, std::memory_order_relaxed);
  }

  [[nodiscard]] std::size_t free_chunks() const {
    std::size_t count = 0;
    for (const auto& word : get()->free_chunks) {
      count += static_cast<std::size_t>(std::popcount(word.load(std::memory_order_relaxed)));
    }
    return count;
  }

 private:
  static constexpr std::size_t kGuard = 64 * 1024;
  static_assert(sizeof(ring::Shared) % 4096 == 0, "the guard pages begin where the memory ends");

  std::byte* begin_;
};

}  // namespace tidemark::testing
