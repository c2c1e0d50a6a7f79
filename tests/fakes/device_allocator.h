// A caching allocator of devices, like libc10_cuda's: for the test program.
#pragma once

#include <cstdint>

extern "C" {

/// The allocator's own counters for a device, in bytes.
struct FakesCounters {
  std::uint64_t allocated;
  std::uint64_t peak_allocated;
  std::uint64_t peak_reserved;
  std::uint64_t allocations;
  std::uint64_t frees;
};

/// Blocks are multiples of 512 bytes, segments of 2 MiB; freed blocks of the same size are reused. Thread-safe.
void* fakes_allocate(int type, int index, std::uint64_t size);
void fakes_free(int type, int index, void* address);
/// A request that fails.
void fakes_fail(int type, int index, std::uint64_t size);
/// Releases a device's segments if no block is alive.
void fakes_empty_cache(int type, int index);
FakesCounters fakes_counters(int type, int index);

/// Reports an allocation without making one: safe in signal handlers.
void fakes_report(int type, int index, std::uint64_t address, std::uint64_t size);
/// Adds a mark to the event log at this point of the program.
void fakes_mark();
}
