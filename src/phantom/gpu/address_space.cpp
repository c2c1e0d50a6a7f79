#include "phantom/gpu/address_space.h"

#include <sys/mman.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <iterator>

namespace tidemark::phantom {
namespace {

// Expandable segments reserve more than the device's memory for each pool, so the range is far larger than any device.
constexpr std::size_t kLargest = std::size_t{1} << 45;
constexpr std::size_t kSmallest = std::size_t{1} << 36;
constexpr std::size_t kRegion = 32 << 20;
constexpr std::size_t kMiB = 1 << 20;
// The region of the context: at first it has a hole and a free end; the memory of the kernels' stacks becomes free when
// they move to the region above it.
constexpr std::size_t kContext = 544 * kMiB;
constexpr std::size_t kContextEnd = 512 * kMiB;
constexpr std::size_t kFreeStart = 488 * kMiB;
constexpr std::size_t kStacksStart = 64 * kMiB;
constexpr std::size_t kStacksEnd = 414 * kMiB;
constexpr std::size_t kMovedStacks = 224 * kMiB;
constexpr std::size_t kMovedStacksEnd = 204 * kMiB;

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

}  // namespace

AddressSpace::AddressSpace() {
  // Readable and writable, so that small copies keep their bytes; a page that nobody touches takes no memory.
  for (std::size_t bytes = kLargest; bytes >= kSmallest; bytes /= 2) {
    void* const start =
        mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (start == MAP_FAILED) continue;
    madvise(start, bytes, MADV_DONTFORK);
    madvise(start, bytes, MADV_DONTDUMP);
    start_ = static_cast<char*>(start);
    end_ = start_ + bytes;
    gaps_[start_] = bytes;
    // What a context with PyTorch's code leaves free of its own region.
    stacks_ = add_region(kMovedStacks, kRegion);
    stacks_->free.clear();
    context_ = add_region(kContext, kRegion);
    context_->free = {{context_->start + kStacksEnd, 2 * kMiB},
                      {context_->start + kFreeStart, kContextEnd - kFreeStart}};
    return;
  }
  std::fputs("tidemark: the phantom GPU cannot reserve addresses; raise the limit of virtual memory (ulimit -v)\n",
             stderr);
  std::_Exit(2);
}

AddressSpace::Region* AddressSpace::add_region(std::size_t bytes, std::size_t alignment) {
  const std::size_t size = round_up(bytes, kRegion);
  for (auto gap = gaps_.rbegin(); gap != gaps_.rend(); ++gap) {
    if (gap->second < size) continue;
    const auto highest = reinterpret_cast<std::uintptr_t>(gap->first) + gap->second - size;
    const std::uintptr_t aligned = highest / alignment * alignment;
    if (aligned < reinterpret_cast<std::uintptr_t>(gap->first)) continue;
    char* const start = gap->first + (aligned - reinterpret_cast<std::uintptr_t>(gap->first));
    cut(gaps_, std::prev(gap.base()), start, size);
    regions_.push_front({start, size, {{start, size}}});
    return &regions_.front();
  }
  return nullptr;
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

void AddressSpace::move_stacks() {
  const std::lock_guard lock(mutex_);
  if (context_ == nullptr) return;
  join(context_->free, context_->start + kStacksStart, kStacksEnd - kStacksStart);
  context_ = nullptr;
  join(stacks_->free, stacks_->start + kMovedStacksEnd, kMovedStacks - kMovedStacksEnd);
  // It is the newest region from now on.
  for (auto region = regions_.begin(); region != regions_.end(); ++region)
    if (&*region == stacks_) return regions_.splice(regions_.begin(), regions_, region);
}

void AddressSpace::release(void* pointer, std::size_t bytes) {
  madvise(pointer, bytes, MADV_DONTNEED);
  const std::lock_guard lock(mutex_);
  auto* const start = static_cast<char*>(pointer);
  for (auto region = regions_.begin(); region != regions_.end(); ++region) {
    if (start < region->start || start >= region->start + region->bytes) continue;
    join(region->free, start, bytes);
    if (region->free.size() == 1 && region->free.begin()->second == region->bytes) {
      join(gaps_, region->start, region->bytes);
      regions_.erase(region);
    }
    return;
  }
}

AddressSpace& address_space() {
  static auto* const kSpace = new AddressSpace;  // never destroyed: destructors of the program may still free
  return *kSpace;
}

}  // namespace tidemark::phantom
