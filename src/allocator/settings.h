// What PYTORCH_CUDA_ALLOC_CONF sets, as far as it changes where blocks are placed and how large they are.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

namespace tidemark {

/// Of PyTorch's caching allocator, as far as they change what it does.
struct AllocatorSettings {
  std::optional<std::int64_t> max_split_size;  ///< bytes; -1 = no limit
  std::optional<double> garbage_collection_threshold;
  std::optional<bool> expandable_segments;
  std::map<std::uint64_t, std::uint64_t> roundup_power2_divisions;  ///< MiB → divisions; 0 = none
  std::string text;                                                 ///< PYTORCH_CUDA_ALLOC_CONF
};

}  // namespace tidemark
