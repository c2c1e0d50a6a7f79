// PyTorch's allocators, intercepted at calls across a library boundary. Each function here has the name and the
// signature of a c10 function; it records and then calls c10's, so that torch.profiler works as without recording.
//
// clang-format off
//   c10/core/Allocator.h     reportMemoryUsageToProfiler, reportOutOfMemoryToProfiler: every device allocator;
//                            the totals are signed up to torch 1.13 ("lll") and unsigned from 2.0 on ("lmm")
//   c10/core/CPUAllocator.h  ProfiledCPUMemoryReporter::New, Delete, OutOfMemory
// clang-format on
//
// This file is compiled with frame pointers: native_caller_context() reads its frames.
#include "collect/process/hooks_torch.h"

#include <string.h>

#include "collect/process/autograd.h"
#include "collect/process/event_writer.h"
#include "collect/process/lane_writer.h"
#include "collect/process/session.h"

#define TIDEMARK_HOOK extern "C" __attribute__((visibility("default"), used))
#define TIDEMARK_SYMBOL                                                                           \
  "_ZN5torch8autograd6Engine17evaluate_functionERSt10shared_ptrINS0_9GraphTaskEEPNS0_4NodeERNS0_" \
  "11InputBufferERKS2_INS0_10ReadyQueueEE"

/// Another preloaded library, such as the phantom GPU, may define this to receive the new blocks of device allocators.
/// Null if none does.
extern "C" void tidemark_on_block(void* address, std::size_t bytes) __attribute__((weak));

