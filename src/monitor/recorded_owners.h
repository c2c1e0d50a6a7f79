// Whose the memory of a recorded process is now, by category and component: what metrics tell of it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <optional>
#include <vector>

#include "analyze/attribution/attributed_store.h"
#include "analyze/attribution/attribution.h"

namespace tidemark {

/// Bytes of a device, by the values of the enumerations. None: nothing was ever of it. What was, and is not now, is 0.
struct RecordedOwners {
  Device device;
  std::array<std::optional<std::uint64_t>, std::size(kCategoryNames)> categories = {};
  std::array<std::optional<std::uint64_t>, std::size(kComponentNames)> components = {};
};

/// Replaces what `owners` says by what is alive at the end of a recording, or of its window. The categories of a device
/// add up to what its allocator holds, and so do the components. Memory of the driver is left out. Nothing where the
/// recording has no attribution.
void add_up_owners(std::vector<RecordedOwners>& owners, const AttributedStore& store);

}  // namespace tidemark
