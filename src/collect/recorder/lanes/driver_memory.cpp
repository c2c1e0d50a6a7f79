#include "collect/recorder/lanes/driver_memory.h"

#include <algorithm>

namespace tidemark {
namespace {

constexpr Device kHost = {DeviceType::cuda_host, 0};

Event taken(const Event& base, Device device, std::uint64_t address, std::uint64_t size) {
  Event event = base;
  event.kind = EventKind::allocate;
  event.device = device;
  event.address = address;
  event.size = size;
  return event;
}

Event given_back(const Event& base, Device device, std::uint64_t address) {
  Event event = base;
  event.kind = EventKind::free;
  event.device = device;
  event.address = address;
  event.stack = StackId{};
  return event;
}

}  // namespace

void DriverMemory::take(const DriverCallRecord& call, const Event& base, std::vector<Event>& out) {
  using ring::DriverCall;
  const Device device = {DeviceType::cuda_driver, call.device};
  const std::uint64_t* numbers = call.numbers;
  switch (call.call) {
    case DriverCall::allocate:
      return allocate(device, numbers[0], numbers[1], base, out);
    case DriverCall::allocate_managed:
      return allocate({DeviceType::cuda_managed, call.device}, numbers[0], numbers[1], base, out);
    case DriverCall::allocate_host:
      return allocate(kHost, numbers[0], numbers[1], base, out);
    case DriverCall::free:
      return free(numbers[0], numbers[1] != 0, base, out);
    case DriverCall::create:
      return create(call.device < 0 ? kHost : device, numbers[0], numbers[1], base, out);
    case DriverCall::adopt:
      return adopt(numbers[0]);
    case DriverCall::release:
      return release(numbers[0], base, out);
    case DriverCall::map:
      return map(numbers[0], numbers[1], numbers[2]);
    case DriverCall::unmap:
      return unmap(numbers[0], numbers[1], base, out);
    case DriverCall::pool:
      return resize_pool(call.device < 0 ? kHost : device, numbers[0], numbers[1], base, out);
    case DriverCall::reset_device:
      return reset(device, base, out);
    case DriverCall::slow:
      return;  // moves no memory
  }
}

void DriverMemory::allocate(Device device, std::uint64_t address, std::uint64_t size, const Event& base,
                            std::vector<Event>& out) {
  blocks_[address] = device;
  out.push_back(taken(base, device, address, size));
}

void DriverMemory::free(std::uint64_t address, bool may_be_of_a_pool, const Event& base, std::vector<Event>& out) {
  const auto block = blocks_.find(address);
  if (block == blocks_.end()) {
    if (!may_be_of_a_pool) ++unmatched_;
    return;
  }
  out.push_back(given_back(base, block->second, address));
  blocks_.erase(block);
}

void DriverMemory::create(Device device, std::uint64_t handle, std::uint64_t size, const Event& base,
                          std::vector<Event>& out) {
  handles_[handle] = {device, 1, 0, true};
  out.push_back(taken(base, device, handle, size));
}

void DriverMemory::adopt(std::uint64_t handle) {
  ++handles_[handle].references;
}

void DriverMemory::release(std::uint64_t handle, const Event& base, std::vector<Event>& out) {
  const auto found = handles_.find(handle);
  if (found == handles_.end()) {
    ++unmatched_;
    return;
  }
  if (found->second.references > 0) --found->second.references;
  release_if_unused(handle, base, out);
}

void DriverMemory::map(std::uint64_t address, std::uint64_t size, std::uint64_t handle) {
  mappings_[address] = {size, handle};
  ++handles_[handle].mappings;
}

// One call may end several mappings.
void DriverMemory::unmap(std::uint64_t address, std::uint64_t size, const Event& base, std::vector<Event>& out) {
  const std::uint64_t end = address + std::min(size, ~std::uint64_t{0} - address);
  auto mapping = mappings_.lower_bound(address);
  if (mapping == mappings_.end() || mapping->first >= end) ++unmatched_;
  while (mapping != mappings_.end() && mapping->first < end) {
    const std::uint64_t handle = mapping->second.handle;
    mapping = mappings_.erase(mapping);
    const auto found = handles_.find(handle);
    if (found == handles_.end()) continue;
    if (found->second.mappings > 0) --found->second.mappings;
    release_if_unused(handle, base, out);
  }
}

void DriverMemory::release_if_unused(std::uint64_t handle, const Event& base, std::vector<Event>& out) {
  const auto found = handles_.find(handle);
  if (found->second.references > 0 || found->second.mappings > 0) return;
  if (found->second.counted) out.push_back(given_back(base, found->second.device, handle));
  handles_.erase(found);
}

void DriverMemory::resize_pool(Device device, std::uint64_t key, std::uint64_t bytes, const Event& base,
                               std::vector<Event>& out) {
  Pool& pool = pools_[key];
  pool.device = device;
  if (bytes > pool.bytes) {
    out.push_back(taken(base, device, key + pool.pieces.size(), bytes - pool.bytes));
    pool.pieces.push_back({bytes - pool.bytes, base.stack, base.thread});
  }
  while (bytes < pool.bytes) {
    const Piece last = pool.pieces.back();
    const std::uint64_t address = key + pool.pieces.size() - 1;
    const std::uint64_t excess = pool.bytes - bytes;
    out.push_back(given_back(base, device, address));
    if (last.size > excess) {  // the rest of it is a block again, with its old owner
      Event rest = taken(base, device, address, last.size - excess);
      rest.stack = last.stack;
      rest.thread = last.thread;
      out.push_back(rest);
      pool.pieces.back().size = last.size - excess;
      break;
    }
    pool.pieces.pop_back();
    pool.bytes -= last.size;
  }
  pool.bytes = bytes;
  if (bytes == 0) pools_.erase(key);
}

void DriverMemory::keep(KeptDefinitions& definitions) const {
  for (const auto& [key, pool] : pools_) {
    for (const Piece& piece : pool.pieces) {
      definitions.keep(piece.stack);
      definitions.keep(piece.thread);
    }
  }
}

void DriverMemory::reset(Device device, const Event& base, std::vector<Event>& out) {
  const auto is_there = [&](Device other) {
    return other.index == device.index && other.type != DeviceType::cuda_host;
  };
  std::erase_if(blocks_, [&](const auto& block) {
    if (!is_there(block.second)) return false;
    out.push_back(given_back(base, block.second, block.first));
    return true;
  });
  std::erase_if(handles_, [&](const auto& handle) {
    if (!is_there(handle.second.device) || !handle.second.counted) return false;
    out.push_back(given_back(base, handle.second.device, handle.first));
    return true;
  });
  std::vector<std::uint64_t> pools;
  for (const auto& [key, pool] : pools_) {
    if (is_there(pool.device)) pools.push_back(key);
  }
  for (const std::uint64_t key : pools) resize_pool(device, key, 0, base, out);
}

}  // namespace tidemark
