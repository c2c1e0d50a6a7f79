#include "collect/process/driver/driver_record.h"

#include "collect/process/stack_capture.h"

namespace tidemark::process {
namespace {

void write(ThreadState* thread, ring::RecordKind kind, ring::DriverCall call, int device,
           std::initializer_list<std::uint64_t> numbers, std::uint64_t time, std::uint32_t stack) noexcept {
  const std::size_t words = 2 + numbers.size();
  std::uint64_t* record = thread->writer.reserve(words);
  if (record == nullptr) return event_dropped(thread);
  const ring::RecordHeader header{kind, static_cast<std::int8_t>(call), static_cast<std::int8_t>(device),
                                  static_cast<std::uint8_t>(words), stack};
  std::memcpy(record, &header, sizeof(header));
  record[1] = time;
  std::memcpy(record + 2, numbers.begin(), numbers.size() * sizeof(std::uint64_t));
  thread->writer.commit(words);
}

/// At the ticks `time`; 0 = now.
void write_without_stack(Start start, ring::RecordKind kind, ring::DriverCall call, int device,
                         std::initializer_list<std::uint64_t> numbers, std::uint64_t time) noexcept {
  ThreadState* thread = current_thread(start);
  if (thread == nullptr) return;
  const detail::BusyLane busy(thread->writer.lane());
  if (!busy.entered()) return;
  write(thread, kind, call, device, numbers, time != 0 ? time : ticks(session.clock), ring::kNoStack);
}

}  // namespace

std::uint64_t record_driver_allocation(ring::DriverCall call, int device, std::initializer_list<std::uint64_t> numbers,
                                       const NativeContext& caller) noexcept {
  ThreadState* thread = current_thread(Start::yes);
  if (thread == nullptr) return 0;
  const detail::BusyLane busy(thread->writer.lane());
  if (!busy.entered()) return 0;
  const std::uint64_t time = ticks(session.clock);
  if (thread->stack_bounds.high == 0) thread->stack_bounds = native_stack_bounds();
  write(thread, ring::RecordKind::driver, call, device, numbers, time,
        capture_stack(thread, caller, {session.stacks.python, true}));
  return time;
}

void record_driver_call(ring::DriverCall call, int device, std::initializer_list<std::uint64_t> numbers,
                        std::uint64_t made) noexcept {
  write_without_stack(Start::no, ring::RecordKind::driver, call, device, numbers, made);
}

void record_segment_taken(ring::DriverCall call, int device, std::initializer_list<std::uint64_t> numbers) noexcept {
  write_without_stack(Start::yes, ring::RecordKind::allocator, call, device, numbers, 0);
}

void record_segment_given_back(ring::DriverCall call, std::initializer_list<std::uint64_t> numbers,
                               std::uint64_t made) noexcept {
  write_without_stack(Start::no, ring::RecordKind::allocator, call, -1, numbers, made);
}

void set_driver_call_since(std::uint64_t made) noexcept {
  ThreadState* thread = current_thread(Start::no);
  if (thread != nullptr) thread->writer.lane()->call_since.store(made, std::memory_order_release);
}

void record_driver_loss(const char* code) noexcept {
  ThreadState* thread = current_thread(Start::yes);
  if (thread == nullptr) return;
  const detail::BusyLane busy(thread->writer.lane());
  if (busy.entered()) describe_loss(thread, QualityId::driver_off, code);
}

}  // namespace tidemark::process
