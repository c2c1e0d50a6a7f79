// What is copied, cut into what a pinned chunk takes: arrays that are larger are cut, small ones share a chunk.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "inprocess/cuda/cuda_driver.h"

namespace tidemark {

/// An array that is to be copied to a device.
struct HostArrayCopy {
  const std::byte* from = nullptr;
  cuda::DevicePointer to = 0;
  std::size_t bytes = 0;
  bool pinned = false;  ///< the device can read it where it is
};

/// What is copied with one chunk; a pinned array is alone and needs none.
struct ChunkLoad {
  std::vector<HostArrayCopy> copies;
  bool pinned = false;
};

/// Arrays of no bytes are left out. `chunk_bytes` > 0.
[[nodiscard]] std::vector<ChunkLoad> cut_into_loads(std::span<const HostArrayCopy> copies, std::size_t chunk_bytes);

}  // namespace tidemark
