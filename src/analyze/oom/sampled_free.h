// How much of a device was free when a request failed, by the samples of a recording.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "store/store.h"

namespace tidemark {

/// The device had this much free when the request failed, if what is outside PyTorch was as in the last sample before.
struct SampledFree {
  std::uint64_t capacity = 0;
  std::uint64_t free = 0;
  std::uint64_t at_ns = 0;
};

/// One for each of `failures` (indexes into Overview::out_of_memory), in one pass over the store's events. None where
/// the source says it itself, or the samples do not tell.
[[nodiscard]] std::vector<std::optional<SampledFree>> sampled_free(const Store& store,
                                                                   const std::vector<std::size_t>& failures);

}  // namespace tidemark
