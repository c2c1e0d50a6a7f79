// How the large columns of a snapshot grow.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

namespace tidemark::pytorch {

/// Makes room for one more. `share_read` is the share of the file that was read: a large column is given about the room
/// that the whole file will need, so that it is copied seldom. Nothing is written there, so it costs no memory yet.
template <typename T>
void make_room(std::vector<T>& column, double share_read) {
  constexpr std::size_t kLarge = 1U << 16;
  if (column.size() < column.capacity()) return;
  const std::size_t size = column.size();
  const double growth = size < kLarge ? 2.0 : std::clamp(1.05 / std::max(share_read, 0.01), 1.25, 32.0);
  column.reserve(std::max<std::size_t>(64, static_cast<std::size_t>(static_cast<double>(size) * growth)));
}

}  // namespace tidemark::pytorch
