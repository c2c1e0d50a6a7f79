// Fake libc10_cuda: calls c10 across the library boundary, with its lock held as the real one does.
#include "device_allocator.h"

#include <algorithm>
#include <map>
#include <mutex>
#include <utility>
#include <vector>

#include "c10.h"
#include "event_log.h"
#include "segments.h"

namespace {

constexpr std::uint64_t kBlock = 512;
constexpr std::uint64_t kSegment = 2 << 20;

fakes::EventLog said("FAKES_SAID");

struct DeviceState {
  FakesCounters counters{};
  std::uint64_t reserved = 0;
  std::uint64_t used = 0;                                    ///< of the segments, from their beginning
  std::map<std::uint64_t, std::vector<std::uint64_t>> free;  ///< addresses by size
  std::map<std::uint64_t, std::uint64_t> live;               ///< size by address
};

std::mutex lock;
std::map<std::pair<int, int>, DeviceState> devices;

std::uint64_t round_up(std::uint64_t size, std::uint64_t unit) {
  return (size + unit - 1) / unit * unit;
}

c10::Device device_of(int type, int index) {
  return {static_cast<std::int8_t>(type), static_cast<std::int8_t>(index)};
}

void* pointer(std::uint64_t address) {
  return reinterpret_cast<void*>(address);
}

void report(fakes::Kind kind, std::uint64_t address, std::int64_t size, std::uint64_t allocated, std::uint64_t reserved,
            c10::Device device) {
  said.add(kind, pointer(address), size < 0 ? -size : size, allocated, reserved, device.type, device.index);
  c10::reportMemoryUsageToProfiler(pointer(address), size, static_cast<c10::Total>(allocated),
                                   static_cast<c10::Total>(reserved), device);
}

}  // namespace

void* fakes_allocate(int type, int index, std::uint64_t wanted) {
  const std::lock_guard guard(lock);
  DeviceState& device = devices[{type, index}];
  const std::uint64_t size = round_up(std::max<std::uint64_t>(wanted, 1), kBlock);
  std::vector<std::uint64_t>& known = device.free[size];
  std::uint64_t address = 0;
  if (!known.empty()) {
    address = known.back();
    known.pop_back();
  } else {
    // Devices share one range of addresses: a block is identified by its device and its address.
    address = 0x7F00'0000'0000 + device.used;
    device.used += size;
    const std::uint64_t needed = std::max(device.reserved, round_up(device.used, kSegment));
    if (needed > device.reserved) take_segments(type, index, needed - device.reserved);
    device.reserved = needed;
  }
  device.live[address] = size;
  device.counters.allocated += size;
  device.counters.peak_allocated = std::max(device.counters.peak_allocated, device.counters.allocated);
  device.counters.peak_reserved = std::max(device.counters.peak_reserved, device.reserved);
  ++device.counters.allocations;
  report(fakes::Kind::allocate, address, static_cast<std::int64_t>(size), device.counters.allocated, device.reserved,
         device_of(type, index));
  return pointer(address);
}

void fakes_free(int type, int index, void* block) {
  const std::lock_guard guard(lock);
  DeviceState& device = devices[{type, index}];
  const auto address = reinterpret_cast<std::uintptr_t>(block);
  const std::uint64_t size = device.live.at(address);
  device.live.erase(address);
  device.free[size].push_back(address);
  device.counters.allocated -= size;
  ++device.counters.frees;
  report(fakes::Kind::free, address, -static_cast<std::int64_t>(size), device.counters.allocated, device.reserved,
         device_of(type, index));
}

void fakes_fail(int type, int index, std::uint64_t size) {
  const std::lock_guard guard(lock);
  const DeviceState& device = devices[{type, index}];
  const c10::Device where = device_of(type, index);
  said.add(fakes::Kind::fail, nullptr, static_cast<std::int64_t>(size), device.counters.allocated, device.reserved,
           where.type, where.index);
  c10::reportOutOfMemoryToProfiler(static_cast<std::int64_t>(size), static_cast<c10::Total>(device.counters.allocated),
                                   static_cast<c10::Total>(device.reserved), where);
}

void fakes_empty_cache(int type, int index) {
  const std::lock_guard guard(lock);
  DeviceState& device = devices[{type, index}];
  if (!device.live.empty()) return;
  device.free.clear();
  give_back_segments(type, index);
  device.used = device.reserved = 0;
}

FakesCounters fakes_counters(int type, int index) {
  const std::lock_guard guard(lock);
  return devices[{type, index}].counters;
}

void fakes_report(int type, int index, std::uint64_t address, std::uint64_t size) {
  report(fakes::Kind::allocate, address, static_cast<std::int64_t>(size), size, kSegment, device_of(type, index));
}

void fakes_mark() {
  said.add(fakes::Kind::mark, nullptr, 0, 0, 0, 0, 0);
}
