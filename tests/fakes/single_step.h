// Runs code with a signal after each of its instructions.
#pragma once

#include <signal.h>

#include <cstdint>
#include <cstdlib>

namespace stepping {

using Handler = void();
inline Handler* handler = nullptr;

inline void on_trap(int /*signal*/) {
  handler();
}

#if defined(__x86_64__)
constexpr bool kSupported = true;

// The processor's trap flag; the kernel clears it while the handler runs.
inline void set_trap_flag(bool on) {
  std::uint64_t flags = __builtin_ia32_readeflags_u64();
  flags = on ? flags | 0x100 : flags & ~std::uint64_t{0x100};
  __builtin_ia32_writeeflags_u64(flags);
}
#else
constexpr bool kSupported = false;
inline void set_trap_flag(bool /*on*/) {}
#endif

}  // namespace stepping

/// Calls `code` in the calling thread, and `handler` in a signal handler between any two of its instructions. Exits
/// with 77 if this is not supported for the processor.
template <typename Code>
void single_step(const Code& code, stepping::Handler* handler) {
  if (!stepping::kSupported) ::_exit(77);
  stepping::handler = handler;
  struct sigaction action {};
  action.sa_handler = stepping::on_trap;
  ::sigaction(SIGTRAP, &action, nullptr);
  stepping::set_trap_flag(true);
  code();
  stepping::set_trap_flag(false);
}
