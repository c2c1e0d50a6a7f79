#include "collect/process/stack_capture.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "base/inductor_file.h"
#include "collect/process/event_writer.h"
#include "collect/process/lane_writer.h"
#include "collect/process/script/model_script.h"
#include "collect/ring/ranks.h"

namespace tidemark::process {

namespace {

struct Frames {
  std::size_t python = 0;
  std::size_t native = 0;
};

struct Key {
  std::uint64_t hash = 0;
  std::uintptr_t module_call = 0;  ///< see PythonStackKey
};

std::atomic<PythonSupport> python_support{PythonSupport::absent};

// Where to stop a native walk that the Python stack continues; {0, 0} walks to the end.
struct {
  std::uintptr_t low;
  std::uintptr_t high;
} eval_range;

bool detect_python(ThreadState* thread) noexcept {
  if (python_support.load(std::memory_order_relaxed) == PythonSupport::unsupported) return false;
  const PythonSupport support = python_detect();
  if (support == PythonSupport::absent) return false;
  if (support == PythonSupport::supported) python_eval_range(&eval_range.low, &eval_range.high);
  if (python_support.exchange(support, std::memory_order_release) != PythonSupport::absent) {
    return support == PythonSupport::supported;  // another thread was first and has informed the recorder
  }
  describe_process(thread);
  if (support == PythonSupport::unsupported) {
    describe_loss(thread, QualityId::python_unsupported, python_version_text());
  }
  return support == PythonSupport::supported;
}

void count_truncated(ThreadState* thread) noexcept {
  std::atomic<std::uint64_t>& count = thread->writer.lane()->truncated;
  count.store(count.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
}

// Whether a table of the thread may grow by `bytes`.
bool grows(std::size_t bytes) noexcept {
  return bytes > 0 &&
         session.growth_left.fetch_sub(static_cast<std::int64_t>(bytes)) >= static_cast<std::int64_t>(bytes);
}

// Forgets the lane's definitions here and in the recorder, because a table is full or a code object died. False if the
// pool has no room for the record: nothing is forgotten then.
bool reset_lane(ThreadState* thread) noexcept {
  std::uint64_t* record = thread->writer.reserve(1);
  if (record == nullptr) return false;
  const ring::RecordHeader header{ring::RecordKind::reset, 0, 0, 1, 0};
  std::memcpy(record, &header, sizeof(header));
  thread->writer.commit(1);
  thread->codes.clear(!thread->codes.has_room() && grows(thread->codes.growth()));
  thread->stacks.clear(!thread->stacks.has_room() && grows(thread->stacks.growth()));
  thread->autograd.forget();
  thread->module_count = 0;
  thread->next_stack = 0;
  return true;
}

bool describe_frames(ThreadState* thread, Frames count) noexcept {
  for (std::size_t index = 0; index < count.python; ++index) {
    if (!describe_code(thread, thread->python_frames[index].code)) return false;
  }
  for (std::size_t index = 0; index < count.native; ++index) {
    if (!describe_module(thread, thread->native_frames[index])) return false;
  }
  return true;
}

// Adds the Python frames that call a module.
void put_modules(DefinitionWriter* definition, const ThreadState* thread, std::size_t frames) noexcept {
  std::uint32_t modules = 0;
  for (std::size_t index = 0; index < frames; ++index) modules += thread->python_frames[index].module != 0 ? 1 : 0;
  definition->u32(modules);
  if (modules == 0) return;
  definition->u64(thread->module_generation);
  for (std::size_t index = 0; index < frames; ++index) {
    const std::uintptr_t module = thread->python_frames[index].module;
    if (module == 0) continue;
    definition->u32(static_cast<std::uint32_t>(index));
    definition->u64(module);
  }
}

void report_modules(const ThreadState* thread, std::size_t frames) noexcept {
  for (std::size_t index = 0; index < frames; ++index) {
    if (thread->python_frames[index].module != 0) module_seen(thread->python_frames[index].module);
  }
}

std::uint32_t define_stack(ThreadState* thread, const Key& key, Frames count) noexcept {
  if (!thread->stacks.has_room() && !reset_lane(thread)) return ring::kNoStack;
  if (!describe_frames(thread, count)) {
    if (thread->codes.has_room()) return ring::kNoStack;  // the pool is full: this event will be dropped anyway
    if (!reset_lane(thread) || !describe_frames(thread, count)) return ring::kNoStack;
  }
  // The key was made before the first module call was known; the next equal stack gets another key.
  const bool is_key = count.python == 0 || python_module_call() == key.module_call;
  if (!is_key) {
    bool truncated = false;
    count.python = python_walk(thread->python_frames, ring::kMaxFrames, &truncated);
  }
  const std::uint32_t number = thread->next_stack;
  DefinitionWriter definition(&thread->writer, ring::DefinitionKind::stack);
  definition.u32(number);
  definition.u32(static_cast<std::uint32_t>(count.python));
  definition.u32(static_cast<std::uint32_t>(count.native));
  put_modules(&definition, thread, count.python);
  for (std::size_t index = 0; index < count.python; ++index) {
    definition.u64(thread->python_frames[index].code);
    definition.u32(thread->python_frames[index].instruction);
  }
  definition.bytes(thread->native_frames, count.native * sizeof(std::uintptr_t));
  if (!definition.finish()) return ring::kNoStack;
  if (is_key) thread->stacks.insert(key.hash, number);
  thread->next_stack = number + 1;
  report_modules(thread, count.python);
  if (number >= 32 && (number & (number - 1)) == 0) describe_late_rank(thread);
  return number;
}

struct NativeStack {
  std::uint64_t hash = 0;
  std::size_t count = 0;
  bool truncated = false;
};

// Fills thread->native_frames.
NativeStack walk(ThreadState* thread, const NativeContext& caller, bool above_python, WalkRecord* record) noexcept {
  NativeStack stack;
  stack.count =
      native_walk(caller, thread->stack_bounds, above_python ? eval_range.low : 0, above_python ? eval_range.high : 0,
                  thread->native_frames, ring::kMaxFrames, &stack.truncated, record);
  for (std::size_t index = 0; index < stack.count; ++index) {
    stack.hash = mix_in_order(stack.hash, mix(thread->native_frames[index], index));
  }
  return stack;
}

__attribute__((noinline)) NativeStack walk_and_remember(ThreadState* thread, const NativeContext& caller,
                                                        bool above_python) noexcept {
  WalkRecord* record = thread->walks.new_record();
  if (record == nullptr) {
    thread->walks.clear(grows(thread->walks.growth()));
    record = thread->walks.new_record();
  }
  const NativeStack stack = walk(thread, caller, above_python, record);
  record->hash = stack.hash;
  thread->walks.keep(record);
  return stack;
}

NativeStack native_stack(ThreadState* thread, const NativeContext& caller, bool above_python) noexcept {
  const WalkRecord* known = thread->walks.find(caller, above_python ? eval_range.low : 0);
  if (known != nullptr) [[likely]]
    return {known->hash, known->frames, known->truncated};
  return walk_and_remember(thread, caller, above_python);
}

__attribute__((noinline)) std::uint32_t define_captured_stack(ThreadState* thread, const NativeContext& caller,
                                                              const Key& key, Frames count) noexcept {
  const int saved = errno;
  bool truncated = false;
  if (count.native > 0) walk(thread, caller, count.python > 0, nullptr);  // a cached walk has no frames
  if (count.python > 0) count.python = python_walk(thread->python_frames, ring::kMaxFrames, &truncated);
  const std::uint32_t number = count.python + count.native > 0 ? define_stack(thread, key, count) : ring::kNoStack;
  errno = saved;
  return number;
}

// Values of ThreadState::codes.
constexpr std::uint32_t kDescribed = 0;
constexpr std::uint32_t kAwaitsLines = 1;  // it is generated, and its source lines could not be read yet

const char* reporting_library = "";
std::atomic<std::int32_t> sent_rank{-1};

constexpr std::size_t kMaxTraceBytes = 4 << 20;  // of a file; the pool holds 16 MiB

std::size_t size_of(const PythonText& text) noexcept {
  return text.length * text.kind;
}

// Stack traces already sent, or only the latest ones: equal layers of a model have equal traces.
class SentTraces {
 public:
  /// The number of a trace; `*is_new`: it has to be sent.
  std::uint32_t number_of(const PythonText& trace, bool* is_new) noexcept {
    Slot& slot = slots_[slot_of(trace)];
    const PythonText& sent = slot.trace;
    *is_new = slot.number == 0 || sent.kind != trace.kind || sent.length != trace.length ||
              std::memcmp(sent.data, trace.data, size_of(trace)) != 0;
    if (*is_new) slot = {trace, ++count_};
    return slot.number;
  }

 private:
  struct Slot {
    PythonText trace;
    std::uint32_t number;
  };
  static constexpr std::size_t kSlots = 64;

  // By its end, which has the innermost line.
  static std::size_t slot_of(const PythonText& trace) noexcept {
    const char* at = static_cast<const char*>(trace.data) + size_of(trace);
    std::size_t left = size_of(trace) / sizeof(std::uint64_t);
    if (left > 16) left = 16;
    std::uint64_t hash = trace.length;
    for (; left > 0; --left) {
      std::uint64_t word = 0;
      std::memcpy(&word, at -= sizeof(word), sizeof(word));
      hash = mix(hash, word);
    }
    return hash % kSlots;
  }

  Slot slots_[kSlots] = {};
  std::uint32_t count_ = 0;
};

void put_lines(DefinitionWriter* definition, const LineMap& map) noexcept {
  SentTraces sent;
  std::size_t trace_bytes = 0;
  for (std::size_t index = 0; index < map.size && trace_bytes < kMaxTraceBytes; ++index) {
    std::uint32_t line = 0;
    PythonText trace = {};
    bool is_new = false;
    const bool has_trace = python_line_map_entry(map, index, &line, &trace) && size_of(trace) <= kMaxTraceBytes;
    const std::uint32_t number = has_trace ? sent.number_of(trace, &is_new) : 0;
    definition->u32(line);
    definition->u32(number);
    if (!is_new) continue;
    definition->text(trace);
    trace_bytes += size_of(trace);
  }
}

// From its name, which is a hash of its content. Never 0.
std::uint64_t key_of(const PythonText& file) noexcept {
  constexpr std::size_t kNameBytes = 55;
  std::uint64_t digits[2];
  std::memcpy(digits, static_cast<const char*>(file.data) + file.length - kNameBytes, sizeof(digits));
  return mix(digits[0], digits[1]) | 1;
}

struct NamedFile {
  NamedFile* next;
  const char* path;  ///< stored after this object
  const char* name;  ///< stored after the path
};

constinit std::atomic<NamedFile*> newest{nullptr};

std::uint32_t code_point(const PythonText& text, std::size_t index) noexcept {
  switch (text.kind) {
    case 1:
      return static_cast<const std::uint8_t*>(text.data)[index];
    case 2:
      return static_cast<const std::uint16_t*>(text.data)[index];
    default:
      return static_cast<const std::uint32_t*>(text.data)[index];
  }
}

// As UTF-8; returns the number of bytes. Python's escapes of invalid bytes (surrogates) become bytes that no path has.
std::size_t encode(std::uint32_t point, unsigned char (&bytes)[4]) noexcept {
  if (point < 0x80) {
    bytes[0] = static_cast<unsigned char>(point);
    return 1;
  }
  const std::size_t count = point < 0x800 ? 2 : point < 0x10000 ? 3 : 4;
  constexpr unsigned char kFirst[] = {0, 0, 0xC0, 0xE0, 0xF0};
  for (std::size_t at = count - 1; at > 0; --at, point >>= 6) {
    bytes[at] = static_cast<unsigned char>(0x80 | (point & 0x3F));
  }
  bytes[0] = static_cast<unsigned char>(kFirst[count] | point);
  return count;
}

bool equal(const PythonText& text, const char* path) noexcept {
  std::size_t at = 0;
  for (std::size_t index = 0; index < text.length; ++index) {
    unsigned char bytes[4] = {};
    const std::size_t count = encode(code_point(text, index), bytes);
    if (::strncmp(path + at, reinterpret_cast<const char*>(bytes), count) != 0) return false;
    at += count;
  }
  return path[at] == '\0';
}

}  // namespace

std::uint32_t capture_stack(ThreadState* thread, const NativeContext& caller, StackMode mode) noexcept {
  Frames count;
  Key key;
  bool truncated = false;
  if (mode.python) {
    const bool supported =
        python_support.load(std::memory_order_acquire) == PythonSupport::supported || detect_python(thread);
    if (supported) [[likely]] {
      const std::uint64_t interpreters = python_generation();
      const std::uint64_t modules = module_generation();
      if (interpreters != thread->python_generation || modules != thread->module_generation) [[unlikely]] {
        if (!reset_lane(thread)) return ring::kNoStack;  // cached data may be wrong by now
        thread->python_generation = interpreters;
        thread->module_generation = modules;
      }
      const PythonStackKey found = python_stack_key(ring::kMaxFrames);
      count.python = found.count;
      key = {found.hash, found.module_call};
      truncated = found.truncated;
    }
  }
  if (mode.native) {
    const NativeStack native = native_stack(thread, caller, count.python > 0);
    count.native = native.count;
    key.hash = mix(key.hash, native.hash);
    truncated |= native.truncated;
  }
  if (truncated) [[unlikely]]
    count_truncated(thread);
  if (count.python + count.native == 0) return ring::kNoStack;
  key.hash = mix(key.hash, count.python) | 1;  // never 0, the empty key
  const std::uint32_t known = thread->stacks.find(key.hash);
  if (known != thread->stacks.kMissing) [[likely]]
    return known;
  return define_captured_stack(thread, caller, key, count);
}

void set_reporting_library(const void* definition) noexcept {
  const int saved = errno;
  Dl_info info = {};
  if (::dladdr(definition, &info) != 0 && info.dli_fname != nullptr && reporting_library != info.dli_fname) {
    reporting_library = info.dli_fname;
    // If other events came before, the recording is already running.
    if (ThreadState* thread = current_thread(Start::no); thread != nullptr) {
      const detail::BusyLane busy(thread->writer.lane());
      if (busy.entered()) describe_process(thread);
    }
  }
  errno = saved;
}

// As PyTorch reads it when it is loaded: versions before 2.9 know the second name only.
static const char* allocator_settings() noexcept {
  for (const char* name : {"PYTORCH_ALLOC_CONF", "PYTORCH_CUDA_ALLOC_CONF"}) {
    if (const char* text = ::getenv(name)) return text;
  }
  return "";
}

void describe_process(ThreadState* thread) noexcept {
  const ring::Ranks ranks = ring::ranks_now();
  sent_rank.store(ranks.rank, std::memory_order_relaxed);
  DefinitionWriter definition(&thread->writer, ring::DefinitionKind::process);
  definition.u32(static_cast<std::uint32_t>(ranks.rank));
  definition.u32(static_cast<std::uint32_t>(ranks.local_rank));
  definition.u32(static_cast<std::uint32_t>(ranks.world_size));
  definition.text(python_version_text());
  definition.text(reporting_library);
  definition.text(allocator_settings());
  if (!definition.finish()) event_dropped(thread);
}

void describe_late_rank(ThreadState* thread) noexcept {
  if (sent_rank.load(std::memory_order_relaxed) < 0 && ring::ranks_now().rank >= 0) describe_process(thread);
}

bool describe_code(ThreadState* thread, std::uintptr_t code) noexcept {
  const std::uint32_t known = thread->codes.find(code);
  if (known == kAwaitsLines && describe_lines(thread, code)) thread->codes.replace(code, kDescribed);
  if (known != thread->codes.kMissing) return true;
  if (!thread->codes.has_room()) return false;
  python_watch(code);
  PythonCode facts = {};
  if (!python_describe(code, &facts)) facts = {{"?", 1, 1}, {"?", 1, 1}, 0, nullptr, 0, 0};
  if (session.attribute && facts.line_table != nullptr) python_find_modules(code, facts);
  DefinitionWriter definition(&thread->writer, ring::DefinitionKind::code);
  definition.u64(code);
  definition.u32(python_minor_version());
  definition.u32(facts.first_line);
  definition.u32(facts.code_offset);
  const char* const file_name = name_of_file(facts.file);
  definition.text(file_name != nullptr ? PythonText{file_name, ::strlen(file_name), 1} : facts.file);
  definition.text(facts.function);
  definition.text(facts.line_table, facts.line_table_size);
  if (!definition.finish()) return false;
  const bool generated = session.attribute && is_generated_file(facts.file);
  const bool awaits_lines = generated && !describe_lines(thread, code);
  thread->codes.insert(code, awaits_lines ? kAwaitsLines : kDescribed);
  return true;
}

bool describe_module(ThreadState* thread, std::uintptr_t return_address) noexcept {
  const std::uintptr_t pc = return_address - 1;  // in the call itself, which may be the last instruction of its module
  for (std::uint32_t index = 0; index < thread->module_count; ++index) {
    if (pc >= thread->modules[index].start && pc < thread->modules[index].end) return true;
  }
  NativeModule facts;
  constexpr std::size_t kMaxModules = sizeof(thread->modules) / sizeof(thread->modules[0]);
  if (thread->module_count == kMaxModules || !native_module_at(pc, &facts))
    return true;  // remains an address without a module
  DefinitionWriter definition(&thread->writer, ring::DefinitionKind::module);
  definition.u64(facts.start);
  definition.u64(facts.end);
  definition.u64(facts.load_address);
  definition.text(facts.path);
  definition.text(facts.build_id, facts.build_id_size);
  if (!definition.finish()) return false;
  thread->modules[thread->module_count++] = {facts.start, facts.end};
  return true;
}

void describe_loss(ThreadState* thread, QualityId kind, const char* detail) noexcept {
  DefinitionWriter definition(&thread->writer, ring::DefinitionKind::loss);
  definition.u32(static_cast<std::uint32_t>(kind));
  definition.text(detail);
  if (!definition.finish()) event_dropped(thread);
}

bool is_generated_file(const PythonText& file) noexcept {
  return file.kind == 1 && is_inductor_file(static_cast<const char*>(file.data), file.length);
}

bool describe_lines(ThreadState* thread, std::uintptr_t code) noexcept {
  PythonCode facts = {};
  LineMap map = {};
  if (!python_describe(code, &facts) || !is_generated_file(facts.file)) return false;
  const std::uint64_t key = key_of(facts.file);
  if (thread->line_maps.find(key) != thread->line_maps.kMissing) return true;
  if (!python_line_map(code, &map)) return false;
  DefinitionWriter definition(&thread->writer, ring::DefinitionKind::lines);
  definition.text(facts.file);
  put_lines(&definition, map);
  if (!definition.finish()) return false;
  if (!thread->line_maps.has_room()) thread->line_maps.clear(false);
  thread->line_maps.insert(key, 0);
  return true;
}

void name_file(const char* path, const char* name) noexcept {
  if (path == nullptr || name == nullptr || *path == '\0') return;
  const std::size_t path_size = ::strlen(path) + 1;
  const std::size_t name_size = ::strlen(name) + 1;
  auto* file = static_cast<NamedFile*>(::malloc(sizeof(NamedFile) + path_size + name_size));
  if (file == nullptr) return;
  auto* const text = reinterpret_cast<char*>(file + 1);
  file->path = static_cast<const char*>(::memcpy(text, path, path_size));
  file->name = static_cast<const char*>(::memcpy(text + path_size, name, name_size));
  file->next = newest.load(std::memory_order_relaxed);
  while (!newest.compare_exchange_weak(file->next, file, std::memory_order_release)) {
  }
}

const char* name_of_file(const PythonText& path) noexcept {
  for (const NamedFile* file = newest.load(std::memory_order_acquire); file != nullptr; file = file->next) {
    if (equal(path, file->path)) return file->name;
  }
  return nullptr;
}

}  // namespace tidemark::process
