// Offsets of the CPython fields that a stack walk reads, one row for each minor version. The only place with such
// numbers.
//
// Sources: Include/cpython/{pystate,frameobject,code,unicodeobject}.h and
// Include/internal/pycore_{frame,interpframe_structs}.h of each version; tests/unit/collect/python/layout_test.cpp
// compares the rows with the headers of installed versions. They are valid for ordinary 64-bit builds: not for
// Py_DEBUG, Py_TRACE_REFS or free-threaded ones.
#pragma once

#include <cstddef>
#include <cstdint>

#include "collect/ring/layout.h"

namespace tidemark::process {

static_assert(sizeof(void*) == 8, "the layouts below are those of 64-bit interpreters");

/// How a thread's frames are chained.
enum class FrameStyle : std::uint8_t {
  frame_objects,       ///< 3.9, 3.10: PyFrameObject from tstate->frame; the instruction is f_lasti
  frames_by_cframe,    ///< 3.11, 3.12: _PyInterpreterFrame from tstate->cframe->current_frame; prev_instr
  interpreter_frames,  ///< 3.13, 3.14: _PyInterpreterFrame from tstate->current_frame; instr_ptr
};

/// Offsets in bytes. 0 if the version has no such field and it is not read.
struct Layout {
  std::uint16_t version;  ///< 0x030B is 3.11
  FrameStyle style;

  // PyThreadState
  std::uint16_t thread_interpreter;
  std::uint16_t thread_frame;  ///< frame, cframe or current_frame
  std::uint16_t cframe_frame;  ///< _PyCFrame::current_frame

  // PyFrameObject or _PyInterpreterFrame
  std::uint16_t frame_previous;
  std::uint16_t frame_code;
  std::uint16_t frame_instruction;
  std::uint16_t frame_owner;
  std::uint16_t frame_first_local;  ///< localsplus[0]: the first argument, unless a cell has replaced it
  std::uint8_t tag_mask;            ///< bits of these two that are not part of the address (_PyStackRef, 3.14)

  // PyCodeObject
  std::uint16_t code_basic_size;  ///< PyCode_Type.tp_basicsize
  std::uint16_t code_file;
  std::uint16_t code_function;  ///< co_qualname; co_name before 3.11
  std::uint16_t code_first_line;
  std::uint16_t code_line_table;
  std::uint16_t code_cells;            ///< co_cellvars, a tuple; from 3.11 on co_ncellvars
  std::uint16_t code_first_traceable;  ///< index of the first RESUME; frames before it are still being set up
  std::uint16_t code_bytecode;         ///< co_code_adaptive

  // Sizes of the headers of str objects; the characters of a compact str follow them.
  std::uint16_t ascii_string_size;
  std::uint16_t compact_string_size;

