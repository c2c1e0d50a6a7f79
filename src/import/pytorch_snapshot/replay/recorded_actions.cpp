#include "import/pytorch_snapshot/replay/recorded_actions.h"

#include <algorithm>

#include "import/pytorch_snapshot/model/address_table.h"

namespace tidemark::pytorch {
namespace {

bool has(const DeviceTrace& trace, Action action) {
  return std::any_of(trace.entries.begin(), trace.entries.end(),
                     [&](const TraceEntry& entry) { return entry.action == action; });
}

bool completes_own_blocks(const DeviceTrace& trace) {
  AddressTable allocated;
  return std::any_of(trace.entries.begin(), trace.entries.end(), [&](const TraceEntry& entry) {
    const bool known = allocated.find(entry.address) != AddressTable::kNone;
    if (entry.action == Action::allocate && !known) allocated.insert(entry.address, 0);
    return entry.action == Action::free_completed && known;
  });
}

bool leaves_requests_pending(const Snapshot& snapshot, const DeviceTrace& trace) {
  AddressTable pending;
  for (const SnapshotSegment& segment : snapshot.segments) {
    if (segment.device != trace.device) continue;
    for (const SnapshotBlock& block : segment.blocks) {
      if (block.state != BlockState::active_pending_free || pending.find(block.address) != AddressTable::kNone)
        continue;
      pending.insert(block.address, 0);
    }
  }
  return std::all_of(trace.entries.begin(), trace.entries.end(), [&](const TraceEntry& entry) {
    return entry.action != Action::free_requested || pending.find(entry.address) != AddressTable::kNone;
  });
}

}  // namespace

RecordedActions find_recorded_actions(const Snapshot& snapshot, const DeviceTrace& trace) {
  RecordedActions recorded;
  const bool requests = has(trace, Action::free_requested);
  const bool completions = has(trace, Action::free_completed);
  if (completions && !requests) recorded.requests = !completes_own_blocks(trace);
  if (requests && !completions) recorded.completions = leaves_requests_pending(snapshot, trace);
  return recorded;
}

}  // namespace tidemark::pytorch
