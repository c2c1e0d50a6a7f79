// Native stacks of the calling thread, unwound with cached rules. Runs inside the user's process.
//
// The rule for a return address (how to find the caller's frame) is computed once from the module's .eh_frame and kept
// in a fixed-size cache shared by all threads without locks. These functions never throw or fault, and a walk allocates
// nothing: every stack read is checked against the bounds of the thread's stack. x86-64; frame pointers only on other
// architectures.
#pragma once

#include <cstddef>
#include <cstdint>

namespace tidemark::process {

struct WalkRecord;

/// The calling thread's stack. Reads stay within [current stack pointer, high), and happen only while the stack pointer
/// is at or above low: a signal handler on its own stack, or a coroutine, yields only its first frame.
struct StackBounds {
  std::uintptr_t low = 0;
  std::uintptr_t high = 0;  ///< 0 = unknown: a walk yields only its first frame
};

/// Bounds of the calling thread; the caller caches them for the thread's life. Not for the hot path or a signal
/// handler: for threads other than the main one the C library allocates and frees a little memory.
StackBounds native_stack_bounds() noexcept;

/// Registers of a caller: pass those at the entry of the hook.
struct NativeContext {
  std::uintptr_t pc;  ///< return address into the first frame to report
  std::uintptr_t sp;  ///< its stack pointer just after that return (the canonical frame address of the callee)
  std::uintptr_t fp;  ///< its rbp
};

/// The context of the caller of the enclosing function, which must be compiled with frame pointers and not be inlined.
[[gnu::always_inline]] inline NativeContext native_caller_context() noexcept {
  const auto* frame = static_cast<const std::uintptr_t*>(__builtin_frame_address(0));
#if defined(__x86_64__)
  return {frame[1], reinterpret_cast<std::uintptr_t>(__builtin_dwarf_cfa()), frame[0]};
#else
  return {frame[1], reinterpret_cast<std::uintptr_t>(frame), frame[0]};
#endif
}

/// Return addresses, innermost first, starting with context.pc. Stops before an address in [stop_low, stop_high) (the
/// Python interpreter's eval function; 0, 0 for none). Returns their number; `*truncated` is true if there were more. A
/// place interrupted by a signal is returned as its address + 1, so that "address - 1" is inside the right instruction
/// for every frame. `record`, unless null, receives the inputs of the walk, without its `hash`. Thread-safe; may be
/// called from a signal handler.
std::size_t native_walk(const NativeContext& context, StackBounds bounds, std::uintptr_t stop_low,
                        std::uintptr_t stop_high, std::uintptr_t* pcs, std::size_t capacity, bool* truncated,
                        WalkRecord* record = nullptr) noexcept;

/// Clears the cache. Call it after a library was unloaded: until then, a library mapped at its addresses can get wrong
/// frames (never a fault). Thread-safe, some microseconds.
void native_forget() noexcept;

/// The ELF file mapped at an address. `path` is valid while the library stays loaded and this object is not moved.
struct NativeModule {
  std::uintptr_t start;  ///< mapped range
  std::uintptr_t end;
  std::uintptr_t load_address;  ///< load bias
  const char* path;             ///< absolute, or "[vdso]"; in `path_buffer` if the loader has no absolute one
  std::uint8_t build_id[32];
  std::uint8_t build_id_size;  ///< bytes used; 0 = none
  char path_buffer[512];
};

/// Describes the module at `pc`; false if no ELF file is mapped there (generated code). Slow; takes no lock if the C
/// library has _dl_find_object (glibc 2.35 on), else the loader's for a moment.
bool native_module_at(std::uintptr_t pc, NativeModule* out) noexcept;

}  // namespace tidemark::process
