// A caching allocator of devices, as libc10_cuda has one: for the test program.
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

/// Blocks are multiples of 512 bytes, segments of 2 MiB; freed blocks of the same size are used again. Thread-safe.
void* fakes_allocate(int type, int index, std::uint64_t size);
void fakes_free(int type, int index, void* address);
/// A request that fails.
void fakes_fail(int type, int index, std::uint64_t size);
/// Gives a device's segments back when no block is alive.
void fakes_empty_cache(int type, int index);
FakesCounters fakes_counters(int type, int index);

/// Reports an allocation without making one: safe in signal handlers.
void fakes_report(int type, int index, std::uint64_t address, std::uint64_t size);
/// Notes in the log of what was said that the program has come to this point.
void fakes_mark();
}
