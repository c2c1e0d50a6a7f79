#include "collect/process/stack_capture.h"

#include <errno.h>

#include "collect/process/definition_writer.h"
#include "collect/process/describe.h"
#include "collect/process/script/model_script.h"

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
    return support == PythonSupport::supported;  // another thread was first and has told the recorder
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

// Whether a table of the thread's may grow by `bytes`.
bool grows(std::size_t bytes) noexcept {
  return bytes > 0 &&
         session.growth_left.fetch_sub(static_cast<std::int64_t>(bytes)) >= static_cast<std::int64_t>(bytes);
}

// Forgets the lane's definitions here and in the recorder, because a table is full or a code object died. False when
// the pool has no room to tell the recorder: nothing is forgotten then.
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

// Which of the Python frames call a module.
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
  // The first time that a module is called the key was made without it, and the next stack has another one.
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
  if (count.native > 0) walk(thread, caller, count.python > 0, nullptr);  // a remembered walk is without its frames
  if (count.python > 0) count.python = python_walk(thread->python_frames, ring::kMaxFrames, &truncated);
  const std::uint32_t number = count.python + count.native > 0 ? define_stack(thread, key, count) : ring::kNoStack;
  errno = saved;
  return number;
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
        if (!reset_lane(thread)) return ring::kNoStack;  // what is known may be wrong by now
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

}  // namespace tidemark::process
