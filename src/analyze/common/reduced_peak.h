// What a device's peak would be without some of its blocks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "analyze/common/earlier_frees.h"
#include "store/store.h"

namespace tidemark {

struct ReducedPeak {
  std::uint64_t bytes = 0;             ///< allocated, at most
  std::optional<std::uint64_t> at_ns;  ///< the first time; none when nothing was allocated
};

/// The peak of allocated memory if these blocks had been away in these times, and everything else had happened as it
/// did. A block may be listed several times, for times that do not overlap. Time n log n for n frees.
[[nodiscard]] ReducedPeak reduced_peak(const Store& store, std::size_t device,
                                       const std::vector<EarlierFree>& earlier_frees);

}  // namespace tidemark
