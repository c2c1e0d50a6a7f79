#include "collect/process/stack_capture.h"

#include <errno.h>

#include "collect/process/definition_writer.h"
#include "collect/process/describe.h"

namespace tidemark::process {
namespace {

struct Frames {
  std::size_t python = 0;
  std::size_t native = 0;
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
  if (support == PythonSupport::supported && session.stacks.native)
    python_eval_range(&eval_range.low, &eval_range.high);
  if (python_support.exchange(support, std::memory_order_release) != PythonSupport::absent) {
    return support == PythonSupport::supported;  // another thread was first and has told the recorder
  }
  describe_process(thread);
  if (support == PythonSupport::unsupported) {
    describe_loss(thread, LossKind::python_unsupported, python_version_text());
  }
  return support == PythonSupport::supported;
}

void count_truncated(ThreadState* thread) noexcept {
  std::atomic<std::uint64_t>& count = thread->writer.lane()->truncated;
  count.store(count.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
}

// Forgets the lane's definitions here and in the recorder, because a table is full or a code object died. False when
// the pool has no room to tell the recorder: nothing is forgotten then.
bool reset_lane(ThreadState* thread) noexcept {
  std::uint64_t* record = thread->writer.reserve(1);
  if (record == nullptr) return false;
  const ring::RecordHeader header{ring::RecordKind::reset, 0, 0, 1, 0};
  std::memcpy(record, &header, sizeof(header));
  thread->writer.commit(1);
  const auto grows = [](std::size_t bytes) {
    return bytes > 0 &&
           session.growth_left.fetch_sub(static_cast<std::int64_t>(bytes)) >= static_cast<std::int64_t>(bytes);
  };
  thread->codes.clear(!thread->codes.has_room() && grows(thread->codes.growth()));
  thread->stacks.clear(!thread->stacks.has_room() && grows(thread->stacks.growth()));
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

std::uint32_t define_stack(ThreadState* thread, std::uint64_t hash, Frames count) noexcept {
  if (!thread->stacks.has_room() && !reset_lane(thread)) return ring::kNoStack;
  if (!describe_frames(thread, count)) {
    if (thread->codes.has_room()) return ring::kNoStack;  // the pool is full: this event will be dropped anyway
    if (!reset_lane(thread) || !describe_frames(thread, count)) return ring::kNoStack;
  }
  const std::uint32_t number = thread->next_stack;
  DefinitionWriter definition(&thread->writer, ring::DefinitionKind::stack);
  definition.u32(number);
  definition.u32(static_cast<std::uint32_t>(count.python));
  definition.u32(static_cast<std::uint32_t>(count.native));
  for (std::size_t index = 0; index < count.python; ++index) {
    definition.u64(thread->python_frames[index].code);
    definition.u32(thread->python_frames[index].instruction);
  }
  definition.bytes(thread->native_frames, count.native * sizeof(std::uintptr_t));
  if (!definition.finish()) return ring::kNoStack;
  thread->stacks.insert(hash, number);
  thread->next_stack = number + 1;
  if (number >= 32 && (number & (number - 1)) == 0) describe_late_rank(thread);
  return number;
}

__attribute__((noinline)) std::uint32_t define_stack_keeping_errno(ThreadState* thread, std::uint64_t hash,
                                                                   Frames count) noexcept {
  const int saved = errno;
  const std::uint32_t number = define_stack(thread, hash, count);
  errno = saved;
  return number;
}

}  // namespace

std::uint32_t capture_stack(ThreadState* thread, const NativeContext& caller) noexcept {
  Frames count;
  std::uint64_t hash = 0;
  const auto add = [&hash](std::uint64_t mixed) { hash = ((hash << 7) | (hash >> 57)) ^ mixed; };
  bool truncated = false;
  if (session.stacks.python) {
    const bool supported =
        python_support.load(std::memory_order_acquire) == PythonSupport::supported || detect_python(thread);
    if (supported) [[likely]] {
      const std::uint64_t generation = python_generation();
      if (generation != thread->python_generation) [[unlikely]] {
        if (!reset_lane(thread)) return ring::kNoStack;  // what is known may be wrong by now
        thread->python_generation = generation;
      }
      count.python = python_walk(thread->python_frames, ring::kMaxFrames, &truncated);
      for (std::size_t index = 0; index < count.python; ++index) {
        add(mix(thread->python_frames[index].code, thread->python_frames[index].instruction));
      }
    }
  }
  if (session.stacks.native) {
    const bool cut = count.python > 0;
    count.native = native_walk(caller, thread->stack_bounds, cut ? eval_range.low : 0, cut ? eval_range.high : 0,
                               thread->native_frames, ring::kMaxFrames, &truncated);
    for (std::size_t index = 0; index < count.native; ++index) add(mix(thread->native_frames[index], index));
  }
  if (truncated) [[unlikely]]
    count_truncated(thread);
  if (count.python + count.native == 0) return ring::kNoStack;
  hash = mix(hash, count.python) | 1;  // never 0, the empty key
  const std::uint32_t known = thread->stacks.find(hash);
  if (known != thread->stacks.kMissing) [[likely]]
    return known;
  return define_stack_keeping_errno(thread, hash, count);
}

}  // namespace tidemark::process
