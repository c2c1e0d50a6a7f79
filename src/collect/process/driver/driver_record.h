// Writes calls of the CUDA driver into the calling thread's lane.
#pragma once

#include <cstdint>
#include <initializer_list>

#include "collect/process/event_writer.h"

namespace tidemark::process {

/// A call that takes memory, with its stack: Python frames where they are recorded, and native ones always, because the
/// library that called is the owner. `device` is -1 where there is none. Gives the ticks that it recorded, 0 where
/// nothing is to be recorded.
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

/// A call that gives memory back was made at these ticks, or has returned: 0. In between its record may come.
void set_driver_call_since(std::uint64_t made) noexcept;

/// Tells the recording why memory of the driver is missing from it: `code` is one that query/words/data_quality.cpp
/// knows, or an error.
void record_driver_loss(const char* code) noexcept;

}  // namespace tidemark::process
