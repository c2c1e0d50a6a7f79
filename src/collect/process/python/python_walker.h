// Python stacks of the calling thread, walked without the GIL. Runs inside the user's process.
//
// A thread's own frames cannot change while it is inside an allocation, so they can be read without a lock. These
// functions never allocate, throw, take a lock or call a Python function that could, and may be called from any thread.
// Layouts differ by CPython minor version (3.9 to 3.14) and come from one table of offsets.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "collect/process/python/interpreter.h"
#include "collect/process/python/layout.h"

namespace tidemark::process {

/// One frame. Equal frames of a living code object have equal values.
struct PythonFrame {
  std::uintptr_t code;        ///< address of the PyCodeObject
  std::uint32_t instruction;  ///< position in it, in the unit of the version (see PythonCode::code_offset)
  std::uintptr_t module;      ///< address of the torch.nn.Module that this frame calls and keeps alive; or 0
};

/// Text of a Python str in place: not copied, valid while the code object lives.
struct PythonText {
  const void* data;
  std::size_t length;  ///< code points
  std::uint8_t kind;   ///< bytes per code point: 1 (Latin-1), 2 (UCS-2) or 4 (UCS-4)
};

/// The names of a code object. Valid while the code object lives.
struct PythonCode {
  PythonText file;
  PythonText function;  ///< qualified name from 3.11 on, plain name before
  std::uint32_t first_line;
  const void* line_table;  ///< co_lnotab (3.9) or co_linetable (3.10 on)
  std::size_t line_table_size;
  std::uint32_t code_offset;  ///< subtract from PythonFrame::instruction to get the byte offset into the bytecode
};

/// The lines of the program from which the lines of a generated file were made: see find_line_map().
struct LineMap {
  void* lines;   ///< tuple of int: the lines of the file at which entries begin
  void* traces;  ///< tuple of str or None: their stack traces in the program, as Python prints them
  std::size_t size;
};

enum class PythonSupport : std::uint8_t {
  absent,  ///< no interpreter in this process (yet): call again later
  supported,
  unsupported,  ///< an interpreter of an unsupported version or build: no Python stacks
};

/// Looks for an interpreter and, on the first thread seen to run Python functions, checks its layout. A final result
/// (not `absent`) costs one load; `absent` a few loads most of the time, a microsecond and the dynamic loader's lock
/// when it looks again. Thread-safe; keeps errno.
PythonSupport python_detect() noexcept;

/// Version found, as 0x030B (3.11) and "3.11.7"; 0 and "" while absent. Also set when unsupported.
std::uint16_t python_minor_version() noexcept;
const char* python_version_text() noexcept;

/// Addresses [low, high) at which native frames end and Python's begin: _PyEval_EvalFrameDefault, or all code of the
/// interpreter's executable or library if the compiler has split that function. 0, 0: not found, or not looked yet.
void python_eval_range(std::uintptr_t* low, std::uintptr_t* high) noexcept;

/// Walks the calling thread's frames, innermost first, into `frames`. Returns their number; `*truncated` is true if
/// there were more. Reads at most `capacity` frames, including skipped ones (see docs/python-stacks.md). 0 for threads
/// without a Python state, and while the interpreter finalizes for all but the thread that holds the GIL. 0 before
/// python_detect() has returned supported.
std::size_t python_walk(PythonFrame* frames, std::size_t capacity, bool* truncated) noexcept;

/// A key that distinguishes the stacks of one generation.
struct PythonStackKey {
  std::uint64_t hash;   ///< of code, instruction and module of each frame, including entry frames and incomplete ones
  std::uint32_t count;  ///< of these frames; 0 if python_walk finds none
  bool truncated;
  std::uintptr_t module_call;  ///< python_module_call() at that time
};

/// The key of the stack that python_walk would find with this capacity: equal keys, equal stacks (except for a 64-bit
/// hash collision). Reads only the frames themselves, so that it costs about half.
PythonStackKey python_stack_key(std::size_t capacity) noexcept;

/// Describes a code object that python_walk has just returned on this thread. False if it does not look like one.
bool python_describe(std::uintptr_t code, PythonCode* out) noexcept;

/// If `code`, which python_describe has just described as `names`, is the function that calls modules, its frames have
/// their module from now on. Its death must be watched.
void python_find_modules(std::uintptr_t code, const PythonCode& names) noexcept;

/// Address of that function's code object; 0 before it was found. If it changes, so do the keys of stacks with it.
std::uintptr_t python_module_call() noexcept;

/// The outermost module that a thread (a PyThreadState) is calling; 0: none. The caller holds the GIL, so that the
/// frames of all threads are stopped.
std::uintptr_t python_outermost_module(void* thread) noexcept;

/// A function or variable of the interpreter by its name; null if it has none. Takes the dynamic loader's lock.
void* python_symbol(const char* name) noexcept;
/// The line map of the generated file of a code object just described on this thread; only while the thread holds the
/// GIL and nothing else uses Python. False if there is none, or not yet.
bool python_line_map(std::uintptr_t code, LineMap* out) noexcept;
/// Entry `index` of that map. False if it has no stack trace.
bool python_line_map_entry(const LineMap& map, std::size_t index, std::uint32_t* line, PythonText* trace) noexcept;

/// Watches the death of `code`, just returned by python_walk on this thread, because its address was recorded.
/// Lock-free.
void python_watch(std::uintptr_t code) noexcept;

/// Changes when a watched code object has died, because its address may then mean another one (rarely also without a
/// reason). One load. To rely on it: read the generation, then watch and cache under that number; when the number has
/// changed, everything cached under an older one is invalid, and code objects must be watched again.
std::uint64_t python_generation() noexcept;

/// Fills `*out` with the line map of the file of `code`. False if there is none (yet), and on threads without the GIL.
/// The referenced objects stay valid while the calling thread neither runs Python code nor releases the GIL.
bool find_line_map(const Layout& layout, const Interpreter& interpreter, std::uintptr_t code, LineMap* out) noexcept;

/// Entry `index` of a line map. False if it has no stack trace.
bool read_line_map(const Layout& layout, const Interpreter& interpreter, const LineMap& map, std::size_t index,
                   std::uint32_t* line, PythonText* trace) noexcept;

/// See python_describe(). Reads memory directly: `code` must have come from a walk of the calling thread.
bool describe_code(const Layout& layout, std::uintptr_t code_type, std::uintptr_t code, PythonCode* out) noexcept;

/// Whether the object's type has a flag of tp_flags. False for null.
bool has_type_flag(std::uintptr_t object, std::uint64_t flag) noexcept;

/// Characters of a str, in place. False if it is not a str.
bool read_text(const Layout& layout, std::uintptr_t text, PythonText* out) noexcept;

/// Address of the code object that calls modules; 0 before it was seen, and after its death.
inline constinit std::atomic<std::uintptr_t> module_call_code{0};

/// Whether a code object with these names is Module._wrapped_call_impl (torch from 2.1 on) or Module._call_impl
/// (before), and keeps its first local in the frame. _call_impl has it in a cell if the other one exists.
bool is_module_call(const Layout& layout, std::uintptr_t code, const PythonCode& names) noexcept;

}  // namespace tidemark::process
