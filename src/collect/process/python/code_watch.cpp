#include "collect/process/python/code_watch.h"

#include <atomic>
#include <cstddef>

#include "collect/process/python/layout.h"

namespace tidemark::process {
namespace {

// A set of 32-bit tags in buckets of eight, 256 KiB of zero pages until used. A tag is the address without its four low
// bits (objects are 16-byte aligned), cut to 32: two live code objects 64 GiB apart could share one, which only makes a
// death count that need not. A bucket without room gets the tag that matches everything.
//
// A death takes its tag (or the bucket's match-all) out before it raises the generation. That loses nothing, even when
// the tag stood for another object too: whoever learned a meaning before must forget it when the generation changes.
constexpr std::size_t kBuckets = 8192;
constexpr std::size_t kWays = 8;
constexpr std::uint32_t kEmpty = 0;
constexpr std::uint32_t kMatchAll = 0xFFFFFFFF;

struct alignas(kWays * sizeof(std::uint32_t)) Bucket {
  std::atomic<std::uint32_t> tags[kWays];
};

constinit Bucket buckets[kBuckets];
constinit std::atomic<std::uint64_t> generation{1};
constinit std::atomic<void (*)(void*)> original_dealloc{nullptr};

std::uint32_t tag_of(std::uintptr_t code) noexcept {
  const auto tag = static_cast<std::uint32_t>(code >> 4);
  return tag == kEmpty || tag == kMatchAll ? 1 : tag;
}

Bucket& bucket_of(std::uint32_t tag) noexcept {
  return buckets[(tag * 0x9E3779B1U) >> 19];  // Fibonacci hashing to 13 bits
}

bool forget(std::uintptr_t code) noexcept {
  const std::uint32_t tag = tag_of(code);
  bool watched = false;
  for (std::atomic<std::uint32_t>& slot : bucket_of(tag).tags) {
    const std::uint32_t seen = slot.load(std::memory_order_relaxed);
    if (seen != tag && seen != kMatchAll) continue;
    slot.store(kEmpty);
    watched = true;
  }
  return watched;
}

void dealloc_code(void* code) {
  if (forget(reinterpret_cast<std::uintptr_t>(code))) generation.fetch_add(1);
  original_dealloc.load(std::memory_order_relaxed)(code);
}

}  // namespace

void watch_code_deaths(std::uintptr_t code_type) noexcept {
  // The GIL is not held: other threads may be calling through the slot, which is why it changes in one store.
  std::atomic_ref<void (*)(void*)> slot(*reinterpret_cast<void (**)(void*)>(code_type + kTypeDealloc));
  original_dealloc.store(slot.load());
  slot.store(dealloc_code);
}

void watch_code(std::uintptr_t code) noexcept {
  const std::uint32_t tag = tag_of(code);
  Bucket& bucket = bucket_of(tag);
  for (std::atomic<std::uint32_t>& slot : bucket.tags) {
    std::uint32_t seen = slot.load();
    if (seen == kEmpty && slot.compare_exchange_strong(seen, tag)) return;
    if (seen == tag || seen == kMatchAll) return;
  }
  bucket.tags[kWays - 1].store(kMatchAll);
}

std::uint64_t code_generation() noexcept {
  return generation.load(std::memory_order_acquire);
}

}  // namespace tidemark::process