namespace tidemark::process {

namespace {

using ReportUsage = void(void* address, std::int64_t size, std::uint64_t allocated, std::uint64_t reserved,
                         DeviceArgument device);
using ReportOutOfMemory = void(std::int64_t size, std::uint64_t allocated, std::uint64_t reserved,
                               DeviceArgument device);
using CpuNew = void(void* self, void* address, std::size_t size);
using CpuDelete = void(void* self, void* address);
using CpuOutOfMemory = void(void* self, std::size_t size);

constexpr DeviceArgument kCpu = {0, 0};

constinit Forward<ReportUsage> usage_unsigned{"_ZN3c1027reportMemoryUsageToProfilerEPvlmmNS_6DeviceE"};
constinit Forward<ReportUsage> usage_signed{"_ZN3c1027reportMemoryUsageToProfilerEPvlllNS_6DeviceE"};
constinit Forward<ReportOutOfMemory> oom_unsigned{"_ZN3c1027reportOutOfMemoryToProfilerElmmNS_6DeviceE"};
constinit Forward<ReportOutOfMemory> oom_signed{"_ZN3c1027reportOutOfMemoryToProfilerElllNS_6DeviceE"};
constinit Forward<CpuNew> cpu_new{"_ZN3c1025ProfiledCPUMemoryReporter3NewEPvm"};
constinit Forward<CpuDelete> cpu_delete{"_ZN3c1025ProfiledCPUMemoryReporter6DeleteEPv"};
constinit Forward<CpuOutOfMemory> cpu_oom{"_ZN3c1025ProfiledCPUMemoryReporter11OutOfMemoryEm"};

thread_local constinit bool left_out __attribute__((tls_model("initial-exec"))) = false;

inline std::uint64_t number(const void* address) noexcept {
  return reinterpret_cast<std::uintptr_t>(address);
}

// CPU events also reach the device report, but only while torch.profiler is on; they are recorded in the CPU reporter.
inline void record_usage(void* address, std::int64_t size, const Totals& totals, DeviceArgument device,
                         const NativeContext& caller) noexcept {
  if (device.type == kCpu.type) return;
  if (size >= 0) {
    if (tidemark_on_block != nullptr) tidemark_on_block(address, static_cast<std::size_t>(size));
    record_allocation(ring::RecordKind::allocate, device, number(address), static_cast<std::uint64_t>(size), &totals,
                      caller);
  } else {
    record_free(device, number(address), &totals);
  }
}

inline void record_failure(std::int64_t size, const Totals& totals, DeviceArgument device,
                           const NativeContext& caller) noexcept {
  if (device.type == kCpu.type) return;
  record_allocation(ring::RecordKind::out_of_memory, device, 0, static_cast<std::uint64_t>(size), &totals, caller);
}

using EvaluateFunction = void(void* engine, void* graph_task, const void* node, void* inputs, void* ready_queue);

constinit Forward<EvaluateFunction> evaluate_function{TIDEMARK_SYMBOL};

// A separate function: a personality routine applies to a whole function.
__attribute__((noinline)) void evaluate(EvaluateFunction* next, void* engine, void* graph_task, const void* node,
                                        void* inputs, void* ready_queue) {
  __asm__ volatile(".cfi_personality 0x1b, tidemark_leave_evaluation");  // 0x1b: its distance, in 32 bits
  const Evaluation running = {node, evaluation};
  evaluation = &running;
  next(engine, graph_task, node, inputs, ready_queue);
  evaluation = running.enclosing;
}

}  // namespace

// The original is looked up before recording: this also determines the version of PyTorch.
#define TIDEMARK_FORWARD_TO(forward, self) \
  (forward).get(__builtin_return_address(0), reinterpret_cast<const void*>(self))

TIDEMARK_HOOK void tidemark_usage_unsigned(
    void* address, std::int64_t size, std::uint64_t allocated, std::uint64_t reserved,
    DeviceArgument device) __asm__("_ZN3c1027reportMemoryUsageToProfilerEPvlmmNS_6DeviceE");
TIDEMARK_HOOK void tidemark_usage_signed(
    void* address, std::int64_t size, std::uint64_t allocated, std::uint64_t reserved,
    DeviceArgument device) __asm__("_ZN3c1027reportMemoryUsageToProfilerEPvlllNS_6DeviceE");
TIDEMARK_HOOK void tidemark_oom_unsigned(
    std::int64_t size, std::uint64_t allocated, std::uint64_t reserved,
    DeviceArgument device) __asm__("_ZN3c1027reportOutOfMemoryToProfilerElmmNS_6DeviceE");
TIDEMARK_HOOK void tidemark_oom_signed(
    std::int64_t size, std::uint64_t allocated, std::uint64_t reserved,
    DeviceArgument device) __asm__("_ZN3c1027reportOutOfMemoryToProfilerElllNS_6DeviceE");
TIDEMARK_HOOK void tidemark_cpu_new(void* self, void* address,
                                    std::size_t size) __asm__("_ZN3c1025ProfiledCPUMemoryReporter3NewEPvm");
TIDEMARK_HOOK void tidemark_cpu_delete(void* self,
                                       void* address) __asm__("_ZN3c1025ProfiledCPUMemoryReporter6DeleteEPv");
TIDEMARK_HOOK void tidemark_cpu_oom(void* self,
                                    std::size_t size) __asm__("_ZN3c1025ProfiledCPUMemoryReporter11OutOfMemoryEm");

TIDEMARK_HOOK void tidemark_usage_unsigned(void* address, std::int64_t size, std::uint64_t allocated,
                                           std::uint64_t reserved, DeviceArgument device) {
  ReportUsage* next = TIDEMARK_FORWARD_TO(usage_unsigned, &tidemark_usage_unsigned);
  record_usage(address, size, {allocated, reserved}, device, native_caller_context());
  if (next != nullptr) next(address, size, allocated, reserved, device);
}

TIDEMARK_HOOK void tidemark_usage_signed(void* address, std::int64_t size, std::uint64_t allocated,
                                         std::uint64_t reserved, DeviceArgument device) {
  ReportUsage* next = TIDEMARK_FORWARD_TO(usage_signed, &tidemark_usage_signed);
  record_usage(address, size, {allocated, reserved}, device, native_caller_context());
  if (next != nullptr) next(address, size, allocated, reserved, device);
}

TIDEMARK_HOOK void tidemark_oom_unsigned(std::int64_t size, std::uint64_t allocated, std::uint64_t reserved,
                                         DeviceArgument device) {
  ReportOutOfMemory* next = TIDEMARK_FORWARD_TO(oom_unsigned, &tidemark_oom_unsigned);
  record_failure(size, {allocated, reserved}, device, native_caller_context());
  if (next != nullptr) next(size, allocated, reserved, device);
}

TIDEMARK_HOOK void tidemark_oom_signed(std::int64_t size, std::uint64_t allocated, std::uint64_t reserved,
                                       DeviceArgument device) {
  ReportOutOfMemory* next = TIDEMARK_FORWARD_TO(oom_signed, &tidemark_oom_signed);
  record_failure(size, {allocated, reserved}, device, native_caller_context());
  if (next != nullptr) next(size, allocated, reserved, device);
}

TIDEMARK_HOOK void tidemark_cpu_new(void* self, void* address, std::size_t size) {
  CpuNew* next = TIDEMARK_FORWARD_TO(cpu_new, &tidemark_cpu_new);
  if (size > 0 && !left_out) {
    record_allocation(ring::RecordKind::allocate, kCpu, number(address), size, nullptr, native_caller_context());
  }
  if (next != nullptr) next(self, address, size);
}

TIDEMARK_HOOK void tidemark_cpu_delete(void* self, void* address) {
  CpuDelete* next = TIDEMARK_FORWARD_TO(cpu_delete, &tidemark_cpu_delete);
  if (address != nullptr && !left_out) record_free(kCpu, number(address), nullptr);
  if (next != nullptr) next(self, address);
}

TIDEMARK_HOOK void tidemark_cpu_oom(void* self, std::size_t size) {
  CpuOutOfMemory* next = TIDEMARK_FORWARD_TO(cpu_oom, &tidemark_cpu_oom);
  record_allocation(ring::RecordKind::out_of_memory, kCpu, 0, size, nullptr, native_caller_context());
  if (next != nullptr) next(self, size);
}

/// From now on the recording does not contain the calling thread's host memory: the phantom GPU's own arithmetic.
TIDEMARK_HOOK void tidemark_leave_thread_out() {
  left_out = true;
}

std::size_t patch_torch_hooks() noexcept {
  return usage_unsigned.patch(&tidemark_usage_unsigned) + usage_signed.patch(&tidemark_usage_signed) +
         oom_unsigned.patch(&tidemark_oom_unsigned) + oom_signed.patch(&tidemark_oom_signed) +
         cpu_new.patch(&tidemark_cpu_new) + cpu_delete.patch(&tidemark_cpu_delete) + cpu_oom.patch(&tidemark_cpu_oom);
}

/// A personality routine (Itanium C++ ABI: Exception Handling, 1.6.2). Called twice for each frame of evaluate() that
/// an exception, or the end of a thread, passes: in the search for a handler, and when the frame is left.
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
    __builtin_trap();  // the caller imports it, so it exists; a backward pass cannot go on without it
  if (!session.attribute) return next(engine, graph_task, node, inputs, ready_queue);
  evaluate(next, engine, graph_task, node, inputs, ready_queue);
}

std::size_t patch_autograd_hook() noexcept {
  return session.attribute ? evaluate_function.patch(&tidemark_evaluate_function) : 0;
}

void record_mark(ring::MarkKind kind, const char* name) noexcept {
  if (name == nullptr) return;
  ThreadState* thread = current_thread(Start::yes);
  if (thread == nullptr) return;
  const detail::BusyLane busy(thread->writer.lane());
  if (!busy.entered()) return;
  DefinitionWriter definition(&thread->writer, ring::DefinitionKind::mark);
  definition.u32(static_cast<std::uint32_t>(kind));
  definition.u64(ticks(session.clock));
  definition.text(name, ::strnlen(name, ring::kMarkNameBytes));
  if (!definition.finish()) event_dropped(thread);
}

}  // namespace tidemark::process
