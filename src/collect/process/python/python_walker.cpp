#include "collect/process/python/python_walker.h"

#include <dlfcn.h>

#include <atomic>
#include <cerrno>
#include <cstddef>
#include <utility>

#include "collect/process/key_table.h"
#include "collect/process/python/code_watch.h"
#include "collect/process/python/interpreter.h"
#include "collect/process/python/layout.h"

namespace tidemark::process {

namespace {

// ---- the walk itself, one instance for each row of the layout table so that every offset is a constant ----

// The state of the calling thread, or 0 if it has none that may be read.
inline std::uintptr_t readable_thread_state(const Interpreter& interpreter) noexcept {
  void* thread = interpreter.this_thread_state();
  // A finalizing interpreter frees the states of all other threads while they still run. Then only the thread that
  // holds the GIL is known to have kept its own.
  if (__builtin_expect(interpreter.is_finalizing() != 0, 0) && interpreter.current_thread_state() != thread) return 0;
  return reinterpret_cast<std::uintptr_t>(thread);
}

// Innermost frame of a thread, or 0. `kRow` is an index into kLayouts here and below.
template <std::size_t kRow>
std::uintptr_t innermost_frame(std::uintptr_t thread) noexcept {
  constexpr const Layout& kLayout = kLayouts[kRow];
  const auto frame = load<std::uintptr_t>(thread + kLayout.thread_frame);
  if constexpr (kLayout.style == FrameStyle::frames_by_cframe) {
    return load<std::uintptr_t>(frame + kLayout.cframe_frame);
  }
  return frame;
}

// The next outer frame after `frame`, or 0.
template <std::size_t kRow>
std::uintptr_t next_frame(std::uintptr_t frame) noexcept {
  return load<std::uintptr_t>(frame + kLayouts[kRow].frame_previous);
}

// Frames have their own stack, outer ones below. In a training step most of it has left the first-level cache: fetching
// this far ahead, two lines for each frame, makes a walk a third faster there and costs nothing if all is cached.
constexpr std::uintptr_t kFetchAhead = 1024;
constexpr std::uintptr_t kCacheLine = 64;

inline void prefetch(std::uintptr_t address) noexcept {
  __builtin_prefetch(reinterpret_cast<const void*>(address));
}

// Called at the innermost frame: fetches frames that are too near for prefetch_outer().
template <std::size_t kRow>
void prefetch_first(std::uintptr_t frame) noexcept {
  if constexpr (kLayouts[kRow].style != FrameStyle::frame_objects) {
    for (std::uintptr_t below = kCacheLine; below <= kFetchAhead; below += kCacheLine) prefetch(frame - below);
  }
}

// Called at each frame.
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

// Reads one frame; false if it is not a Python function's, or is incomplete (as _PyFrame_IsIncomplete).
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

// See python_outermost_module(). A thread that is being created may have no frames yet.
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

// Whether a frame is skipped follows from its code and instruction, so neither the owner nor the code object has to be
// read: each would be another cache line. The first local is in the line after the frame's header.
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

// ---- public functions ----

// searching ⇄ busy → found ⇄ busy → supported or unsupported. A thread that finds another one busy returns `absent`.
enum class Phase : std::uint8_t { searching, busy, found, supported, unsupported };

using Walk = std::size_t (*)(const Interpreter&, PythonFrame*, std::size_t, bool*) noexcept;
using StackKey = PythonStackKey (*)(const Interpreter&, std::size_t) noexcept;
using OutermostModule = std::uintptr_t (*)(std::uintptr_t) noexcept;

std::size_t walk_nothing(const Interpreter&, PythonFrame*, std::size_t, bool* truncated) noexcept {
  *truncated = false;
  return 0;
}

PythonStackKey key_of_nothing(const Interpreter&, std::size_t) noexcept {
  return {};
}

std::uintptr_t no_module(std::uintptr_t) noexcept {
  return 0;
}

// `own_interpreter` and `own_layout` are written while busy and constant from phase `found` on.
constinit Interpreter own_interpreter{};
constinit const Layout* own_layout = nullptr;
constinit std::atomic<Phase> phase{Phase::searching};
constinit std::atomic<Walk> walk{walk_nothing};
constinit std::atomic<StackKey> stack_key{key_of_nothing};
constinit std::atomic<OutermostModule> outermost{no_module};
constinit std::atomic<std::uint32_t> searches{0};

template <std::size_t... kRow>
void use_row(std::size_t index, std::index_sequence<kRow...>) {
  constexpr Walk kWalks[] = {walk_frames<kRow>...};
  constexpr StackKey kStackKeys[] = {key_of_frames<kRow>...};
  constexpr OutermostModule kOutermost[] = {outermost_module<kRow>...};
  outermost.store(kOutermost[index], std::memory_order_release);
  walk.store(kWalks[index], std::memory_order_release);
  stack_key.store(kStackKeys[index], std::memory_order_release);
}

// A search takes the loader's lock and a microsecond. A program without Python calls this at each event: search at
// calls 1, 2, 4, 8, … and then at every 4096th.
bool search_is_due() {
  const std::uint32_t number = searches.fetch_add(1, std::memory_order_relaxed) + 1;
  return (number & (number - 1)) == 0 || number % 4096 == 0;
}

Phase search() {
  if (!find_interpreter(&own_interpreter)) return Phase::searching;
  own_layout = find_layout(own_interpreter.version);
  return own_interpreter.ordinary && own_layout != nullptr ? Phase::found : Phase::unsupported;
}

Phase verify() {
  switch (verify_layout(*own_layout, own_interpreter)) {
    case Verdict::no_frames:
      return Phase::found;
    case Verdict::differs:
      return Phase::unsupported;
    case Verdict::fits:
      break;
  }
  watch_code_deaths(own_interpreter.code_type);
  use_row(static_cast<std::size_t>(own_layout - kLayouts), std::make_index_sequence<kLayoutCount>{});
  return Phase::supported;
}

// Takes the next step unless another thread is taking it; returns the phase reached.
Phase advance(Phase from, Phase (*step)()) {
  if (!phase.compare_exchange_strong(from, Phase::busy)) return from;
  const int saved_errno = errno;
  const Phase reached = step();
  errno = saved_errno;
  phase.store(reached, std::memory_order_release);
  return reached;
}

bool found() {
  const Phase now = phase.load(std::memory_order_acquire);
  return now == Phase::found || now == Phase::supported || now == Phase::unsupported;
}

bool holds_gil(const Interpreter& interpreter) noexcept {
  void* own = interpreter.this_thread_state();
  return own != nullptr && interpreter.current_thread_state() == own && interpreter.is_finalizing() == 0;
}

// PyCodeCache.linemaps; a new reference, or null.
void* line_maps(const ObjectFunctions& python) noexcept {
  void* modules = python.modules();
  void* module = modules == nullptr ? nullptr : python.dict_item_string(modules, "torch._inductor.codecache");
  void* names = module == nullptr ? nullptr : python.module_dict(module);
  void* cache = names == nullptr ? nullptr : python.dict_item_string(names, "PyCodeCache");
  return cache == nullptr ? nullptr : python.attribute(cache, "linemaps");
}

bool read_entry(const ObjectFunctions& python, void* entry, LineMap* out) noexcept {
  if (entry == nullptr || python.list_size(entry) != 2) return false;  // kernels have no lines of their own
  out->lines = python.list_item(entry, 0);
  out->traces = python.list_item(entry, 1);
  const std::ptrdiff_t size = python.tuple_size(out->lines);
  if (size <= 0 || python.tuple_size(out->traces) != size) return false;
  out->size = static_cast<std::size_t>(size);
  return true;
}

std::uint32_t code_point_at(const PythonText& text, std::size_t index) noexcept {
  const auto at = reinterpret_cast<std::uintptr_t>(text.data) + index * text.kind;
  if (text.kind == 1) return load<std::uint8_t>(at);
  return text.kind == 2 ? load<std::uint16_t>(at) : load<std::uint32_t>(at);
}

/// `end` is ASCII.
template <std::size_t kSize>
bool ends_with(const PythonText& text, const char (&end)[kSize]) noexcept {
  constexpr std::size_t kLength = kSize - 1;
  if (text.length < kLength) return false;
  for (std::size_t index = 0; index < kLength; ++index) {
    if (code_point_at(text, text.length - kLength + index) != static_cast<unsigned char>(end[index])) return false;
  }
  return true;
}

bool has_cells(const Layout& layout, std::uintptr_t code) noexcept {
  if (layout.style != FrameStyle::frame_objects) return load<std::uint32_t>(code + layout.code_cells) != 0;
  const auto cells = load<std::uintptr_t>(code + layout.code_cells);
  return cells != 0 && load<std::size_t>(cells + kObjectSize) != 0;
}

}  // namespace

PythonSupport python_detect() noexcept {
  Phase now = phase.load(std::memory_order_acquire);
  if (now == Phase::searching && search_is_due()) now = advance(now, search);
  if (now == Phase::found && own_interpreter.this_thread_state() != nullptr) now = advance(now, verify);
  if (now == Phase::supported) return PythonSupport::supported;
  return now == Phase::unsupported ? PythonSupport::unsupported : PythonSupport::absent;
}

std::uint16_t python_minor_version() noexcept {
  return found() ? own_interpreter.version : 0;
}

const char* python_version_text() noexcept {
  return found() ? own_interpreter.version_text : "";
}

void python_eval_range(std::uintptr_t* low, std::uintptr_t* high) noexcept {
  const bool known = found();
  *low = known ? own_interpreter.eval_low : 0;
  *high = known ? own_interpreter.eval_high : 0;
}

std::size_t python_walk(PythonFrame* frames, std::size_t capacity, bool* truncated) noexcept {
  return walk.load(std::memory_order_relaxed)(own_interpreter, frames, capacity, truncated);
}

PythonStackKey python_stack_key(std::size_t capacity) noexcept {
  return stack_key.load(std::memory_order_relaxed)(own_interpreter, capacity);
}

bool python_describe(std::uintptr_t code, PythonCode* out) noexcept {
  return phase.load(std::memory_order_acquire) == Phase::supported &&
         describe_code(*own_layout, own_interpreter.code_type, code, out);
}

void python_find_modules(std::uintptr_t code, const PythonCode& names) noexcept {
  if (is_module_call(*own_layout, code, names)) module_call_code.store(code, std::memory_order_relaxed);
}

std::uintptr_t python_outermost_module(void* thread) noexcept {
  return outermost.load(std::memory_order_relaxed)(reinterpret_cast<std::uintptr_t>(thread));
}

void* python_symbol(const char* name) noexcept {
  return found() ? dlsym(own_interpreter.scope, name) : nullptr;
}

std::uintptr_t python_module_call() noexcept {
  return module_call_code.load(std::memory_order_relaxed);
}

bool python_line_map(std::uintptr_t code, LineMap* out) noexcept {
  return phase.load(std::memory_order_acquire) == Phase::supported &&
         find_line_map(*own_layout, own_interpreter, code, out);
}

bool python_line_map_entry(const LineMap& map, std::size_t index, std::uint32_t* line, PythonText* trace) noexcept {
  return read_line_map(*own_layout, own_interpreter, map, index, line, trace);
}

void python_watch(std::uintptr_t code) noexcept {
  watch_code(code);
}

std::uint64_t python_generation() noexcept {
  return code_generation();
}

bool find_line_map(const Layout& layout, const Interpreter& interpreter, std::uintptr_t code, LineMap* out) noexcept {
  const ObjectFunctions& python = interpreter.objects;
  if (!python.complete || !holds_gil(interpreter) || python.error() != nullptr) return false;
  bool found = false;
  if (void* maps = line_maps(python); maps != nullptr) {
    void* file = reinterpret_cast<void*>(load<std::uintptr_t>(code + layout.code_file));
    found = read_entry(python, python.dict_item(maps, file), out);
    python.release(maps);  // the class keeps it
  }
  python.clear_error();
  return found;
}

bool read_line_map(const Layout& layout, const Interpreter& interpreter, const LineMap& map, std::size_t index,
                   std::uint32_t* line, PythonText* trace) noexcept {
  const ObjectFunctions& python = interpreter.objects;
  const auto at = static_cast<std::ptrdiff_t>(index);
  void* number = python.tuple_item(map.lines, at);
  if (!has_type_flag(reinterpret_cast<std::uintptr_t>(number), kLongSubclassFlag)) return false;
  *line = static_cast<std::uint32_t>(python.as_long(number));
  return read_text(layout, reinterpret_cast<std::uintptr_t>(python.tuple_item(map.traces, at)), trace);
}

bool has_type_flag(std::uintptr_t object, std::uint64_t flag) noexcept {
  if (object == 0) return false;
  return (load<std::uint64_t>(load<std::uintptr_t>(object + kObjectType) + kTypeFlags) & flag) != 0;
}

// Characters of a str (PEP 393): after its header if compact, else at the address in its last field.
bool read_text(const Layout& layout, std::uintptr_t text, PythonText* out) noexcept {
  if (!has_type_flag(text, kStringSubclassFlag)) return false;
  const auto state = load<std::uint32_t>(text + kStringState);
  const std::uint32_t kind = state >> kStateKindShift & 7U;
  if (kind != 1 && kind != 2 && kind != 4) return false;  // 0: a wchar_t string of 3.9 to 3.11 that is not ready
  std::uintptr_t data = text + ((state & kStateAscii) != 0 ? layout.ascii_string_size : layout.compact_string_size);
  if ((state & kStateCompact) == 0) data = load<std::uintptr_t>(text + layout.compact_string_size);
  if (data == 0) return false;
  *out = {reinterpret_cast<const void*>(data), load<std::size_t>(text + kStringLength),
          static_cast<std::uint8_t>(kind)};
  return true;
}

bool describe_code(const Layout& layout, std::uintptr_t code_type, std::uintptr_t code, PythonCode* out) noexcept {
  if (load<std::uintptr_t>(code + kObjectType) != code_type) return false;
  const auto line_table = load<std::uintptr_t>(code + layout.code_line_table);
  if (!has_type_flag(line_table, kBytesSubclassFlag)) return false;
  out->first_line = load<std::uint32_t>(code + layout.code_first_line);
  out->line_table = reinterpret_cast<const void*>(line_table + kBytesData);
  out->line_table_size = load<std::size_t>(line_table + kObjectSize);
  out->code_offset = layout.code_bytecode;
  return read_text(layout, load<std::uintptr_t>(code + layout.code_file), &out->file) &&
         read_text(layout, load<std::uintptr_t>(code + layout.code_function), &out->function);
}

bool is_module_call(const Layout& layout, std::uintptr_t code, const PythonCode& names) noexcept {
  return ends_with(names.function, "_call_impl") && ends_with(names.file, "torch/nn/modules/module.py") &&
         !has_cells(layout, code);
}

}  // namespace tidemark::process
