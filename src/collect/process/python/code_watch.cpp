#include "collect/process/python/code_watch.h"

#include <atomic>

#include "collect/process/python/address_set.h"
#include "collect/process/python/layout.h"
#include "collect/process/python/python_walker.h"

namespace tidemark::process {
namespace {

// A death removes the address before it raises the generation. This is safe even if its tag stood for another object
// too: all meanings learned before must be forgotten when the generation changes. A false positive only causes an extra
// generation.
constinit AddressSet watched;
constinit std::atomic<std::uint64_t> generation{1};
constinit std::atomic<void (*)(void*)> original_dealloc{nullptr};

void dealloc_code(void* code) {
  const auto address = reinterpret_cast<std::uintptr_t>(code);
  if (watched.erase(address)) {
    std::uintptr_t expected = address;
    module_call_code.compare_exchange_strong(expected, 0);
    generation.fetch_add(1);
  }
  original_dealloc.load(std::memory_order_relaxed)(code);
}

}  // namespace

void watch_code_deaths(std::uintptr_t code_type) noexcept {
  // The GIL is not held: other threads may be calling through the slot, so it changes in one store.
  std::atomic_ref<void (*)(void*)> slot(*reinterpret_cast<void (**)(void*)>(code_type + kTypeDealloc));
  original_dealloc.store(slot.load());
  slot.store(dealloc_code);
}

void watch_code(std::uintptr_t code) noexcept {
  watched.insert(code);
}

std::uint64_t code_generation() noexcept {
  return generation.load(std::memory_order_acquire);
}

}  // namespace tidemark::process
