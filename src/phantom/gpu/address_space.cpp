#include "phantom/gpu/address_space.h"

#include <sys/mman.h>

#include <algorithm>
#include <iterator>

namespace tidemark::phantom {
namespace {

constexpr std::size_t kRegion = 32 << 20;
constexpr std::size_t kPage = 4096;
constexpr std::size_t kBits = 64;

using Ranges = std::map<char*, std::size_t>;

void join(Ranges& ranges, char* start, std::size_t bytes) {
  auto range = ranges.emplace(start, bytes).first;
  if (const auto after = std::next(range); after != ranges.end() && start + bytes == after->first) {
    range->second += after->second;
    ranges.erase(after);
  }
  if (range == ranges.begin()) return;
  if (const auto before = std::prev(range); before->first + before->second == start) {
    before->second += range->second;
    ranges.erase(range);
  }
}

void cut(Ranges& ranges, Ranges::iterator range, char* start, std::size_t bytes) {
  const auto before = static_cast<std::size_t>(start - range->first);
  const std::size_t behind = range->second - before - bytes;
  if (before == 0) {
    ranges.erase(range);
  } else {
    range->second = before;
  }
  if (behind != 0) ranges[start + bytes] = behind;
}

char* align(char* address, std::size_t alignment) {
  const auto value = reinterpret_cast<std::uintptr_t>(address);
  return address + (round_up(value, alignment) - value);
}

// Readable and writable, so that small copies keep their bytes; untouched pages take no memory.
void* map_pages(std::size_t bytes) {
  void* const start = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (start == MAP_FAILED) return nullptr;
  madvise(start, bytes, MADV_DONTFORK);
  madvise(start, bytes, MADV_DONTDUMP);
  return start;
}

void unmap_pages(void* start, std::size_t bytes) {
  munmap(start, bytes);
}

}  // namespace

const AddressSource& addresses_of_process() {
  static constexpr AddressSource kProcess = {map_pages, unmap_pages};
  return kProcess;
}

AddressSpace::AddressSpace(const AddressSource& source)
    : source_(source), taken_(std::make_unique<std::array<std::atomic<std::uint64_t>, std::size_t{1} << 16>>()) {}

bool AddressSpace::contains(const void* pointer) const {
  const auto unit = reinterpret_cast<std::uintptr_t>(pointer) / kRegion;
  return unit < taken_->size() * kBits &&
         ((*taken_)[unit / kBits].load(std::memory_order_relaxed) >> unit % kBits & 1) != 0;
}

void AddressSpace::mark(const char* start, std::size_t bytes, bool taken) {
  const auto first = reinterpret_cast<std::uintptr_t>(start) / kRegion;
  const auto end = std::min<std::uintptr_t>(first + bytes / kRegion, taken_->size() * kBits);
  for (std::uintptr_t unit = first; unit < end; ++unit) {
    const std::uint64_t bit = std::uint64_t{1} << unit % kBits;
    if (taken) {
      (*taken_)[unit / kBits].fetch_or(bit, std::memory_order_relaxed);
    } else {
      (*taken_)[unit / kBits].fetch_and(~bit, std::memory_order_relaxed);
    }
  }
}

// Like the driver: maps more than is needed and unmaps the unaligned ends.
AddressSpace::Region* AddressSpace::add_region(std::size_t bytes, std::size_t alignment) {
  alignment = std::max(alignment, kRegion);
  const std::size_t size = round_up(bytes, kRegion);
  const std::size_t mapped = size + alignment - kPage;
  if (size < bytes || mapped < size) return nullptr;
  auto* const lowest = static_cast<char*>(source_.map(mapped));
  if (lowest == nullptr) return nullptr;
  char* const start = align(lowest, alignment);
  const auto before = static_cast<std::size_t>(start - lowest);
  if (before != 0) source_.unmap(lowest, before);
  if (const std::size_t behind = mapped - before - size; behind != 0) source_.unmap(start + size, behind);
  mark(start, size, true);
  regions_.push_front({start, size, {{start, size}}});
  return &regions_.front();
}

void* AddressSpace::reserve(std::size_t bytes, std::size_t alignment) {
  const std::lock_guard lock(mutex_);
  for (Region& region : regions_) {
    for (auto range = region.free.begin(); range != region.free.end(); ++range) {
      char* const start = align(range->first, alignment);
      if (start + bytes > range->first + range->second) continue;
      cut(region.free, range, start, bytes);
      return start;
    }
  }
  Region* const region = add_region(bytes, alignment);
  if (region == nullptr) return nullptr;
  cut(region->free, region->free.begin(), region->start, bytes);
  return region->start;
}

void AddressSpace::release(void* pointer, std::size_t bytes) {
  const std::lock_guard lock(mutex_);
  auto* const start = static_cast<char*>(pointer);
  for (auto region = regions_.begin(); region != regions_.end(); ++region) {
    if (start < region->start || start >= region->start + region->bytes) continue;
    madvise(pointer, bytes, MADV_DONTNEED);
    join(region->free, start, bytes);
    if (region->free.size() == 1 && region->free.begin()->second == region->bytes) {
      mark(region->start, region->bytes, false);
      source_.unmap(region->start, region->bytes);
      regions_.erase(region);
    }
    return;
  }
}

AddressSpace& address_space() {
  static auto* const kSpace = new AddressSpace;  // never destroyed: destructors of the program may still free memory
  return *kSpace;
}

}  // namespace tidemark::phantom
