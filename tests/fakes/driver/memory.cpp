#include "memory.h"

#include <algorithm>
#include <utility>

namespace fakes {
namespace {

constexpr std::uint64_t kAlignment = 512;
constexpr std::uint64_t kPoolStep = 32 << 20;

std::uint64_t round_up(std::uint64_t bytes, std::uint64_t unit) {
  return (bytes + unit - 1) / unit * unit;
}

std::int64_t less(std::uint64_t bytes) {
  return -static_cast<std::int64_t>(bytes);
}

}  // namespace

std::string device_account(Device device) {
  return "cuda-driver:" + std::to_string(device);
}

std::string managed_account(Device device) {
  return "cuda-managed:" + std::to_string(device);
}

std::uint64_t Numbers::take(std::uint64_t count) {
  std::vector<std::uint64_t>& known = free_[count];
  if (known.empty()) return std::exchange(next_, next_ + count);
  const std::uint64_t first = known.back();
  known.pop_back();
  return first;
}

Memory::Memory(int devices, std::uint64_t device_bytes)
    : device_bytes_(device_bytes), graphs_(static_cast<std::size_t>(devices)) {
  for (Device device = 0; device < devices; ++device) default_pools_.push_back(create_pool(device_account(device)));
}

bool Memory::fits(const std::string& account, std::uint64_t bytes) const {
  if (!account.starts_with("cuda-driver:")) return true;
  const std::uint64_t used = books_.now(account);
  return bytes <= device_bytes_ && used <= device_bytes_ - bytes;
}

Result Memory::allocate(const std::string& account, std::uint64_t bytes, std::uint64_t* address) {
  const std::lock_guard guard(lock_);
  if (bytes == 0) return kInvalidValue;
  if (!fits(account, bytes)) return kOutOfMemory;
  *address = addresses_.take(round_up(bytes, kAlignment));
  blocks_[*address] = {account, bytes, nullptr, true};
  books_.change(account, static_cast<std::int64_t>(bytes));
  return kSuccess;
}

Result Memory::register_host(std::uint64_t address, std::uint64_t bytes) {
  const std::lock_guard guard(lock_);
  if (bytes == 0 || blocks_.contains(address)) return kInvalidValue;
  blocks_[address] = {kHostAccount, bytes, nullptr, false};
  books_.change(kHostAccount, static_cast<std::int64_t>(bytes));
  return kSuccess;
}

void Memory::forget(std::unordered_map<std::uint64_t, Block>::iterator block) {
  const auto& [address, facts] = *block;
  if (facts.pool != nullptr) {
    facts.pool->used -= facts.bytes;
  } else {
    books_.change(facts.account, less(facts.bytes));
  }
  if (facts.address_ours) addresses_.give_back(address, round_up(facts.bytes, kAlignment));
  blocks_.erase(block);
}

Result Memory::free(std::uint64_t address) {
  const std::lock_guard guard(lock_);
  if (address == 0) return kSuccess;
  const auto block = blocks_.find(address);
  if (block == blocks_.end()) return kInvalidValue;
  Pool* pool = block->second.pool;
  forget(block);
  if (pool != nullptr) shrink(*pool, pool->threshold);
  return kSuccess;
}

Result Memory::free_async(Device device, std::uint64_t address) {
  const std::lock_guard guard(lock_);
  const auto block = blocks_.find(address);
  if (block == blocks_.end()) return kInvalidValue;
  if (block->second.pool != nullptr) {
    forget(block);
  } else {
    freed_later_[address] = device;
  }
  return kSuccess;
}

Result Memory::reserve_addresses(std::uint64_t bytes, DevicePointer* address) {
  const std::lock_guard guard(lock_);
  *address = addresses_.take(bytes);
  return kSuccess;
}

Result Memory::free_addresses(DevicePointer address, std::uint64_t bytes) {
  const std::lock_guard guard(lock_);
  addresses_.give_back(address, bytes);
  return kSuccess;
}

Result Memory::create(const std::string& account, std::uint64_t bytes, AllocationHandle* handle) {
  const std::lock_guard guard(lock_);
  if (!fits(account, bytes)) return kOutOfMemory;
  *handle = handles_.take(1);
  physical_[*handle] = {account, bytes};
  books_.change(account, static_cast<std::int64_t>(bytes));
  return kSuccess;
}

Result Memory::adopt(AllocationHandle* handle) {
  const std::lock_guard guard(lock_);
  *handle = handles_.take(1);
  physical_[*handle] = {};
  return kSuccess;
}

Result Memory::retain(DevicePointer address, AllocationHandle* handle) {
  const std::lock_guard guard(lock_);
  auto mapping = mappings_.upper_bound(address);
  if (mapping == mappings_.begin()) return kInvalidValue;
  --mapping;
  if (address - mapping->first >= mapping->second.bytes) return kInvalidValue;
  *handle = mapping->second.handle;
  ++physical_[*handle].references;
  return kSuccess;
}

Result Memory::release(AllocationHandle handle) {
  const std::lock_guard guard(lock_);
  const auto found = physical_.find(handle);
  if (found == physical_.end() || found->second.references == 0) return kInvalidValue;
  --found->second.references;
  let_go_if_unused(handle);
  return kSuccess;
}

void Memory::let_go_if_unused(AllocationHandle handle) {
  const Physical& physical = physical_[handle];
  if (physical.references > 0 || physical.mappings > 0) return;
  if (!physical.account.empty()) books_.change(physical.account, less(physical.bytes));
  physical_.erase(handle);
  handles_.give_back(handle, 1);
}

Result Memory::map(DevicePointer address, std::uint64_t bytes, AllocationHandle handle) {
  const std::lock_guard guard(lock_);
  const auto found = physical_.find(handle);
  if (found == physical_.end() || bytes == 0) return kInvalidValue;
  if (!mappings_.insert({address, {bytes, handle}}).second) return kInvalidValue;
  ++found->second.mappings;
  return kSuccess;
}

// One call may end several mappings, but not a part of one.
Result Memory::unmap(DevicePointer address, std::uint64_t bytes) {
  const std::lock_guard guard(lock_);
  auto mapping = mappings_.find(address);
  if (mapping == mappings_.end()) return kInvalidValue;
  while (mapping != mappings_.end() && mapping->first < address + bytes) {
    const AllocationHandle handle = mapping->second.handle;
    mapping = mappings_.erase(mapping);
    --physical_[handle].mappings;
    let_go_if_unused(handle);
  }
  return kSuccess;
}

MemoryPool Memory::default_pool(Device device) {
  return default_pools_.at(static_cast<std::size_t>(device));
}

MemoryPool Memory::create_pool(const std::string& account) {
  const std::lock_guard guard(lock_);
  auto* const pool = reinterpret_cast<MemoryPool>(next_pool_ += 0x1000);
  pools_[pool].account = account;
  return pool;
}

Result Memory::destroy_pool(MemoryPool handle) {
  const std::lock_guard guard(lock_);
  const auto pool = pools_.find(handle);
  const bool is_default = std::find(default_pools_.begin(), default_pools_.end(), handle) != default_pools_.end();
  if (pool == pools_.end() || is_default || pool->second.used > 0) return kInvalidValue;
  resize(pool->second, 0);
  pools_.erase(pool);
  return kSuccess;
}

Result Memory::set_threshold(MemoryPool pool, std::uint64_t bytes) {
  const std::lock_guard guard(lock_);
  if (!pools_.contains(pool)) return kInvalidValue;
  pools_[pool].threshold = bytes;
  return kSuccess;
}

std::optional<std::uint64_t> Memory::reserved(MemoryPool pool) {
  const std::lock_guard guard(lock_);
  const auto found = pools_.find(pool);
  return found == pools_.end() ? std::nullopt : std::optional(found->second.reserved);
}

Result Memory::resize(Pool& pool, std::uint64_t reserved) {
  if (reserved > pool.reserved && !fits(pool.account, reserved - pool.reserved)) return kOutOfMemory;
  if (reserved != pool.reserved) books_.change(pool.account, static_cast<std::int64_t>(reserved - pool.reserved));
  pool.reserved = reserved;
  return kSuccess;
}

Result Memory::allocate_from(MemoryPool handle, std::uint64_t wanted, DevicePointer* address) {
  const std::lock_guard guard(lock_);
  const auto found = pools_.find(handle);
  if (found == pools_.end() || wanted == 0) return kInvalidValue;
  Pool& pool = found->second;
  const std::uint64_t bytes = round_up(wanted, kAlignment);
  const std::uint64_t needed = std::max(pool.reserved, round_up(pool.used + bytes, kPoolStep));
  if (const Result result = resize(pool, needed); result != kSuccess) return result;
  pool.used += bytes;
  *address = addresses_.take(bytes);
  blocks_[*address] = {pool.account, bytes, &pool, true};
  return kSuccess;
}

void Memory::shrink(Pool& pool, std::uint64_t least_bytes) {
  const std::uint64_t needed = round_up(pool.used, kPoolStep);
  resize(pool, std::min(pool.reserved, std::max(needed, least_bytes)));
}

Result Memory::trim(MemoryPool handle, std::uint64_t least_bytes) {
  const std::lock_guard guard(lock_);
  const auto pool = pools_.find(handle);
  if (pool == pools_.end()) return kInvalidValue;
  shrink(pool->second, least_bytes);
  return kSuccess;
}

void Memory::synchronized(Device device) {
  const std::lock_guard guard(lock_);
  for (auto& [handle, pool] : pools_) {
    if (pool.account == device_account(device) || pool.account == kHostAccount) shrink(pool, pool.threshold);
  }
  std::erase_if(freed_later_, [&](const auto& freed) {
    if (freed.second == device) forget(blocks_.find(freed.first));
    return freed.second == device;
  });
}

Result Memory::launch(Device device, std::uint64_t bytes) {
  const std::lock_guard guard(lock_);
  std::uint64_t& reserved = graphs_.at(static_cast<std::size_t>(device));
  const std::uint64_t needed = round_up(bytes, kPoolStep);
  if (needed <= reserved) return kSuccess;
  if (!fits(device_account(device), needed - reserved)) return kOutOfMemory;
  books_.change(device_account(device), static_cast<std::int64_t>(needed - reserved));
  reserved = needed;
  return kSuccess;
}

Result Memory::trim_graphs(Device device) {
  const std::lock_guard guard(lock_);
  std::uint64_t& reserved = graphs_.at(static_cast<std::size_t>(device));
  if (reserved > 0) books_.change(device_account(device), less(reserved));
  reserved = 0;
  return kSuccess;
}

std::uint64_t Memory::graph_reserved(Device device) {
  const std::lock_guard guard(lock_);
  return graphs_.at(static_cast<std::size_t>(device));
}

void Memory::reset(Device device) {
  const std::lock_guard guard(lock_);
  for (auto block = blocks_.begin(); block != blocks_.end();) {
    const auto next = std::next(block);
    const std::string& account = block->second.account;
    if (account == device_account(device) || account == managed_account(device)) forget(block);
    block = next;
  }
  for (auto& [handle, pool] : pools_) {
    if (pool.account == device_account(device)) resize(pool, 0);
  }
}

}  // namespace fakes
