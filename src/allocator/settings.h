// What PYTORCH_CUDA_ALLOC_CONF sets, as far as it changes where blocks are placed and how large they are.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

namespace tidemark::pytorch {

/// The settings of PyTorch's caching allocator, with the names and values that `allocator_settings` of a memory
/// snapshot has (torch 2.3 and later). A value that is not known is nullopt; AllocatorRules takes PyTorch's default for
/// it.
struct AllocatorSettings {
  std::optional<std::int64_t> max_split_size;  ///< bytes; -1, as PyTorch writes it, where it was not set: no limit
  std::optional<double> garbage_collection_threshold;  ///< of the process's memory limit, 0 to 1; 0 = off
  std::optional<bool> expandable_segments;
  /// Size class → divisions; 0 or 1 = none. A class is named by its lower end in MiB, a power of two from 1 to 32768;
  /// the first holds all smaller sizes as well, the last all larger ones.
  std::map<std::uint64_t, std::uint64_t> roundup_power2_divisions;
  std::string text;  ///< PYTORCH_CUDA_ALLOC_CONF (or PYTORCH_ALLOC_CONF) as it was set
};

}  // namespace tidemark::pytorch
