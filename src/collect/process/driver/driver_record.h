// Writes calls of the CUDA driver into the calling thread's lane.
#pragma once

#include <cstdint>
#include <initializer_list>

#include "collect/process/event_writer.h"

namespace tidemark::process {

/// A call that takes memory, with its stack: Python frames if they are recorded, and native frames always, because the
/// calling library is the owner. `device` is -1 if there is none. Returns the ticks that it recorded, 0 if recording is
/// off.
std::uint64_t record_driver_allocation(ring::DriverCall call, int device, std::initializer_list<std::uint64_t> numbers,
                                       const NativeContext& caller) noexcept;

/// Any other call, at the ticks `made`; 0 = now.
void record_driver_call(ring::DriverCall call, int device, std::initializer_list<std::uint64_t> numbers,
                        std::uint64_t made = 0) noexcept;

/// The calls of PyTorch's caching allocator for its segments (ring::RecordKind::allocator): allocate, create and map,
/// and free and unmap, at the ticks `made`.
void record_segment_taken(ring::DriverCall call, int device, std::initializer_list<std::uint64_t> numbers) noexcept;
void record_segment_given_back(ring::DriverCall call, std::initializer_list<std::uint64_t> numbers,
                               std::uint64_t made) noexcept;

/// Sets the ticks at which a call that releases memory was made, and 0 once it has returned and was recorded.
void set_driver_call_since(std::uint64_t made) noexcept;

/// Adds the reason why memory of the driver is missing from the recording: `code` is a code of
/// query/words/data_quality.cpp, or an error.
void record_driver_loss(const char* code) noexcept;

}  // namespace tidemark::process
