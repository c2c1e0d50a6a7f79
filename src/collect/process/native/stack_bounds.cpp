#include <pthread.h>

#include "collect/process/native/unwinder.h"

// The end of the main thread's stack at program start; exported by the dynamic loader of glibc.
extern "C" void* __libc_stack_end __attribute__((weak));  // NOLINT(bugprone-reserved-identifier)

namespace tidemark::process {
namespace {

// Linux maps nothing within 128 MiB below the main thread's stack, whatever its limit (MIN_GAP in arch/x86/mm/mmap.c
// and mm/util.c), so a stack pointer in that range is on that stack.
constexpr std::uintptr_t kMainStackRange = std::uintptr_t{128} << 20;

}  // namespace

StackBounds native_stack_bounds() noexcept {
  const auto here = reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0));
  if (&__libc_stack_end != nullptr) {
    // By address, not by thread id: a process forked by another thread has that thread's stack.
    const auto high = reinterpret_cast<std::uintptr_t>(__libc_stack_end) & ~std::uintptr_t{7};
    if (here < high && high - here < kMainStackRange) return {high - kMainStackRange, high};
  }
  pthread_attr_t attributes;
  if (pthread_getattr_np(pthread_self(), &attributes) != 0) return {};
  void* low = nullptr;
  std::size_t size = 0;
  const bool known = pthread_attr_getstack(&attributes, &low, &size) == 0;
  pthread_attr_destroy(&attributes);
  const auto begin = reinterpret_cast<std::uintptr_t>(low);
  // A coroutine or a signal handler runs on another stack.
  if (!known || here < begin || here >= begin + size) return {};
  return {begin, (begin + size) & ~std::uintptr_t{7}};
}

}  // namespace tidemark::process
