#include "collect/process/python/verify.h"

#include <cstddef>
#include <cstring>

#include "collect/process/python/safe_read.h"

namespace tidemark::process {
namespace {

constexpr unsigned kFramesChecked = 64;
constexpr std::int64_t kLongestText = 1 << 20;  // of a file or function name; longer ones mean a wrong offset

// From 3.13 on the interpreter publishes its own offsets for debuggers.
bool debug_offsets_agree(const Layout& layout, std::uintptr_t runtime) noexcept {
  if (layout.debug_thread == 0) return true;
  char cookie[8];
  if (runtime == 0 || !safe_load(runtime, &cookie) || std::memcmp(cookie, "xdebugpy", sizeof cookie) != 0) return false;
  std::uint64_t words[64];
  if (!safe_load(runtime, &words)) return false;
  const std::uint64_t* thread = words + layout.debug_thread;
  const std::uint64_t* frame = words + layout.debug_frame;
  const std::uint64_t* code = words + layout.debug_code;
  return words[kDebugVersion] >> 16 == layout.version && words[kDebugFreeThreaded] == 0 &&
         thread[kDebugThreadInterpreter] == layout.thread_interpreter &&
         thread[kDebugThreadFrame] == layout.thread_frame && frame[kDebugFramePrevious] == layout.frame_previous &&
         frame[kDebugFrameCode] == layout.frame_code && frame[kDebugFrameInstruction] == layout.frame_instruction &&
         frame[kDebugFrameFirstLocal] == layout.frame_first_local && frame[kDebugFrameOwner] == layout.frame_owner &&
         code[kDebugCodeFile] == layout.code_file && code[kDebugCodeFunction] == layout.code_function &&
         code[kDebugCodeLineTable] == layout.code_line_table && code[kDebugCodeFirstLine] == layout.code_first_line &&
         code[kDebugCodeBytecode] == layout.code_bytecode;
}

// Whether the object that the field at `address` points to has a type with this flag, and a believable length.
bool holds(std::uintptr_t address, std::uint64_t type_flag) noexcept {
  std::uintptr_t object = 0, type = 0;
  std::uint64_t flags = 0;
  std::int64_t length = 0;
  static_assert(kStringLength == kObjectSize);
  return safe_load(address, &object) && safe_load(object + kObjectType, &type) &&
         safe_load(type + kTypeFlags, &flags) && (flags & type_flag) != 0 && safe_load(object + kObjectSize, &length) &&
         length >= 0 && length <= kLongestText;
}

bool code_fits(const Layout& layout, const Interpreter& interpreter, std::uintptr_t code) noexcept {
  std::uintptr_t type = 0;
  std::int32_t first_line = -1;
  return safe_load(code + kObjectType, &type) && type == interpreter.code_type &&
         holds(code + layout.code_file, kStringSubclassFlag) &&
         holds(code + layout.code_function, kStringSubclassFlag) &&
         holds(code + layout.code_line_table, kBytesSubclassFlag) &&
         safe_load(code + layout.code_first_line, &first_line) && first_line >= 0;
}

// The instruction must lie in the bytecode (prev_instr of 3.11 and 3.12 may stand one unit before it).
bool instruction_fits(const Layout& layout, std::uintptr_t frame, std::uintptr_t code) noexcept {
  if (layout.style == FrameStyle::frame_objects) {
    std::int32_t last = 0;
    return safe_load(frame + layout.frame_instruction, &last) && last >= -1;
  }
  std::uintptr_t instruction = 0;
  std::int64_t units = 0;  // ob_size of a code object: its bytecode in units of two bytes
  std::int32_t first_traceable = -1;
  const std::uintptr_t first = code + layout.code_bytecode;
  return safe_load(frame + layout.frame_instruction, &instruction) && safe_load(code + kObjectSize, &units) &&
         safe_load(code + layout.code_first_traceable, &first_traceable) && first_traceable >= 0 &&
         first_traceable < units && instruction + 2 >= first && units > 0 &&
         instruction < first + 2 * static_cast<std::uintptr_t>(units);
}

}  // namespace

Verdict verify_layout(const Layout& layout, const Interpreter& interpreter) noexcept {
  const auto thread = reinterpret_cast<std::uintptr_t>(interpreter.this_thread_state());
  if (thread == 0) return Verdict::no_frames;
  std::uintptr_t owner = 0;
  std::int64_t basic_size = 0;
  if (!safe_load(interpreter.code_type + kTypeBasicSize, &basic_size) || basic_size != layout.code_basic_size ||
      !debug_offsets_agree(layout, interpreter.runtime) || !safe_load(thread + layout.thread_interpreter, &owner) ||
      owner != reinterpret_cast<std::uintptr_t>(interpreter.interpreter_of(reinterpret_cast<void*>(thread)))) {
    return Verdict::differs;
  }
  std::uintptr_t frame = 0;
  if (!safe_load(thread + layout.thread_frame, &frame)) return Verdict::differs;
  if (layout.style == FrameStyle::frames_by_cframe && !safe_load(frame + layout.cframe_frame, &frame)) {
    return Verdict::differs;
  }
  unsigned functions = 0;
  for (unsigned checked = 0; frame != 0 && checked < kFramesChecked; ++checked) {
    std::uint8_t frame_owner = 0;
    if (layout.frame_owner != 0 && !safe_load(frame + layout.frame_owner, &frame_owner)) return Verdict::differs;
    if (frame_owner > kLastOwner) return Verdict::differs;
    if (frame_owner < kFirstShimOwner) {
      std::uintptr_t code = 0;
      if (!safe_load(frame + layout.frame_code, &code)) return Verdict::differs;
      code &= ~std::uintptr_t{layout.tag_mask};
      if (!code_fits(layout, interpreter, code) || !instruction_fits(layout, frame, code)) return Verdict::differs;
      ++functions;
    }
    if (!safe_load(frame + layout.frame_previous, &frame)) return Verdict::differs;
  }
  return functions > 0 ? Verdict::fits : Verdict::no_frames;
}

}  // namespace tidemark::process
