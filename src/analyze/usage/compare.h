// Differences between two runs: totals of each device, and stacks that hold more or less at the peak or allocate more
// or less over time.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "analyze/attribution/groups.h"
#include "analyze/common/holders.h"
#include "analyze/common/recording_info.h"
#include "analyze/common/stack_matching.h"
#include "analyze/common/stack_names.h"
#include "analyze/usage/breakdown.h"
#include "base/arithmetic.h"
#include "base/enum_names.h"
#include "base/result.h"
#include "store/store.h"
#include "store/symbols.h"

namespace tidemark {

/// How much more memory a run may take than another one: "5%" or "100MiB".
struct Budget {
  std::string text;       ///< as it was written
  bool relative = false;  ///< `amount` is in millionths of the other run's memory; otherwise in bytes
  std::uint64_t amount = 0;

  /// Whether `now` is more than the budget above `before`. Exact: at the limit is within it.
  [[nodiscard]] bool exceeded(std::uint64_t before, std::uint64_t now) const;
};

/// Reads a percentage with at most four decimals ("5%", "0.5%"), or a size as parse_size() does.
Result<Budget> parse_budget(std::string_view text);

enum class CompareBy : std::uint8_t {
  peak,     ///< bytes alive at the device's own peak
  traffic,  ///< the sum of all allocations
};
inline constexpr EnumName<CompareBy> kCompareByNames[] = {{CompareBy::peak, "peak"}, {CompareBy::traffic, "traffic"}};
[[nodiscard]] constexpr std::string_view name_of(CompareBy by) {
  return name_in(kCompareByNames, by);
}

struct CompareOptions {
  CompareBy by = CompareBy::peak;
  bool ignore_lines = false;          ///< stacks are equal even if line numbers have changed
  std::optional<std::string> device;  ///< only this one: "cuda:0"
  std::size_t top = 20;               ///< rows to list for each device; 0 = all
  std::optional<Budget> budget;       ///< allowed increase of B's peak allocated over A's
};

/// Totals of one stack on one device.
struct StackTotals {
  std::uint8_t device = 0;       ///< index into Overview::devices
  StackId stack;                 ///< as Holders::of() gives it
  std::uint64_t peak_bytes = 0;  ///< alive at the device's peak
  std::uint64_t peak_blocks = 0;
  std::uint64_t traffic_bytes = 0;
  std::uint64_t allocations = 0;
};

/// All of a recording that comparing needs: the columns of blocks are not.
struct ComparedRecording {
  Overview overview;
  std::vector<StackTotals> stacks;  ///< in order of devices and stacks
  std::optional<OwnerKind> by;      ///< they are owners
  std::map<StackId, BlockOwner> owners;
  std::string chosen_blocks;                        ///< as in RecordingInfo
  std::shared_ptr<const Breakdown> breakdown = {};  ///< at the peak; null if owners are unknown or blocks are chosen
};

/// With the blocks that `holders` lists. Devices keep the totals of all blocks.
[[nodiscard]] ComparedRecording reduce_for_compare(Store&& store, const Holders& holders = {});
[[nodiscard]] ComparedRecording reduce_for_compare(const Store& store, const Holders& holders = {});

/// A value in both runs.
struct ComparedValue {
  std::uint64_t a = 0;
  std::uint64_t b = 0;

  [[nodiscard]] std::int64_t change() const { return saturating_change(a, b); }
  bool operator==(const ComparedValue&) const = default;
};

/// A value of a device in both runs, if known.
struct ComparedTotal {
  std::optional<std::uint64_t> a;
  std::optional<std::uint64_t> b;

  [[nodiscard]] std::optional<std::int64_t> change() const {
    return a && b ? std::optional(saturating_change(*a, *b)) : std::nullopt;
  }
};

enum class ChangeKind : std::uint8_t {
  added,      ///< no block of the stack is in A on this device
  removed,    ///< not in B
  grew,       ///< more bytes, or as many in more blocks
  shrank,     ///< less
  unchanged,  ///< as many bytes in as many blocks
};
inline constexpr EnumName<ChangeKind> kChangeKindNames[] = {{ChangeKind::added, "added"},
                                                            {ChangeKind::removed, "removed"},
                                                            {ChangeKind::grew, "grew"},
                                                            {ChangeKind::shrank, "shrank"},
                                                            {ChangeKind::unchanged, "unchanged"}};
[[nodiscard]] constexpr std::string_view name_of(ChangeKind kind) {
  return name_in(kChangeKindNames, kind);
}

/// Changed stacks of one kind.
struct ChangeGroup {
  std::uint64_t stacks = 0;
  std::int64_t bytes = 0;  ///< the sum of their changes
};

struct ComparedStack {
  ChangeKind kind = ChangeKind::unchanged;
  NamedStack stack;  ///< as in B; as in A if it is not in B
  ComparedValue peak_bytes;
  ComparedValue peak_blocks;
  ComparedValue traffic_bytes;
  ComparedValue allocations;
};

/// Memory of a category at each run's own peak.
struct ComparedCategory {
  Category category = Category::unknown;
  ComparedValue bytes;
};

struct ComparedDevice {
  Device device;
  bool in_a = false;  ///< whether A has an event of this device; otherwise it has no totals, and no rows are listed
  bool in_b = false;
  ComparedTotal peak_allocated;
  ComparedTotal peak_reserved;
  ComparedTotal peak_active;
  ComparedTotal allocations;
  ComparedTotal traffic;
  ComparedTotal unrecorded_at_peak;          ///< of the peak, what is in no recorded block
  std::vector<ComparedCategory> categories;  ///< the largest change first; empty if owners are unknown in one run
  ChangeGroup added;
  ChangeGroup removed;
  ChangeGroup grew;
  ChangeGroup shrank;
  ChangeGroup unchanged;
  std::vector<ComparedStack> rows;  ///< without the unchanged; the largest change in bytes first
  std::uint64_t other_rows = 0;     ///< beyond the listed ones
  std::int64_t other_change = 0;    ///< the sum of their changes
};

/// A device with a peak allocated in B over A's by more than the budget.
struct OverBudget {
  Device device;
  std::optional<std::uint64_t> a;  ///< nullopt: not in A, counted from 0
  std::uint64_t b = 0;
};

struct Comparison {
  RecordingInfo a;
  RecordingInfo b;
  CompareBy by = CompareBy::peak;
  std::optional<OwnerKind> owners;  ///< the compared kind of owner, instead of stacks
  StackMatching matching;
  std::vector<ComparedDevice> devices;  ///< devices of A, then devices only in B
  std::optional<Budget> budget;
  std::vector<OverBudget> over_budget;
  std::uint64_t checked_devices = 0;  ///< number of devices compared with the budget
};

/// `symbols_a` and `symbols_b` resolve names in `a` and `b`. Fails if neither contains the requested device.
Result<Comparison> analyze_compare(const ComparedRecording& a, Symbols& symbols_a, const ComparedRecording& b,
                                   Symbols& symbols_b, const CompareOptions& options);

}  // namespace tidemark
