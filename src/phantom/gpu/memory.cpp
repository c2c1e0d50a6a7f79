#include "phantom/gpu/memory.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <iterator>
#include <map>
#include <mutex>

#include "base/scoped_fd.h"
#include "phantom/gpu/abi.h"
#include "phantom/gpu/address_space.h"
#include "phantom/gpu/device_memory.h"
#include "phantom/gpu/driver_memory.h"
#include "phantom/gpu/kernels.h"
#include "phantom/gpu/known_bytes.h"
#include "phantom/gpu/profile.h"
#include "phantom/gpu/usage.h"
#include "phantom/gpu/visible_devices.h"

namespace tidemark::phantom {
namespace {

struct Memory {
  std::mutex mutex;
  std::map<char*, Allocation> allocations;  // by start
  std::map<std::uint64_t, Allocation> physical;
  std::map<char*, std::size_t> pinned;
  std::uint64_t next_physical = 0x10000;
};

// The content of a file that stands for memory of another process.
struct SharedMemory {
  std::uint32_t magic;
  std::int32_t device;  // number in the machine
};
constexpr std::uint32_t kSharedMagic = 0x6d656d74;

// Never destroyed: destructors of the program may still free memory.
Memory& memory() {
  static auto* const kMemory = new Memory;
  return *kMemory;
}

// Called first for each request for memory, before a lock is taken.
void note_request() {
  count_request();
  watch_training_steps();
}

// Whether the last kernel computes a truth value for which programs usually expect true: `all(...)`, and `==` of a
// single element, which PyTorch makes of `(a == b).all()` then.
bool usually_true(const char* kernel) {
  return std::strstr(kernel, "and_kernel_cuda") != nullptr || std::strstr(kernel, "CompareEqFunctor") != nullptr;
}

thread_local std::optional<std::int64_t> next_answer;
thread_local bool reads_fractions = false;

struct ExpectedTruth {
  const void* address = nullptr;
  bool value = false;
};
thread_local ExpectedTruth expected_truth;

// The host reads values: known ones, or that no kernel computed. Of those, the size of a result is the true one, a
// single truth value the one with which programs continue normally, and all others are zeros.
void read_result(void* to, const void* from, std::size_t bytes) {
  if (bytes <= kKnownCopyBytes && known_bytes().knows(from, bytes)) {
    std::memcpy(to, from, bytes);
    return;
  }
  if (next_answer && (bytes == 1 || bytes == sizeof(std::int32_t) || bytes == sizeof(std::int64_t))) {
    std::memcpy(to, &*next_answer, bytes);  // the first bytes are the number's low ones
    next_answer.reset();
    return;
  }
  if (!reads_fractions) count_read();
  if (bytes == 1 && from == expected_truth.address) {
    std::memset(to, expected_truth.value ? 1 : 0, 1);
  } else if (bytes == 1 && usually_true(last_launched_kernel())) {
    std::memset(to, 1, 1);
  } else if (bytes <= kKnownCopyBytes) {
    std::memcpy(to, from, bytes);
  } else {
    std::memset(to, 0, bytes);
  }
}

std::size_t largest_kept_copy() {
  return known_bytes().total() > kManyKnownBytes ? kKeptCopyBytes : kKnownCopyBytes;
}

void give_back(const Allocation& allocation) {
  give_back_memory(physical_device(allocation.device), allocation.bytes);
  count_returned(allocation.library, allocation.bytes);
}

template <typename Map>
auto holder(Map& map, const void* pointer) {
  auto after = map.upper_bound(static_cast<char*>(const_cast<void*>(pointer)));
  return after == map.begin() ? map.end() : std::prev(after);
}

}  // namespace

void* allocate_device(int device, std::size_t bytes, const void* caller) {
  if (bytes == 0 || !is_device(device)) return nullptr;
  note_request();
  const std::size_t rounded = round_up(bytes, kGranularity);
  Memory& all = memory();
  const std::lock_guard lock(all.mutex);
  if (rounded < bytes || !take_memory(physical_device(device), rounded)) return nullptr;
  void* const start = driver_memory().addresses().reserve(rounded, kGranularity);
  if (start == nullptr) {
    give_back_memory(physical_device(device), rounded);
    return nullptr;
  }
  const auto library = count_taken(caller, physical_device(device), rounded);
  all.allocations[static_cast<char*>(start)] = {start, rounded, device, library};
  return start;
}

bool free_device(void* pointer) {
  Memory& all = memory();
  const std::lock_guard lock(all.mutex);
  const auto found = all.allocations.find(static_cast<char*>(pointer));
  if (found == all.allocations.end()) return false;
  give_back(found->second);
  known_bytes().forget(pointer, found->second.bytes);
  address_space().release(pointer, found->second.bytes);
  all.allocations.erase(found);
  return true;
}

std::uint64_t create_physical(int device, std::size_t bytes, const void* caller) {
  if (!is_device(device)) return 0;
  note_request();
  Memory& all = memory();
  const std::lock_guard lock(all.mutex);
  if (!take_memory(physical_device(device), bytes)) return 0;
  all.next_physical += 16;
  const auto library = count_taken(caller, physical_device(device), bytes);
  all.physical[all.next_physical] = {nullptr, bytes, device, library};
  return all.next_physical;
}

bool release_physical(std::uint64_t handle) {
  Memory& all = memory();
  const std::lock_guard lock(all.mutex);
  const auto found = all.physical.find(handle);
  if (found == all.physical.end()) return false;
  give_back(found->second);
  all.physical.erase(found);
  return true;
}

int share_physical(std::uint64_t handle) {
  Memory& all = memory();
  const std::lock_guard lock(all.mutex);
  const auto found = all.physical.find(handle);
  if (found == all.physical.end()) return -1;
  const SharedMemory shared = {kSharedMagic, physical_device(found->second.device)};
  ScopedFd file(memfd_create("tidemark-phantom-memory", MFD_CLOEXEC));
  if (!file || write(file.get(), &shared, sizeof shared) != sizeof shared) return -1;
  return file.release();
}

std::uint64_t open_physical(int descriptor) {
  SharedMemory shared{};
  if (pread(descriptor, &shared, sizeof shared, 0) != sizeof shared || shared.magic != kSharedMagic) return 0;
  for (int device = 0; is_device(device); ++device)
    if (physical_device(device) == shared.device) return create_physical(device, 0);  // its owner counts it
  return 0;
}

void* reserve_addresses(std::size_t bytes, std::size_t alignment) {
  return driver_memory().addresses().reserve(round_up(bytes, kGranularity), std::max(alignment, kGranularity));
}

void free_addresses(void* pointer, std::size_t bytes) {
  Memory& all = memory();
  const std::lock_guard lock(all.mutex);
  all.allocations.erase(static_cast<char*>(pointer));
  known_bytes().forget(pointer, round_up(bytes, kGranularity));
  address_space().release(pointer, round_up(bytes, kGranularity));
}

void map_addresses(void* pointer, std::size_t bytes, int device) {
  Memory& all = memory();
  const std::lock_guard lock(all.mutex);
  all.allocations[static_cast<char*>(pointer)] = {pointer, bytes, device};
}

std::optional<Allocation> find_allocation(const void* pointer) {
  if (!is_device_address(pointer)) return std::nullopt;
  Memory& all = memory();
  const std::lock_guard lock(all.mutex);
  const auto found = holder(all.allocations, pointer);
  if (found == all.allocations.end() || pointer >= found->first + found->second.bytes) return std::nullopt;
  return found->second;
}

bool is_device_address(const void* pointer) {
  return address_space().contains(pointer);
}

void* allocate_pinned(std::size_t bytes) {
  const std::size_t rounded = round_up(std::max<std::size_t>(bytes, 1), 4096);
  void* const start = mmap(nullptr, rounded, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (start == MAP_FAILED) return nullptr;
  driver_memory().pin_host_memory();
  register_pinned(start, rounded);
  return start;
}

bool free_pinned(void* pointer) {
  Memory& all = memory();
  const std::lock_guard lock(all.mutex);
  const auto found = all.pinned.find(static_cast<char*>(pointer));
  if (found == all.pinned.end()) return false;
  munmap(pointer, found->second);
  all.pinned.erase(found);
  return true;
}

bool register_pinned(void* pointer, std::size_t bytes) {
  Memory& all = memory();
  const std::lock_guard lock(all.mutex);
  return all.pinned.emplace(static_cast<char*>(pointer), bytes).second;
}

bool unregister_pinned(void* pointer) {
  Memory& all = memory();
  const std::lock_guard lock(all.mutex);
  return all.pinned.erase(static_cast<char*>(pointer)) != 0;
}

bool is_pinned(const void* pointer) {
  Memory& all = memory();
  const std::lock_guard lock(all.mutex);
  const auto found = holder(all.pinned, pointer);
  return found != all.pinned.end() && pointer < found->first + found->second;
}

void expect_truth(const void* address, bool value) {
  expected_truth = {address, value};
}

void read_fractions(bool reads) {
  reads_fractions = reads;
}

void answer_next_read(std::optional<std::int64_t> number) {
  next_answer = number;
}

void copy(void* to, const void* from, std::size_t bytes) {
  const bool from_device = is_device_address(from);
  const bool to_device = is_device_address(to);
  if (!to_device) {
    if (from_device) return read_result(to, from, bytes);
    std::memmove(to, from, bytes);
  } else if (bytes > largest_kept_copy()) {
    known_bytes().forget(to, bytes);
  } else if (from_device) {
    known_bytes().copy(to, from, bytes);
  } else {
    std::memmove(to, from, bytes);
    known_bytes().add(to, bytes);
  }
}

void fill(void* to, int value, std::size_t bytes) {
  if (!is_device_address(to)) {
    std::memset(to, value, bytes);
  } else if (bytes > largest_kept_copy()) {
    known_bytes().forget(to, bytes);
  } else {
    std::memset(to, value, bytes);
    known_bytes().add(to, bytes);
  }
}

/// The recording library calls this for each new block of PyTorch's allocator: what earlier blocks left there is not
/// its value.
TIDEMARK_PHANTOM_API void tidemark_on_block(void* address, std::size_t bytes) {
  if (address == expected_truth.address) expected_truth = {};
  known_bytes().forget(address, bytes);
}

}  // namespace tidemark::phantom
