// Observes all calls of operators in the planned program (at::RecordFunction), to know their results.
#pragma once

#include <cstdint>

namespace tidemark::phantom {

// For the script, on the arithmetic's thread; each returns 1 if all is well.

/// Registers the observer, which only checks the layout of the next call at first.
int observe_calls();
/// Whether the storage of the tensor is read as it is.
int check_tensor(void* tensor, void* data, std::int64_t bytes);
/// Whether the latest call of aten::full([2, 3], 2.5, dtype=float32, layout=None, device=cpu, pin_memory=False) was
/// read as such, with `result` as its result.
int check_call(void* result);

/// From now on, calls on other threads are observed.
void begin_observation();

}  // namespace tidemark::phantom
