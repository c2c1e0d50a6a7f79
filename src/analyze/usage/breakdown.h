// Memory at a point in time, by component, layer or module × category × phase.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "analyze/advice/advice.h"
#include "analyze/attribution/attribution.h"
#include "analyze/attribution/groups.h"
#include "analyze/common/block_filter.h"
#include "analyze/common/moment.h"
#include "analyze/common/recording_info.h"
#include "base/result.h"
#include "store/store.h"
#include "store/symbols.h"

namespace tidemark {

struct Leaks;

struct BreakdownOptions {
  std::optional<OwnerKind> by;  ///< the first of BreakdownDevice::groups; nullopt: the first one with data
  Moment at;
  std::optional<std::string> device;  ///< only this one: "cuda:0"
  std::size_t top = 20;               ///< rows of each of the groups to list; 0 = all
  BlockFilter filter = {};
};

/// Blocks that have something in common.
struct OwnedBytes {
  std::uint64_t bytes = 0;
  std::uint64_t blocks = 0;
  double share = 0;  ///< share of the device's allocated bytes
};

struct CategoryBytes : OwnedBytes {
  Category category = Category::unknown;
  std::uint64_t exact_bytes = 0;   ///< bytes with a category known from pointers
  std::uint64_t tensor_bytes = 0;  ///< of the storages in these, as reported by the program; allocators round up

  /// Confidence of the category of all these blocks.
  [[nodiscard]] Confidence confidence() const {
    if (category == Category::unknown) return Confidence::unknown;
    return exact_bytes == bytes ? Confidence::exact : Confidence::estimated;
  }
};

/// Part of a row in one category, allocated in one phase.
struct BreakdownCell {
  Category category = Category::unknown;
  Phase phase = Phase::other;
  Confidence confidence = Confidence::unknown;
  std::uint64_t bytes = 0;
  std::uint64_t blocks = 0;
};

struct BreakdownRow : OwnedBytes {
  BlockOwner owner;
  std::uint32_t order = 0;           ///< of layers and modules: as in the model; other code comes behind them
  std::vector<BreakdownCell> cells;  ///< in the order of categories, then of phases; their sum is the row

  [[nodiscard]] std::uint64_t bytes_of(Category category) const;
};

/// The same blocks by one property.
struct BreakdownGroup {
  OwnerKind kind = OwnerKind::component;
  std::vector<BreakdownRow> rows;  ///< most bytes first
  std::uint64_t other_rows = 0;    ///< beyond the listed ones
  std::uint64_t other_bytes = 0;
  std::uint64_t other_blocks = 0;
};

/// Categories and unrecorded_bytes add up to allocated_bytes, and so do the rows of each group.
struct BreakdownDevice {
  Device device;
  std::optional<std::uint64_t> at_ns;
  std::uint64_t allocated_bytes = 0;
  std::uint64_t unrecorded_bytes = 0;     ///< of these, in no recorded block
  std::vector<CategoryBytes> categories;  ///< categories that hold memory, most bytes first; unknown last
  /// By BreakdownOptions::by, then by the remaining ones of component, phase and module with data; the same for all
  /// devices.
  std::vector<BreakdownGroup> groups;
};

struct Breakdown {
  RecordingInfo recording;
  std::vector<BreakdownDevice> devices;
};

/// Fails if the recording does not contain the requested device, or has no data for the requested breakdown.
Result<Breakdown> analyze_breakdown(const Store& store, const Symbols& symbols, const Attribution& attribution,
                                    const BreakdownOptions& options);

/// Empty if the breakdown does not contain the device.
[[nodiscard]] std::vector<CategoryBytes> categories_of(const Breakdown& breakdown, Device device);

/// Summary of the owners of a recording's memory: for commands that go on with an overview.
struct PeakOwners {
  std::shared_ptr<const Breakdown> breakdown;   ///< at the peak; null if the recording has no data for it
  std::vector<std::vector<Advice>> advice;      ///< by index into Overview::devices; empty if it has no data
  std::shared_ptr<const Leaks> leaks = {};      ///< null if none was found
  std::vector<std::uint64_t> model_bytes = {};  ///< model_peaks(), by index into Overview::devices
};

/// Of each device, the maximum that parameters, gradients and optimizer states held at one time: memory that does not
/// depend on the batch.
[[nodiscard]] std::vector<std::uint64_t> model_peaks(const Store& store, const Attribution& attribution);

}  // namespace tidemark
