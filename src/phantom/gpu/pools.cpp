#include "phantom/gpu/pools.h"

#include <algorithm>
#include <map>
#include <mutex>

#include "phantom/gpu/address_space.h"
#include "phantom/gpu/memory.h"

namespace tidemark::phantom {
namespace {

constexpr std::size_t kChunk = 32 << 20;
constexpr std::size_t kAlignment = 512;

struct Pool {
  int device = 0;
  std::uint64_t reserved = 0;
  std::uint64_t used = 0;
  std::uint64_t peak_reserved = 0;
  std::uint64_t peak_used = 0;
  std::uint64_t threshold = 0;
  std::uint64_t flags[3] = {1, 1, 1};             // dependencies over which a pool may reuse memory
  std::map<std::uint64_t, std::size_t> physical;  // handles of the memory taken from the device
};

struct Pools {
  std::mutex mutex;
  Pool pools[kMaximumDevices];
  std::map<void*, std::pair<Pool*, std::size_t>> allocations;
  std::map<const void*, void*> symbols;
};

Pools& pools() {
  static auto* const kPools = new Pools;
  return *kPools;
}

void trim(Pool& pool, std::uint64_t bytes) {
  const std::uint64_t kept = std::max<std::uint64_t>(bytes, pool.used);
  for (auto chunk = pool.physical.begin(); chunk != pool.physical.end() && pool.reserved - chunk->second >= kept;) {
    release_physical(chunk->first);
    pool.reserved -= chunk->second;
    chunk = pool.physical.erase(chunk);
  }
}

bool grow(Pool& pool, std::uint64_t needed, const void* caller) {
  while (pool.reserved < needed) {
    const std::uint64_t chunk = create_physical(pool.device, kChunk, caller);
    if (chunk == 0) return false;
    pool.physical[chunk] = kChunk;
    pool.reserved += kChunk;
  }
  pool.peak_reserved = std::max(pool.peak_reserved, pool.reserved);
  return true;
}

}  // namespace

Handle default_pool(int device) {
  Pool& pool = pools().pools[device];
  pool.device = device;
  return &pool;
}

void* allocate_from_pool(Handle handle, std::size_t bytes, const void* caller) {
  if (bytes == 0) return nullptr;
  auto* const pool = static_cast<Pool*>(handle);
  const std::size_t rounded = round_up(bytes, kAlignment);
  Pools& all = pools();
  const std::lock_guard lock(all.mutex);
  if (!grow(*pool, pool->used + rounded, caller)) return nullptr;
  void* const start = reserve_addresses(rounded, kGranularity);
  if (start == nullptr) return nullptr;
  map_addresses(start, rounded, pool->device);
  pool->used += rounded;
  pool->peak_used = std::max(pool->peak_used, pool->used);
  all.allocations[start] = {pool, rounded};
  return start;
}

bool free_to_pool(void* pointer) {
  Pools& all = pools();
  const std::lock_guard lock(all.mutex);
  const auto found = all.allocations.find(pointer);
  if (found == all.allocations.end()) return false;
  auto [pool, bytes] = found->second;
  pool->used -= bytes;
  free_addresses(pointer, bytes);
  all.allocations.erase(found);
  trim(*pool, pool->threshold);
  return true;
}

bool get_pool_attribute(Handle handle, int attribute, void* value) {
  const auto* const pool = static_cast<const Pool*>(handle);
  auto* const number = static_cast<std::uint64_t*>(value);
  const std::lock_guard lock(pools().mutex);
  switch (attribute) {
    case 1:
    case 2:
    case 3:
      *static_cast<int*>(value) = static_cast<int>(pool->flags[attribute - 1]);
      return true;
    case 4:
      *number = pool->threshold;
      return true;
    case 5:
      *number = pool->reserved;
      return true;
    case 6:
      *number = pool->peak_reserved;
      return true;
    case 7:
      *number = pool->used;
      return true;
    case 8:
      *number = pool->peak_used;
      return true;
    default:
      return false;
  }
}

bool set_pool_attribute(Handle handle, int attribute, const void* value) {
  auto* const pool = static_cast<Pool*>(handle);
  const std::lock_guard lock(pools().mutex);
  switch (attribute) {
    case 1:
    case 2:
    case 3:
      pool->flags[attribute - 1] = static_cast<std::uint64_t>(*static_cast<const int*>(value));
      return true;
    case 4:
      pool->threshold = *static_cast<const std::uint64_t*>(value);
      return true;
    case 6:
      pool->peak_reserved = pool->reserved;
      return true;  // only 0 may be set, which resets it
    case 8:
      pool->peak_used = pool->used;
      return true;
    default:
      return false;
  }
}

void trim_pool(Handle pool, std::size_t bytes) {
  const std::lock_guard lock(pools().mutex);
  trim(*static_cast<Pool*>(pool), bytes);
}

void* symbol_address(const void* symbol) {
  Pools& all = pools();
  const std::lock_guard lock(all.mutex);
  void*& address = all.symbols[symbol];
  // Variables of device code are in memory that the driver loads with it, which is part of the context's size: they
  // take nothing here.
  if (address == nullptr) address = reserve_addresses(kGranularity, kGranularity);
  return address;
}

}  // namespace tidemark::phantom
