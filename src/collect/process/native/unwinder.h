// Native stacks of the calling thread, unwound with cached rules. Lives inside the user's process.
//
// The rule for a return address (how to find the caller's frame) is worked out once from the module's .eh_frame and kept
// in a fixed-size cache shared by all threads without locks. Nothing here allocates, throws or faults: every stack read
// is checked against the bounds of the thread's stack. x86-64; elsewhere frame pointers only.
#pragma once

#include <cstddef>
#include <cstdint>

namespace tidemark::process {

/// Bounds of a thread's stack: reads stay within [current stack pointer, high).
struct StackBounds {
  std::uintptr_t high = 0;
};

/// Bounds of the calling thread. Slow (once per thread); high is 0 when they cannot be known.
StackBounds native_stack_bounds() noexcept;

/// Registers of a caller: pass what the hook was entered with.
struct NativeContext {
  std::uintptr_t pc;  ///< return address into the first frame to report
  std::uintptr_t sp;  ///< its stack pointer just after that return (the canonical frame address of the callee)
  std::uintptr_t fp;  ///< its rbp
};

/// Return addresses, innermost first, starting with context.pc. Stops without reporting it at an address in
/// [stop_low, stop_high) (the Python interpreter's eval function; 0, 0 for none). Returns how many; `*truncated` tells
/// whether there was more.
std::size_t native_walk(const NativeContext& context, StackBounds bounds, std::uintptr_t stop_low,
                        std::uintptr_t stop_high, std::uintptr_t* pcs, std::size_t capacity, bool* truncated) noexcept;

/// The ELF file mapped at an address. Strings are valid while the library stays loaded.
struct NativeModule {
  std::uintptr_t start;  ///< mapped range
  std::uintptr_t end;
  std::uintptr_t load_address;  ///< load bias
  const char* path;             ///< for the executable: resolved by /proc/self/exe into `path_buffer`
  std::uint8_t build_id[32];
  std::uint8_t build_id_size;  ///< bytes used; 0 = none
  char path_buffer[512];
};

/// Describes the module at `pc`; false when no ELF file is mapped there (generated code). Slow; takes no lock where the
/// C library offers _dl_find_object.
bool native_module_at(std::uintptr_t pc, NativeModule* out) noexcept;

}  // namespace tidemark::process
