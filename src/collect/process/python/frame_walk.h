// The walk itself, one instance for each row of the layout table so that every offset is a constant.
#pragma once

#include <cstddef>
#include <cstdint>

#include "collect/process/python/interpreter.h"
#include "collect/process/python/layout.h"
#include "collect/process/python/python_walker.h"

namespace tidemark::process {

// The state of the calling thread, or 0 when it has none that may be read.
inline std::uintptr_t readable_thread_state(const Interpreter& interpreter) noexcept {
  void* thread = interpreter.this_thread_state();
  // A finalizing interpreter frees the states of all other threads while those still run. Then only the thread that
  // holds the GIL is known to have kept its own.
  if (__builtin_expect(interpreter.is_finalizing() != 0, 0) && interpreter.current_thread_state() != thread) return 0;
  return reinterpret_cast<std::uintptr_t>(thread);
}

/// Innermost frame of a thread, or 0. `kRow` is an index into kLayouts here and below.
template <std::size_t kRow>
std::uintptr_t innermost_frame(std::uintptr_t thread) noexcept {
  constexpr const Layout& kLayout = kLayouts[kRow];
  const auto frame = load<std::uintptr_t>(thread + kLayout.thread_frame);
  if constexpr (kLayout.style == FrameStyle::frames_by_cframe) {
    return load<std::uintptr_t>(frame + kLayout.cframe_frame);
  }
  return frame;
}

/// Reads one frame; false for frames that are no Python function's, or not yet (as _PyFrame_IsIncomplete).
template <std::size_t kRow>
bool read_frame(std::uintptr_t frame, PythonFrame* out) noexcept {
  constexpr const Layout& kLayout = kLayouts[kRow];
  if constexpr (kLayout.style == FrameStyle::frame_objects) {
    out->code = load<std::uintptr_t>(frame + kLayout.frame_code);
    out->instruction = load<std::uint32_t>(frame + kLayout.frame_instruction);
    return true;
  } else {
    const auto owner = load<std::uint8_t>(frame + kLayout.frame_owner);
    if (owner >= kFirstShimOwner) return false;
    const std::uintptr_t code =
        load<std::uintptr_t>(frame + kLayout.frame_code) & ~std::uintptr_t{kLayout.code_tag_mask};
    // Unsigned: before the first instruction (prev_instr of 3.11 and 3.12) it wraps around within 32 bits.
    const auto instruction = static_cast<std::uint32_t>(load<std::uintptr_t>(frame + kLayout.frame_instruction) - code);
    out->code = code;
    out->instruction = instruction;
    if (owner == kOwnedByGenerator) return true;
    const std::uint32_t first_traceable =
        kLayout.code_bytecode + 2 * load<std::uint32_t>(code + kLayout.code_first_traceable);
    return instruction >= first_traceable;
  }
}

template <std::size_t kRow>
std::size_t walk_frames(const Interpreter& interpreter, PythonFrame* frames, std::size_t capacity,
                        bool* truncated) noexcept {
  constexpr const Layout& kLayout = kLayouts[kRow];
  *truncated = false;
  const std::uintptr_t thread = readable_thread_state(interpreter);
  if (thread == 0) return 0;
  std::size_t count = 0;
  for (std::uintptr_t frame = innermost_frame<kRow>(thread); frame != 0;
       frame = load<std::uintptr_t>(frame + kLayout.frame_previous)) {
    if constexpr (kLayout.style != FrameStyle::frame_objects) {
      // Frames lie on a stack of their own, outer ones below: fetch what comes two or three frames later. Saves a sixth
      // of a walk whose frames have left the first-level cache, and costs nothing otherwise.
      __builtin_prefetch(reinterpret_cast<const void*>(frame - 512));
    }
    PythonFrame found;
    if (!read_frame<kRow>(frame, &found)) continue;
    if (count == capacity) {
      *truncated = true;
      break;
    }
    frames[count++] = found;
  }
  return count;
}

}  // namespace tidemark::process
