#include "collect/process/driver/pools.h"

#include <time.h>

#include <atomic>

#include "collect/process/driver/driver_record.h"

namespace tidemark::process::cuda {
namespace {

/// A pool, or the memory of a device's graphs.
struct Known {
  std::atomic<std::uint64_t> key;    ///< 0 = this slot and all after it were never used; or a key, or one of the
                                     ///< constants below
  std::atomic<std::uint64_t> taken;  ///< bytes, as last recorded
  std::atomic<Device> device;        ///< device + 2; 0 = unknown
  std::atomic<int> lookers;          ///< threads that are querying the driver about it
  std::atomic<std::uint64_t> going;  ///< its key before kGoing
};

// Values that are not addresses of pools.
constexpr std::uint64_t kGone = 1;   // free again
constexpr std::uint64_t kGoing = 2;  // its pool is about to be destroyed
constexpr std::size_t kMaxPools = 128;
Known known[kMaxPools];
std::atomic<bool> any_used;  ///< since all sizes were checked
std::atomic<bool> graphs_allocate;

constexpr std::uint64_t kGraphKey = std::uint64_t{0xFFFFFFFF} << 32;  // not an address of a pool

std::uint64_t key_of(MemoryPool pool) noexcept {
  return reinterpret_cast<std::uintptr_t>(pool);
}
std::uint64_t graph_key(Device device) noexcept {
  return kGraphKey + static_cast<std::uint64_t>(device);
}

Known* find(std::uint64_t key) noexcept {
  for (Known& entry : known) {
    const std::uint64_t found = entry.key.load(std::memory_order_acquire);
    if (found == key) return &entry;
    if (found == 0) return nullptr;
  }
  return nullptr;
}

/// Null if all slots are taken. Threads that add a pool at the same time may use two slots for it: both record the
/// same.
Known* find_or_add(std::uint64_t key) noexcept {
  if (Known* there = find(key); there != nullptr) return there;
  for (Known& entry : known) {
    std::uint64_t found = entry.key.load(std::memory_order_acquire);
    if (found > kGone) continue;
    if (entry.key.compare_exchange_strong(found, key, std::memory_order_acq_rel) || found == key) return &entry;
  }
  return nullptr;
}

Device device_of(const Known& entry) noexcept {
  return entry.device.load(std::memory_order_relaxed) - 2;
}
void set_device(Known& entry, Device device) noexcept {
  entry.device.store(device + 2, std::memory_order_relaxed);
}

bool size_now(std::uint64_t key, Device device, std::uint64_t* bytes) noexcept {
  if (key >= kGraphKey) return driver.graph_attribute(device, kGraphReservedNow, bytes) == kSuccess;
  return driver.pool_attribute(reinterpret_cast<MemoryPool>(key), kPoolReservedNow, bytes) == kSuccess;
}

// Another thread may change the pool meanwhile: the thread that wrote last checks again.
void look_at(Known& entry, std::uint64_t key, const NativeContext& caller) noexcept {
  const Device device = device_of(entry);
  for (int tries = 0; tries < 4; ++tries) {
    std::uint64_t bytes = 0;
    if (!size_now(key, device, &bytes)) return;
    if (entry.taken.exchange(bytes, std::memory_order_acq_rel) == bytes) return;
    record_driver_allocation(ring::DriverCall::pool, device, {key, bytes}, caller);
  }
}

void look(Known& entry, const NativeContext& caller) noexcept {
  entry.lookers.fetch_add(1);
  if (const std::uint64_t key = entry.key.load(); key > kGoing) look_at(entry, key, caller);
  entry.lookers.fetch_sub(1);
}

bool is_going(const Known& entry, std::uint64_t key) noexcept {
  return entry.key.load() == kGoing && entry.going.load() == key;
}

/// The driver must not be queried about a destroyed pool. A forked child may wait for a thread that it does not have:
/// therefore at most half a second.
void wait_for_lookers(const Known& entry) noexcept {
  constexpr timespec kShort = {0, 50'000};
  for (int tries = 0; tries < 10'000 && entry.lookers.load() != 0; ++tries) ::nanosleep(&kShort, nullptr);
}

void use(std::uint64_t key, Device device, const NativeContext& caller) noexcept {
  Known* entry = find_or_add(key);
  if (entry == nullptr) return;
  if (entry->device.load(std::memory_order_relaxed) == 0) set_device(*entry, device);
  look(*entry, caller);
  pool_memory_freed();
}

}  // namespace

DriverFunctions driver = {};

void pool_created(MemoryPool pool, Device device) noexcept {
  if (Known* entry = find_or_add(key_of(pool)); entry != nullptr) set_device(*entry, device);
}

void pool_used(MemoryPool pool, Device device, const NativeContext& caller) noexcept {
  if (pool == nullptr && driver.device_pool(&pool, device) != kSuccess) return;
  graph_memory_expected();  // during capture, this becomes a node of a graph
  use(key_of(pool), device, caller);
}

void graph_memory_expected() noexcept {
  graphs_allocate.store(true, std::memory_order_relaxed);
}

void graph_memory_used(Device device, const NativeContext& caller) noexcept {
  if (graphs_allocate.load(std::memory_order_relaxed)) use(graph_key(device), device, caller);
}

void pool_memory_freed() noexcept {
  any_used.store(true, std::memory_order_release);
}

void check_pool_sizes(const NativeContext& caller) noexcept {
  if (!any_used.load(std::memory_order_relaxed) || !any_used.exchange(false, std::memory_order_acq_rel)) return;
  for (Known& entry : known) {
    if (entry.key.load(std::memory_order_acquire) == 0) break;
    if (entry.taken.load(std::memory_order_relaxed) != 0) look(entry, caller);
  }
}

bool pools_are_used() noexcept {
  return known[0].key.load(std::memory_order_relaxed) != 0;
}

void pool_destroy_begins(MemoryPool pool) noexcept {
  const std::uint64_t key = key_of(pool);
  while (Known* entry = find(key)) {
    entry->going.store(key);
    entry->key.store(kGoing);
    wait_for_lookers(*entry);
  }
}

void pool_destroyed(MemoryPool pool, std::uint64_t made) noexcept {
  for (Known& entry : known) {
    if (!is_going(entry, key_of(pool))) continue;
    const Device device = device_of(entry);
    const std::uint64_t taken = entry.taken.exchange(0, std::memory_order_acq_rel);
    entry.device.store(0, std::memory_order_relaxed);
    if (taken != 0) record_driver_call(ring::DriverCall::pool, device, {key_of(pool), 0}, made);
    entry.key.store(kGone, std::memory_order_release);
  }
}

void pool_destroy_failed(MemoryPool pool) noexcept {
  for (Known& entry : known) {
    if (is_going(entry, key_of(pool))) entry.key.store(key_of(pool), std::memory_order_release);
  }
}

}  // namespace tidemark::process::cuda
