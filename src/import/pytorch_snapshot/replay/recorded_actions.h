// Which of the two entries of a free a trace has.
#pragma once

#include "import/pytorch_snapshot/model/snapshot.h"

namespace tidemark::pytorch {

/// torch.cuda.memory._record_memory_history(skip_actions=…), of torch 2.9, leaves some kinds of entries out.
struct RecordedActions {
  bool requests = true;     ///< free_requested
  bool completions = true;  ///< free_completed
};

/// A trace that has one of them and not the other may also be the short rest of a long one, where blocks wait for
/// another stream. It is taken as that unless it contradicts it: a block allocated in it is completed, never requested;
/// or a block requested in it is not pending in the final segments. Time is linear.
RecordedActions find_recorded_actions(const Snapshot& snapshot, const DeviceTrace& trace);

}  // namespace tidemark::pytorch
