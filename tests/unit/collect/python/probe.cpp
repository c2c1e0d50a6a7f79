// Loaded by python_walker_test.py and the benchmark into a real interpreter with ctypes: the walker, and the reader of
// line tables, behind a C interface. Linked without a C++ runtime, like the preloaded library.
#include <execinfo.h>
#include <pthread.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>

#include "collect/process/python/interpreter.h"
#include "collect/process/python/layout.h"
#include "collect/process/python/python_walker.h"
#include "collect/recorder/lanes/python_lines.h"

#define PROBE_API extern "C" __attribute__((visibility("default")))

namespace {

using namespace tidemark;
using namespace tidemark::process;

constexpr std::size_t kMaxFrames = 4096;

// Appends to a fixed buffer and sets a flag if it did not fit.
struct Text {
  char* at;
  char* end;
  bool overflow = false;

  void put(unsigned byte) {
    if (at == end) {
      overflow = true;
    } else {
      *at++ = static_cast<char>(byte);
    }
  }

  // UTF-8, also for lone surrogates: Python decodes it with "surrogatepass".
  void put_code_point(std::uint32_t point) {
    if (point < 0x80) {
      put(point);
    } else if (point < 0x800) {
      put(0xC0 | point >> 6);
      put(0x80 | (point & 0x3F));
    } else if (point < 0x10000) {
      put(0xE0 | point >> 12);
      put(0x80 | (point >> 6 & 0x3F));
      put(0x80 | (point & 0x3F));
    } else {
      put(0xF0 | point >> 18);
      put(0x80 | (point >> 12 & 0x3F));
      put(0x80 | (point >> 6 & 0x3F));
      put(0x80 | (point & 0x3F));
    }
  }

  void put_text(const PythonText& text) {
    for (std::size_t index = 0; index < text.length; ++index) {
      switch (text.kind) {
        case 1:
          put_code_point(static_cast<const std::uint8_t*>(text.data)[index]);
          break;
        case 2:
          put_code_point(static_cast<const std::uint16_t*>(text.data)[index]);
          break;
        default:
          put_code_point(static_cast<const std::uint32_t*>(text.data)[index]);
      }
    }
  }
};

// Fields whose wrong values the check must detect.
struct Field {
  const char* name;
  std::uint16_t Layout::*offset;
};
constexpr Field kCheckedFields[] = {
    {"thread_interpreter", &Layout::thread_interpreter}, {"thread_frame", &Layout::thread_frame},
    {"frame_previous", &Layout::frame_previous},         {"frame_code", &Layout::frame_code},
    {"code_basic_size", &Layout::code_basic_size},       {"code_line_table", &Layout::code_line_table},
    {"frame_instruction", &Layout::frame_instruction},
};
constexpr std::size_t kCheckedFieldCount = sizeof kCheckedFields / sizeof kCheckedFields[0];

double seconds_now() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

thread_local std::uint64_t last_key = 0;

// After Py_Finalize, possibly with daemon threads still running, a walk must find nothing and not fault.
__attribute__((destructor)) void walk_at_exit() {
  if (getenv("TIDEMARK_PROBE_WALK_AT_EXIT") == nullptr) return;
  PythonFrame frames[16];
  bool truncated = false;
  printf("frames after finalization: %zu\n", python_walk(frames, 16, &truncated));
  fflush(stdout);
}

}  // namespace

PROBE_API int probe_detect() {
  return static_cast<int>(python_detect());
}
PROBE_API int probe_version() {
  return python_minor_version();
}
PROBE_API const char* probe_version_text() {
  return python_version_text();
}
PROBE_API std::uint64_t probe_generation() {
  return python_generation();
}

/// Key of the last stack walked by probe_walk on this thread.
PROBE_API std::uint64_t probe_last_key() {
  return last_key;
}

/// Writes the caller's frames, innermost first, as "file \x1f function \x1f line \x1e" into `out`, and the length to
/// `*length`. Returns the number of frames; -1 if one could not be described, -2 if `out` is too small.
PROBE_API int probe_walk(char* out, std::size_t size, std::size_t* length, std::size_t capacity, int* truncated) {
  PythonFrame frames[kMaxFrames];
  bool more = false;
  const std::size_t count = python_walk(frames, capacity < kMaxFrames ? capacity : kMaxFrames, &more);
  *truncated = more ? 1 : 0;
  const PythonStackKey key = python_stack_key(capacity < kMaxFrames ? capacity : kMaxFrames);
  last_key = key.hash;
  if (key.truncated != more || key.count < count) return -1;
  Text text{out, out + size};
  for (std::size_t index = 0; index < count; ++index) {
    PythonCode code{};
    if (!python_describe(frames[index].code, &code)) return -1;
    const std::uint16_t version = python_minor_version();
    const std::uint32_t line =
        python_line(version, {static_cast<const std::byte*>(code.line_table), code.line_table_size}, code.first_line,
                    python_bytecode_offset(version, frames[index].instruction, code.code_offset));
    text.put_text(code.file);
    text.put(0x1F);
    text.put_text(code.function);
    text.put(0x1F);
    char digits[16];
    snprintf(digits, sizeof digits, "%u", line);
    for (const char* digit = digits; *digit != '\0'; ++digit) text.put(static_cast<unsigned char>(*digit));
    text.put(0x1E);
  }
  *length = static_cast<std::size_t>(text.at - out);
  return text.overflow ? -2 : static_cast<int>(count);
}

