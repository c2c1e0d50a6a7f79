// Loads a PyTorch snapshot into a Store, for all analyses.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "import/pytorch_snapshot/model/snapshot.h"
#include "import/pytorch_snapshot/replay/replay.h"
#include "store/store.h"
#include "trace/event.h"

namespace tidemark::pytorch {

/// Something that happened, and the allocator's totals after it.
struct ReplayedEvent {
  enum class Kind : std::uint8_t {
    event,           ///< `event`, and for an allocation `details`
    out_of_memory,   ///< `event` and `failed`
    segment_change,  ///< `segment`; of `event` only time and device mean something
    completion,      ///< completes the delayed free of the block with event.slot
    annotation,      ///< details.metadata is about the block with event.slot
    totals,          ///< only the totals changed; of `event` only time and device mean something
  };
  Kind kind = Kind::event;
  Event event;
  BlockDetails details;
  OutOfMemoryDetails failed;
  SegmentChange segment;
  AllocatorTotals totals;
  bool held_back = false;  ///< a free that is not completed at once
};

/// Facts about a snapshot, apart from its events.
struct SnapshotFacts {
  std::uint64_t entry_count = 0;
  std::optional<std::uint64_t> start_wall_ns;  ///< of the first entry; nullopt without entries
  /// `external_annotations`, and the entries `user_defined`: marks named by their user_metadata, or without a name.
  /// In no particular order.
  std::vector<Mark> marks;
  std::vector<QualityIssue> issues;
};

/// Replays all devices. `take` receives first the blocks from before the trace at time 0, then, after one call of
/// `begin`, the entries in the order of time.
///
/// A block dies when its free is requested: from then on PyTorch does not count it as allocated. If the free is
/// completed at once, its bytes are not pending in between.
SnapshotFacts replay_events(const Snapshot& snapshot, const std::function<void(const ReplayedEvent&)>& take,
                            const std::function<void()>& begin);

/// As load_overview() and load_store() for recordings. Errors name the file and, of a pickle, the offset.
Result<Overview> load_overview(const std::string& path, const Progress& progress = {});
Result<Store> load_store(const std::string& path, const Progress& progress = {});

/// The same of a snapshot that was read from `path`.
Overview make_overview(Snapshot snapshot, const std::string& path);
Result<Store> make_store(Snapshot snapshot, const std::string& path);

}  // namespace tidemark::pytorch
