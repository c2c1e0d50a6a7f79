// Short-lived allocations: their stacks or owners, the traffic they cause, and the peak without them.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "analyze/attribution/attribution.h"
#include "analyze/attribution/groups.h"
#include "analyze/common/block_filter.h"
#include "analyze/common/recording_info.h"
#include "analyze/common/stack_names.h"
#include "base/result.h"
#include "store/store.h"
#include "store/symbols.h"

namespace tidemark {

struct TemporaryOptions {
  /// A block is temporary if it is freed after at most this number of other allocations on its device (as memray's
  /// --temporary-allocation-threshold counts, there for each thread).
  std::uint64_t within = 1;
  std::optional<std::string> device;         ///< only this one: "cuda:0"
  std::size_t top = 20;                      ///< rows to list for each device; 0 = all
  BlockFilter filter = {};                   ///< selects the temporary blocks that are listed and left out of the
                                             ///< reduced peak
  std::optional<OwnerKind> by = {};          ///< owner kind of rows; nullopt: stacks
  const Attribution* attribution = nullptr;  ///< of this store; needed for `by`
};

/// The temporary blocks of one stack or owner.
struct TemporaryRow {
  NamedStack stack;
  std::optional<BlockOwner> owner;  ///< instead of the stack
  std::uint64_t count = 0;
  std::uint64_t bytes = 0;  ///< the sum of their sizes: traffic, not memory alive at one time
  std::uint64_t largest_bytes = 0;
  std::optional<double> share;  ///< of the device's traffic; nullopt if that is 0
};

struct TemporaryDevice {
  DeviceSummary totals;
  std::uint64_t count = 0;
  std::uint64_t bytes = 0;
  std::optional<double> share;  ///< of totals.total_bytes_allocated; nullopt if that is 0
  /// The peak if these blocks had never been allocated, with everything else unchanged.
  std::uint64_t reduced_peak_bytes = 0;
  std::optional<std::uint64_t> reduced_peak_at_ns;  ///< its first time; nullopt if nothing else was allocated
  std::vector<TemporaryRow> rows;                   ///< most bytes first
  std::uint64_t other_rows = 0;                     ///< beyond the listed ones
  std::uint64_t other_count = 0;
  std::uint64_t other_bytes = 0;

  /// An upper bound of the saving without them.
  [[nodiscard]] std::uint64_t avoidable_peak_bytes() const {
    return totals.peak_allocated_bytes - std::min(totals.peak_allocated_bytes, reduced_peak_bytes);
  }
};

struct Temporary {
  RecordingInfo recording;
  std::uint64_t within = 0;
  std::optional<OwnerKind> by;  ///< as requested
  std::vector<TemporaryDevice> devices;
};

/// By block: whether it is freed after at most `within` other allocations on its device. False for a block from before
/// the first event, which was allocated at an unknown time.
[[nodiscard]] std::vector<bool> find_temporary(const Store& store, std::uint64_t within);

/// Fails when the recording does not contain the requested device or the property to group by.
Result<Temporary> analyze_temporary(const Store& store, Symbols& symbols, const TemporaryOptions& options);

}  // namespace tidemark
