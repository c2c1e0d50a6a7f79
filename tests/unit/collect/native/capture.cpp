#include "capture.h"

#include <dlfcn.h>
#include <execinfo.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "collect/process/native/unwinder.h"

namespace tidemark::process {

[[gnu::noinline]] Stacks capture_stacks() {
  static thread_local const StackBounds bounds = native_stack_bounds();
  std::array<void*, Addresses::kCapacity> theirs;
  const int their_count = backtrace(theirs.data(), static_cast<int>(theirs.size()));
  std::array<std::uintptr_t, Addresses::kCapacity> ours;
  bool truncated = false;
  const std::size_t our_count =
      native_walk(native_caller_context(), bounds, 0, 0, ours.data(), ours.size(), &truncated);
  Stacks stacks;
  for (std::size_t i = 0; i < our_count; ++i) stacks.ours.push_back(ours[i]);
  // Before the caller comes this function, and with a sanitizer its interceptor.
  const auto* end = theirs.cbegin() + their_count;
  for (const auto* at = std::find(theirs.cbegin(), end, __builtin_return_address(0)); at != end; ++at) {
    stacks.theirs.push_back(reinterpret_cast<std::uintptr_t>(*at));
  }
  return stacks;
}

void capture_into(void* argument) {
  *static_cast<Stacks*>(argument) = capture_stacks();
}

Addresses as_backtrace(const Stacks& stacks) {
  // mov $15, %rax (rt_sigreturn): what libc's trampoline starts with.
  constexpr std::array<unsigned char, 7> kTrampoline = {0x48, 0xC7, 0xC0, 0x0F, 0x00, 0x00, 0x00};
  Addresses result = stacks.ours;
  for (std::size_t i = 1; i < result.size(); ++i) {
    Dl_info info;
    const void* before = reinterpret_cast<const void*>(stacks.ours[i - 1]);
    const bool mapped = dladdr(before, &info) != 0;
    if (mapped && std::memcmp(before, kTrampoline.data(), kTrampoline.size()) == 0) --result[i];
  }
  return result;
}

}  // namespace tidemark::process
