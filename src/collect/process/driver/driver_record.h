// Writes calls of the CUDA driver into the calling thread's lane.
#pragma once

#include <cstdint>
#include <initializer_list>

#include "collect/process/recording.h"

namespace tidemark::process {

/// A call that takes memory, with its stack: Python frames where they are recorded, and native ones always, because the
/// library that called is the owner. `device` is -1 where there is none.
void record_driver_allocation(ring::DriverCall call, int device, std::initializer_list<std::uint64_t> numbers,
                              const NativeContext& caller) noexcept;

/// Any other call.
void record_driver_call(ring::DriverCall call, int device, std::initializer_list<std::uint64_t> numbers) noexcept;

}  // namespace tidemark::process
