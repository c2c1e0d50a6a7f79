// Ways in which a recording can be incomplete. Header-only: the recorded process uses it too.
#pragma once

#include <cstdint>

namespace tidemark {

enum class LossKind : std::uint8_t {
  ring_full = 0,           ///< error: events dropped because the rings were full
  reentrant = 1,           ///< warning: events inside a signal handler that interrupted the hook
  thread_limit = 2,        ///< error: events of threads beyond the limit
  disk = 3,                ///< error: writing stopped (disk full, quota, I/O error); text says which
  size_limit = 4,          ///< warning: writing stopped because --max-size was reached
  python_unsupported = 5,  ///< warning: no Python stacks; text names the version
  native_unsupported = 6,  ///< warning: no native stacks; text says why
  stack_truncated = 7,     ///< info: stacks deeper than the limit, cut at the root end
  recorder_gone = 8,       ///< error: the recorder ended before the program
  unknown_record = 9,      ///< warning: records or frames of a kind this reader does not know (counted when reading)
  torn_tail = 10,          ///< warning: bytes at the end that are no whole frame (counted when reading)
  protocol = 11,           ///< error: the program's side wrote something the recorder could not understand
  device_lost = 12,        ///< warning: a device stopped answering: no samples of it from then on; text names it
  driver_off = 13,         ///< warning: the CUDA driver's memory is not recorded, or no more; text says why
  driver_frees = 14,       ///< info: memory given back to the CUDA driver that was not seen being taken
};

}  // namespace tidemark
