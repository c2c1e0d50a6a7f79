// The walk itself, one instance for each row of the layout table so that every offset is a constant.
#pragma once

#include <cstddef>
#include <cstdint>

#include "collect/process/key_table.h"
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

/// What comes after `frame` on the way out, or 0.
template <std::size_t kRow>
std::uintptr_t next_frame(std::uintptr_t frame) noexcept {
  return load<std::uintptr_t>(frame + kLayouts[kRow].frame_previous);
}

// Frames lie on a stack of their own, outer ones below. In a training step most of it has left the first-level cache:
// fetching so far ahead, two lines for each frame, takes a third off a walk there and costs nothing when all is near.
inline constexpr std::uintptr_t kFetchAhead = 1024;
inline constexpr std::uintptr_t kCacheLine = 64;

inline void prefetch(std::uintptr_t address) noexcept {
  __builtin_prefetch(reinterpret_cast<const void*>(address));
}

/// At the innermost frame: fetches what prefetch_outer() will be too late for.
template <std::size_t kRow>
void prefetch_first(std::uintptr_t frame) noexcept {
  if constexpr (kLayouts[kRow].style != FrameStyle::frame_objects) {
    for (std::uintptr_t below = kCacheLine; below <= kFetchAhead; below += kCacheLine) prefetch(frame - below);
  }
}

/// At each frame.
template <std::size_t kRow>
void prefetch_outer(std::uintptr_t frame) noexcept {
  if constexpr (kLayouts[kRow].style != FrameStyle::frame_objects) {
    prefetch(frame - kFetchAhead);
    prefetch(frame - kFetchAhead - kCacheLine);
  }
}

template <std::size_t kRow>
std::uintptr_t code_of(std::uintptr_t frame) noexcept {
  return load<std::uintptr_t>(frame + kLayouts[kRow].frame_code) & ~std::uintptr_t{kLayouts[kRow].tag_mask};
}

template <std::size_t kRow>
std::uintptr_t first_local_of(std::uintptr_t frame) noexcept {
  return load<std::uintptr_t>(frame + kLayouts[kRow].frame_first_local) & ~std::uintptr_t{kLayouts[kRow].tag_mask};
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
    const std::uintptr_t code = code_of<kRow>(frame);
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
  *truncated = false;
  const std::uintptr_t thread = readable_thread_state(interpreter);
  if (thread == 0) return 0;
  std::size_t count = 0;
  std::size_t left = capacity;
  const std::uintptr_t module_call = module_call_code.load(std::memory_order_relaxed);
  for (std::uintptr_t frame = innermost_frame<kRow>(thread); frame != 0; frame = next_frame<kRow>(frame)) {
    if (left-- == 0) {
      *truncated = true;
      break;
    }
    PythonFrame found;
    if (!read_frame<kRow>(frame, &found)) continue;
    found.module = found.code == module_call ? first_local_of<kRow>(frame) : 0;
    frames[count++] = found;
  }
  return count;
}

/// See python_outermost_module(). A thread that is being made may have no frames yet.
template <std::size_t kRow>
std::uintptr_t outermost_module(std::uintptr_t thread) noexcept {
  if (load<std::uintptr_t>(thread + kLayouts[kRow].thread_frame) == 0) return 0;
  const std::uintptr_t module_call = module_call_code.load(std::memory_order_relaxed);
  std::uintptr_t module = 0;
  for (std::uintptr_t frame = innermost_frame<kRow>(thread); frame != 0; frame = next_frame<kRow>(frame)) {
    if (module_call != 0 && code_of<kRow>(frame) == module_call) module = first_local_of<kRow>(frame);
  }
  return module;
}

/// Whether a frame is left out follows from its code and instruction, so neither the owner nor the code object has to
/// be read: each would be another cache line. The first local is in the line behind the frame's header.
template <std::size_t kRow>
PythonStackKey key_of_frames(const Interpreter& interpreter, std::size_t capacity) noexcept {
  constexpr const Layout& kLayout = kLayouts[kRow];
  PythonStackKey key{};
  const std::uintptr_t thread = readable_thread_state(interpreter);
  if (thread == 0) return key;
  key.module_call = module_call_code.load(std::memory_order_relaxed);
  std::uintptr_t frame = innermost_frame<kRow>(thread);
  prefetch_first<kRow>(frame);
  for (; frame != 0; frame = next_frame<kRow>(frame)) {
    prefetch_outer<kRow>(frame);
    if (key.count == capacity) {
      key.truncated = true;
      break;
    }
    std::uintptr_t instruction = 0;
    if constexpr (kLayout.style == FrameStyle::frame_objects) {
      instruction = load<std::uint32_t>(frame + kLayout.frame_instruction);
    } else {
      instruction = load<std::uintptr_t>(frame + kLayout.frame_instruction);
    }
    const std::uintptr_t code = code_of<kRow>(frame);
    key.hash = mix_in_order(key.hash, mix(code, instruction));
    if (code == key.module_call) key.hash = mix_in_order(key.hash, mix(first_local_of<kRow>(frame), code));
    ++key.count;
  }
  return key;
}

}  // namespace tidemark::process
