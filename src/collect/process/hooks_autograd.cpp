// torch::autograd::Engine::evaluate_function (torch/csrc/autograd/engine.h): every node of a backward pass goes through
// it, on the thread that runs the node, by a call that libtorch_cpu makes through its own import table. The function
// here has its name and passes it on; while the call lasts, `evaluation` names the node.
//
// A call ends by returning or by an exception: of a hook, of a custom function, of a kernel that runs out of memory. It
// passes this frame without a landing pad, which would need the C++ runtime. But the unwinder calls the personality
// routine of each frame that it leaves, and that one is ours.
#include "collect/process/hooks_autograd.h"

#include "collect/process/autograd.h"
#include "collect/process/forward.h"
#include "collect/process/session.h"

#define TIDEMARK_SYMBOL                                                                           \
  "_ZN5torch8autograd6Engine17evaluate_functionERSt10shared_ptrINS0_9GraphTaskEEPNS0_4NodeERNS0_" \
  "11InputBufferERKS2_INS0_10ReadyQueueEE"

namespace tidemark::process {
namespace {

using EvaluateFunction = void(void* engine, void* graph_task, const void* node, void* inputs, void* ready_queue);

constinit Forward<EvaluateFunction> evaluate_function{TIDEMARK_SYMBOL};

// In a function of its own: the routine belongs to all of a function.
__attribute__((noinline)) void evaluate(EvaluateFunction* next, void* engine, void* graph_task, const void* node,
                                        void* inputs, void* ready_queue) {
  __asm__ volatile(".cfi_personality 0x1b, tidemark_leave_evaluation");  // 0x1b: its distance, in 32 bits
  const Evaluation running = {node, evaluation};
  evaluation = &running;
  next(engine, graph_task, node, inputs, ready_queue);
  evaluation = running.enclosing;
}

}  // namespace

/// A personality routine (Itanium C++ ABI: Exception Handling, 1.6.2). Called twice for each frame of evaluate() that
/// an exception, or the end of a thread, passes: while a handler is looked for, and when the frame is left.
extern "C" __attribute__((visibility("hidden"), used)) int tidemark_leave_evaluation(int /*version*/, int actions,
                                                                                     std::uint64_t /*exception_class*/,
                                                                                     void* /*exception*/,
                                                                                     void* /*context*/) {
  constexpr int kCleanupPhase = 2;
  constexpr int kContinueUnwind = 8;
  if ((actions & kCleanupPhase) != 0 && evaluation != nullptr) evaluation = evaluation->enclosing;
  return kContinueUnwind;
}

extern "C" __attribute__((visibility("default"), used)) void tidemark_evaluate_function(
    void* engine, void* graph_task, const void* node, void* inputs, void* ready_queue) __asm__(TIDEMARK_SYMBOL);

extern "C" __attribute__((visibility("default"), used)) void tidemark_evaluate_function(void* engine, void* graph_task,
                                                                                        const void* node, void* inputs,
                                                                                        void* ready_queue) {
  EvaluateFunction* next =
      evaluate_function.get(__builtin_return_address(0), reinterpret_cast<const void*>(&tidemark_evaluate_function));
  if (next == nullptr)
    __builtin_trap();  // whoever called imports it, so it exists; a backward pass cannot go on without
  if (!session.attribute) return next(engine, graph_task, node, inputs, ready_queue);
  evaluate(next, engine, graph_task, node, inputs, ready_queue);
}

std::size_t patch_autograd_hook() noexcept {
  return session.attribute ? evaluate_function.patch(&tidemark_evaluate_function) : 0;
}

}  // namespace tidemark::process
