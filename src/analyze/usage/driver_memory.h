// What libraries hold of each GPU by their calls to the CUDA driver: the memory that is not the caching allocator's.
#pragma once

#include <cstdint>
#include <map>
#include <optional>

#include "analyze/common/totals.h"
#include "analyze/ledger/memory_owner.h"
#include "store/store.h"

namespace tidemark {

/// Follows the events of a store. Bytes are the sum of the `library` lines of a ledger of the same time, but for what
/// PyTorch's allocator has beyond its reserved memory. The store must outlive it and not change.
class DriverBytes {
 public:
  explicit DriverBytes(const Store& store) : store_(store), owners_(store.definitions) {}

  /// To be called for each state of walk_totals(). Returns the GPU whose bytes it changed, if it did.
  std::optional<Device> take(const DeviceTotals& totals);
  /// Held by libraries so far.
  [[nodiscard]] std::uint64_t bytes(Device gpu) const;

  /// Whether calls to the driver were recorded, and the device is one that they can be about.
  [[nodiscard]] static bool known(const Overview& overview, Device device);

 private:
  const Store& store_;
  MemoryOwners owners_;
  std::uint64_t taken_ = 0;             // of Store::live_changes, so many were taken
  std::map<int, std::uint64_t> bytes_;  // by the GPU's index
};

}  // namespace tidemark