/// Writes the line map of the file of the caller's code, as "line \x1f trace \x1e", without a trace if an entry has
/// none. Returns the number of entries; -1 if there is none, -2 if `out` is too small.
PROBE_API int probe_line_map(char* out, std::size_t size, std::size_t* length) {
  PythonFrame frame{};
  bool truncated = false;
  LineMap map{};
  if (python_walk(&frame, 1, &truncated) == 0 || !python_line_map(frame.code, &map)) return -1;
  Text text{out, out + size};
  for (std::size_t index = 0; index < map.size; ++index) {
    std::uint32_t line = 0;
    PythonText trace{};
    const bool has_trace = python_line_map_entry(map, index, &line, &trace);
    char digits[16];
    snprintf(digits, sizeof digits, "%u", line);
    for (const char* digit = digits; *digit != '\0'; ++digit) text.put(static_cast<unsigned char>(*digit));
    text.put(0x1F);
    if (has_trace) text.put_text(trace);
    text.put(0x1E);
  }
  *length = static_cast<std::size_t>(text.at - out);
  return text.overflow ? -2 : static_cast<int>(map.size);
}

/// python_line() on a table provided by the caller.
PROBE_API std::uint32_t probe_line(std::uint16_t version, const char* table, std::size_t size, std::uint32_t first_line,
                                   std::uint32_t offset) {
  return python_line(version, {reinterpret_cast<const std::byte*>(table), size}, first_line, offset);
}

/// Watches the code object of the innermost frame and returns its address.
PROBE_API std::uintptr_t probe_watch_caller() {
  PythonFrame frame{};
  bool truncated = false;
  if (python_walk(&frame, 1, &truncated) == 0) return 0;
  python_watch(frame.code);
  return frame.code;
}

/// Walks on a thread unknown to Python. Returns the number of frames.
PROBE_API int probe_walk_on_foreign_thread() {
  pthread_t thread;
  const auto walk = [](void*) -> void* {
    PythonFrame frames[16];
    bool truncated = false;
    return reinterpret_cast<void*>(python_walk(frames, 16, &truncated));
  };
  if (pthread_create(&thread, nullptr, walk, nullptr) != 0) return -1;
  void* count = nullptr;
  pthread_join(thread, &count);
  return static_cast<int>(reinterpret_cast<std::intptr_t>(count));
}

/// Walks repeatedly for this many seconds; returns the number of walks.
PROBE_API std::uint64_t probe_walk_for(double seconds) {
  PythonFrame frames[64];
  bool truncated = false;
  std::uint64_t walks = 0;
  for (const double end = seconds_now() + seconds; seconds_now() < end; ++walks) python_walk(frames, 64, &truncated);
  return walks;
}

/// Nanoseconds of one walk of a stack that is known, mean of `walks`.
PROBE_API double probe_time_walk(std::uint64_t walks, std::size_t capacity) {
  const double begin = seconds_now();
  for (std::uint64_t index = 0; index < walks; ++index) {
    const PythonStackKey key = python_stack_key(capacity);
    asm volatile("" : : "r"(key.hash) : "memory");
  }
  return (seconds_now() - begin) * 1e9 / static_cast<double>(walks);
}

/// The range of the eval function, for the test to compare with.
PROBE_API void probe_eval_range(std::uintptr_t* low, std::uintptr_t* high) {
  python_eval_range(low, high);
}

/// Return addresses of the native stack, innermost first, from the C library.
PROBE_API int probe_native_stack(void** addresses, int capacity) {
  return backtrace(addresses, capacity);
}

/// Name of a field that the check of the layout must guard, or null after the last.
PROBE_API const char* probe_field_name(std::size_t index) {
  return index < kCheckedFieldCount ? kCheckedFields[index].name : nullptr;
}

/// Whether this interpreter would be accepted if that field of its row were `shift` bytes off.
PROBE_API int probe_shifted_layout_fits(std::size_t index, int shift) {
  Interpreter interpreter{};
  if (!find_interpreter(&interpreter)) return -1;
  const Layout* row = find_layout(interpreter.version);
  if (row == nullptr) return -1;
  Layout layout = *row;
  std::uint16_t& offset = layout.*kCheckedFields[index].offset;
  offset = static_cast<std::uint16_t>(offset + shift);
  return verify_layout(layout, interpreter) == Verdict::fits ? 1 : 0;
}
