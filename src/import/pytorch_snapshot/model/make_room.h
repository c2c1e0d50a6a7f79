// How the large columns of a snapshot grow.
#pragma once

#include <sys/mman.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace tidemark::pytorch {

/// Asks for large pages, of which filling a column needs a few dozen instead of tens of thousands. A refusal does no
/// harm.
inline void use_large_pages(const void* begin, std::size_t bytes) {
  constexpr std::uintptr_t kPage = 4096;
  const std::uintptr_t first = (reinterpret_cast<std::uintptr_t>(begin) + kPage - 1) / kPage * kPage;
  const std::uintptr_t last = (reinterpret_cast<std::uintptr_t>(begin) + bytes) / kPage * kPage;
  if (first < last) ::madvise(reinterpret_cast<void*>(first), last - first, MADV_HUGEPAGE);
}

/// Gives a full column more room. `share_read` of the file was read: a large column is given about the room that the
/// whole file will need, so that it is copied seldom. Nothing is written there, so it costs no memory yet.
template <typename T>
[[gnu::noinline]] void grow_column(std::vector<T>& column, double share_read) {
  constexpr std::size_t kLarge = 1U << 16;
  const std::size_t size = column.size();
  const double growth = size < kLarge ? 2.0 : std::clamp(1.1 / std::max(share_read, 0.01), 1.25, 64.0);
  column.reserve(std::max<std::size_t>(64, static_cast<std::size_t>(static_cast<double>(size) * growth)));
  if (size >= kLarge) use_large_pages(column.data(), column.capacity() * sizeof(T));
}

/// Makes room for one more.
template <typename T>
void make_room(std::vector<T>& column, double share_read) {
  if (column.size() == column.capacity()) grow_column(column, share_read);
}

}  // namespace tidemark::pytorch
