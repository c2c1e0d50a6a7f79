// The definition that an interposed function would have called: found once, from where the call came.
//
// Python loads libc10 with RTLD_LOCAL, so dlsym(RTLD_NEXT) from a preloaded library does not find it; the library that
// called us does, among its own dependencies. Where that fails too, every loaded library is asked.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "collect/process/autograd.h"
#include "collect/process/elf_dynamic.h"
#include "collect/process/stack_capture.h"

namespace tidemark::process {

/// Address of the next definition of `symbol` for the library that contains `caller`; `self` is our own definition.
/// Null when there is none. The library that has it stays loaded from then on. Takes the loader's lock: once per
/// symbol. Keeps errno.
void* find_next_definition(const char* symbol, const void* caller, const void* self) noexcept;

/// Forwards calls of one symbol of the framework, whose library the recording names. Constant-initialised, safe from
/// any thread.
template <typename Function>
class Forward {
 public:
  constexpr explicit Forward(const char* symbol) noexcept : symbol_(symbol) {}

  /// The next definition, or null.
  Function* get(const void* caller, const void* self) noexcept {
    void* found = next_.load(std::memory_order_acquire);
    if (found == nullptr) [[unlikely]] {
      found = find_next_definition(symbol_, caller, self);
      if (found != nullptr) {
        set_reporting_library(found);
        find_autograd_functions();
      }
      next_.store(found != nullptr ? found : this, std::memory_order_release);
    }
    return found != this ? reinterpret_cast<Function*>(found) : nullptr;
  }

  /// patch_import_slots() for this symbol: the original is known from then on.
  std::size_t patch(Function* hook) noexcept {
    void* original = nullptr;
    const std::size_t slots = patch_import_slots(symbol_, reinterpret_cast<void*>(hook), &original);
    if (original != nullptr) {
      set_reporting_library(original);
      find_autograd_functions();
      next_.store(original, std::memory_order_release);
    }
    return slots;
  }

 private:
  const char* symbol_;
  std::atomic<void*> next_{nullptr};  ///< null = not looked up yet; this object = there is none
};

}  // namespace tidemark::process