  // Index (in 8-byte words) of three groups in _Py_DebugOffsets; 0 before 3.13.
  std::uint8_t debug_thread;
  std::uint8_t debug_frame;
  std::uint8_t debug_code;
};

// clang-format off
inline constexpr Layout kLayouts[] = {
  {.version = 0x0309, .style = FrameStyle::frame_objects,
   .thread_interpreter = 16, .thread_frame = 24, .cframe_frame = 0,
   .frame_previous = 24, .frame_code = 32, .frame_instruction = 104, .frame_owner = 0, .frame_first_local = 360, .tag_mask = 0,
   .code_basic_size = 176, .code_file = 104, .code_function = 112, .code_first_line = 40, .code_line_table = 120, .code_cells = 88,
   .code_first_traceable = 0, .code_bytecode = 0, .ascii_string_size = 48, .compact_string_size = 72,
   .debug_thread = 0, .debug_frame = 0, .debug_code = 0},
  {.version = 0x030A, .style = FrameStyle::frame_objects,
   .thread_interpreter = 16, .thread_frame = 24, .cframe_frame = 0,
   .frame_previous = 24, .frame_code = 32, .frame_instruction = 96, .frame_owner = 0, .frame_first_local = 352, .tag_mask = 0,
   .code_basic_size = 176, .code_file = 104, .code_function = 112, .code_first_line = 40, .code_line_table = 120, .code_cells = 88,
   .code_first_traceable = 0, .code_bytecode = 0, .ascii_string_size = 48, .compact_string_size = 72,
   .debug_thread = 0, .debug_frame = 0, .debug_code = 0},
  {.version = 0x030B, .style = FrameStyle::frames_by_cframe,
   .thread_interpreter = 16, .thread_frame = 56, .cframe_frame = 8,
   .frame_previous = 48, .frame_code = 32, .frame_instruction = 56, .frame_owner = 69, .frame_first_local = 72, .tag_mask = 0,
   .code_basic_size = 184, .code_file = 112, .code_function = 128, .code_first_line = 72, .code_line_table = 136, .code_cells = 88,
   .code_first_traceable = 168, .code_bytecode = 184, .ascii_string_size = 48, .compact_string_size = 72,
   .debug_thread = 0, .debug_frame = 0, .debug_code = 0},
  {.version = 0x030C, .style = FrameStyle::frames_by_cframe,
   .thread_interpreter = 16, .thread_frame = 56, .cframe_frame = 0,
   .frame_previous = 8, .frame_code = 0, .frame_instruction = 56, .frame_owner = 70, .frame_first_local = 72, .tag_mask = 0,
   .code_basic_size = 192, .code_file = 112, .code_function = 128, .code_first_line = 68, .code_line_table = 136, .code_cells = 84,
   .code_first_traceable = 176, .code_bytecode = 192, .ascii_string_size = 40, .compact_string_size = 56,
   .debug_thread = 0, .debug_frame = 0, .debug_code = 0},
  {.version = 0x030D, .style = FrameStyle::interpreter_frames,
   .thread_interpreter = 16, .thread_frame = 72, .cframe_frame = 0,
   .frame_previous = 8, .frame_code = 0, .frame_instruction = 56, .frame_owner = 70, .frame_first_local = 72, .tag_mask = 0,
   .code_basic_size = 200, .code_file = 112, .code_function = 128, .code_first_line = 68, .code_line_table = 136, .code_cells = 84,
   .code_first_traceable = 184, .code_bytecode = 200, .ascii_string_size = 40, .compact_string_size = 56,
   .debug_thread = 19, .debug_frame = 28, .debug_code = 34},
  {.version = 0x030E, .style = FrameStyle::interpreter_frames,
   .thread_interpreter = 16, .thread_frame = 72, .cframe_frame = 0,
   .frame_previous = 8, .frame_code = 0, .frame_instruction = 56, .frame_owner = 74, .frame_first_local = 80, .tag_mask = 3,
   .code_basic_size = 208, .code_file = 112, .code_function = 128, .code_first_line = 68, .code_line_table = 136, .code_cells = 84,
   .code_first_traceable = 192, .code_bytecode = 208, .ascii_string_size = 40, .compact_string_size = 56,
   .debug_thread = 22, .debug_frame = 31, .debug_code = 39},
};
// clang-format on
inline constexpr std::size_t kLayoutCount = sizeof(kLayouts) / sizeof(kLayouts[0]);

constexpr bool matches_walked_versions() {
  if (kLayoutCount != sizeof(ring::kWalkedPythons) / sizeof(ring::kWalkedPythons[0])) return false;
  for (std::size_t n = 0; n < kLayoutCount; ++n) {
    if (kLayouts[n].version != ring::kWalkedPythons[n]) return false;
  }
  return true;
}
static_assert(matches_walked_versions(), "ring::kWalkedPythons names the rows above");

// Equal in every version listed.
inline constexpr std::size_t kObjectType = 8;        ///< PyObject::ob_type
inline constexpr std::size_t kObjectSize = 16;       ///< PyVarObject::ob_size
inline constexpr std::size_t kTypeBasicSize = 32;    ///< PyTypeObject::tp_basicsize
inline constexpr std::size_t kTypeDealloc = 48;      ///< PyTypeObject::tp_dealloc
inline constexpr std::size_t kTypeFlags = 168;       ///< PyTypeObject::tp_flags
inline constexpr std::size_t kStringLength = 16;     ///< PyASCIIObject::length
inline constexpr std::size_t kStringState = 32;      ///< PyASCIIObject::state, a 32-bit group of bit fields
inline constexpr std::size_t kBytesData = 32;        ///< PyBytesObject::ob_sval
inline constexpr std::uint32_t kStateKindShift = 2;  ///< state.kind, three bits
inline constexpr std::uint32_t kStateCompact = 1U << 5;
inline constexpr std::uint32_t kStateAscii = 1U << 6;
inline constexpr std::uint64_t kLongSubclassFlag = 1ULL << 24;    ///< Py_TPFLAGS_LONG_SUBCLASS
inline constexpr std::uint64_t kBytesSubclassFlag = 1ULL << 27;   ///< Py_TPFLAGS_BYTES_SUBCLASS
inline constexpr std::uint64_t kStringSubclassFlag = 1ULL << 28;  ///< Py_TPFLAGS_UNICODE_SUBCLASS
inline constexpr std::uint8_t kOwnedByGenerator = 1;              ///< FRAME_OWNED_BY_GENERATOR
inline constexpr std::uint8_t kLastOwner = 4;                     ///< highest value of enum _frameowner
inline constexpr std::uint8_t kFirstShimOwner = 3;  ///< from here on the interpreter's own entries, not Python frames

// Words of _Py_DebugOffsets from its start, or from the start of the group.
inline constexpr std::size_t kDebugVersion = 1;
inline constexpr std::size_t kDebugFreeThreaded = 2;
inline constexpr std::size_t kDebugThreadInterpreter = 3;
inline constexpr std::size_t kDebugThreadFrame = 4;
inline constexpr std::size_t kDebugFramePrevious = 1;
inline constexpr std::size_t kDebugFrameCode = 2;
inline constexpr std::size_t kDebugFrameInstruction = 3;
inline constexpr std::size_t kDebugFrameFirstLocal = 4;
inline constexpr std::size_t kDebugFrameOwner = 5;
inline constexpr std::size_t kDebugCodeFile = 1;
inline constexpr std::size_t kDebugCodeFunction = 3;
inline constexpr std::size_t kDebugCodeLineTable = 4;
inline constexpr std::size_t kDebugCodeFirstLine = 5;
inline constexpr std::size_t kDebugCodeBytecode = 9;

/// The row for `version`, or null.
constexpr const Layout* find_layout(std::uint16_t version) {
  for (const Layout& layout : kLayouts) {
    if (layout.version == version) return &layout;
  }
  return nullptr;
}

/// A field of type T at `address`, which must be readable.
template <typename T>
T load(std::uintptr_t address) {
  T value;
  __builtin_memcpy(&value, reinterpret_cast<const void*>(address), sizeof value);
  return value;
}

}  // namespace tidemark::process
