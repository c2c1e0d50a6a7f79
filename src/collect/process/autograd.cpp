#include "collect/process/autograd.h"

#include <string.h>

#include <atomic>

#include "collect/process/autograd_node.h"
#include "collect/process/elf_dynamic.h"
#include "collect/process/lane_writer.h"
#include "collect/process/session.h"

namespace tidemark::process {

thread_local constinit const Evaluation* evaluation = nullptr;

namespace {

/// A function of libtorch_cpu that returns a number of the calling thread.
class Number {
 public:
  constexpr explicit Number(const char* symbol) noexcept : symbol_(symbol) {}

  void find() noexcept {
    if (function_.load(std::memory_order_relaxed) != nullptr) return;
    function_.store(find_next_definition(symbol_, nullptr, nullptr), std::memory_order_relaxed);
  }

  /// 0 if the function was not found.
  [[nodiscard]] std::uint64_t get() const noexcept {
    void* const function = function_.load(std::memory_order_relaxed);
    return function != nullptr ? reinterpret_cast<std::uint64_t (*)()>(function)() : 0;
  }

 private:
  const char* symbol_;
  std::atomic<void*> function_{nullptr};
};

// ATen/SequenceNumber.h: the number of the thread's next node. ATen/record_function.h: the thread's own number, which
// is assigned at the first call. Every node calls it.
constinit Number next_sequence{"_ZN2at15sequence_number4peekEv"};
constinit Number thread_number{"_ZN2at14RecordFunction15currentThreadIdEv"};

__attribute__((noinline)) void tell_thread(ThreadState* thread) noexcept {
  DefinitionWriter definition(&thread->writer, ring::DefinitionKind::autograd_thread);
  definition.u64(thread_number.get());
  thread->autograd.thread_told = definition.finish();
}

/// The code of a node's definition, which this sends. 0 if the pool has no room.
__attribute__((noinline)) std::uint32_t define_node(ThreadState* thread, const void* node) noexcept {
  AutogradLane& lane = thread->autograd;
  const NodeClass type = node_class(node);
  NodeFields fields;
  if (!read_node(node, &fields)) return 0;  // again: its class may be known by now
  DefinitionWriter definition(&thread->writer, ring::DefinitionKind::autograd_node);
  definition.u32(lane.next_node);
  definition.u64(fields.thread);
  definition.u32(type.python ? 1 : 0);
  definition.text(type.name, ::strnlen(type.name, ring::kNodeNameBytes));
  if (!definition.finish()) return 0;
  const std::uint32_t code = ++lane.next_node;
  if (!lane.nodes.has_room()) lane.nodes.clear(false);
  lane.nodes.insert(mix(fields.class_key, fields.thread) | 1, code);
  return code;
}

void add_node(ThreadState* thread, const void* node, AutogradPosition* position) noexcept {
  NodeFields fields;
  if (!read_node(node, &fields)) return;
  const std::uint32_t known = thread->autograd.nodes.find(mix(fields.class_key, fields.thread) | 1);
  position->node_code = known != thread->autograd.nodes.kMissing ? known : define_node(thread, node);
  if (position->node_code != 0) position->node_sequence = fields.sequence;
}

}  // namespace

void find_autograd_functions() noexcept {
  if (!session.attribute) return;
  next_sequence.find();
  thread_number.find();
}

AutogradPosition autograd_position(ThreadState* thread) noexcept {
  AutogradPosition position;
  position.sequence = next_sequence.get();
  if (position.sequence != 0 && !thread->autograd.thread_told) [[unlikely]]
    tell_thread(thread);
  if (evaluation != nullptr) add_node(thread, evaluation->node, &position);
  return position;
}

}  // namespace tidemark::process
