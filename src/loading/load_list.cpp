#include "loading/load_list.h"

#include <algorithm>

namespace tidemark {

std::vector<ChunkLoad> cut_into_loads(std::span<const HostArrayCopy> copies, std::size_t chunk_bytes) {
  std::vector<ChunkLoad> loads;
  ChunkLoad load;
  std::size_t room = chunk_bytes;
  const auto close = [&] {
    if (!load.copies.empty()) loads.push_back(std::move(load));
    load = {};
    room = chunk_bytes;
  };
  for (HostArrayCopy rest : copies) {
    if (rest.pinned && rest.bytes > 0) {
      loads.push_back({{rest}, true});
      continue;
    }
    while (rest.bytes > 0) {
      const std::size_t bytes = std::min(rest.bytes, room);
      load.copies.push_back({rest.from, rest.to, bytes, false});
      rest.from += bytes;
      rest.to += bytes;
      rest.bytes -= bytes;
      room -= bytes;
      if (room == 0) close();
    }
  }
  close();
  return loads;
}

}  // namespace tidemark
