// Live blocks at a given time, grouped by stack, size, device, thread, stream, pool, annotation or owner.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "analyze/attribution/attribution.h"
#include "analyze/attribution/groups.h"
#include "analyze/common/block_filter.h"
#include "analyze/common/moment.h"
#include "analyze/common/recording_info.h"
#include "analyze/common/stack_names.h"
#include "base/enum_names.h"
#include "base/result.h"
#include "store/store.h"
#include "store/symbols.h"

namespace tidemark {

enum class GroupBy : std::uint8_t {
  stack,
  size,
  device,
  thread,
  stream,
  pool,
  annotation,
  // As OwnerKind.
  category,
  component,
  layer,
  module,
  phase,
  step,
};
inline constexpr EnumName<GroupBy> kGroupByNames[] = {{GroupBy::stack, "stack"},
                                                      {GroupBy::size, "size"},
                                                      {GroupBy::device, "device"},
                                                      {GroupBy::thread, "thread"},
                                                      {GroupBy::stream, "stream"},
                                                      {GroupBy::pool, "pool"},
                                                      {GroupBy::annotation, "annotation"},
                                                      {GroupBy::category, "category"},
                                                      {GroupBy::component, "component"},
                                                      {GroupBy::layer, "layer"},
                                                      {GroupBy::module, "module"},
                                                      {GroupBy::phase, "phase"},
                                                      {GroupBy::step, "step"}};
[[nodiscard]] constexpr std::string_view name_of(GroupBy by) {
  return name_in(kGroupByNames, by);
}

/// Whether TableOptions::attribution must be given.
[[nodiscard]] constexpr bool needs_attribution(GroupBy by) {
  return value_in(kOwnerKindNames, name_of(by)).has_value();
}

struct TableOptions {
  GroupBy by = GroupBy::stack;
  Moment at;
  std::optional<std::string> device;         ///< only this one: "cuda:0"
  std::size_t top = 20;                      ///< rows to list in each section; 0 = all
  const Attribution* attribution = nullptr;  ///< see needs_attribution()
  BlockFilter filter = {};
};

struct BlockSize {
  std::uint64_t bytes = 0;  ///< of each block of the row
};

/// A device, and the time of its live blocks (peaks of devices differ).
struct DeviceAt {
  Device device;
  std::optional<std::uint64_t> at_ns;
};

/// A CUDA stream by its handle; 0 is the default one.
struct StreamHandle {
  std::uint64_t handle = 0;
};

/// The program's annotations of blocks when they were allocated, see annotations_of_blocks().
struct BlockAnnotation {
  std::optional<std::string> name;  ///< nullopt: no annotation
};

struct TableRow {
  std::variant<NamedStack, BlockSize, DeviceAt, ThreadInfo, StreamHandle, PoolId, BlockAnnotation, BlockOwner> key;
  std::uint64_t bytes = 0;  ///< by device: allocated in all; otherwise in recorded blocks
  std::uint64_t blocks = 0;
  double share = 0;                        ///< of the section's allocated_bytes
  std::optional<NamedStack> most_by = {};  ///< by pool: the stack with most of these bytes; nullopt if none is known
  std::uint64_t stacks = 1;  ///< by stack: how many were put together, as they differ in the called modules alone
};

/// One device; by device, a single section of all.
struct TableSection {
  std::optional<DeviceAt> device;
  std::uint64_t allocated_bytes = 0;
  std::uint64_t unrecorded_bytes = 0;  ///< of these, in no recorded block and so in no row
  std::vector<TableRow> rows;          ///< most bytes first; by device, in the order of devices
  std::uint64_t other_rows = 0;        ///< beyond the listed ones
  std::uint64_t other_bytes = 0;
  std::uint64_t other_blocks = 0;
};

struct Table {
  RecordingInfo recording;
  GroupBy by = GroupBy::stack;
  std::vector<TableSection> sections;
};

/// Fails when the recording does not contain the requested device or the property to group by.
Result<Table> analyze_table(const Store& store, Symbols& symbols, const TableOptions& options);

}  // namespace tidemark
