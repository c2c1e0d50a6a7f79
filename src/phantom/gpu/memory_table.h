// What each process of a plan holds of the phantom GPUs, in the file `memory` of the phantom's folder: written by the
// processes (device_memory.h), read by them and by `tidemark plan`.
#pragma once

#include <cstdint>

#include "phantom/gpu/address_space.h"

namespace tidemark::phantom {

/// The file. All zeros at first; places are given out in order and used again when their process has ended.
struct MemoryTable {
  static constexpr int kMaxProcesses = 1024;

  struct Process {
    std::int32_t number;  ///< getpid(); 0: the place was never used
    bool context[kMaximumDevices];
    std::uint64_t bytes[kMaximumDevices];  ///< without the context
  };

  Process processes[kMaxProcesses];
  std::uint64_t peaks[kMaximumDevices];  ///< the most that all processes held of a device at once, with their contexts
};

}  // namespace tidemark::phantom
