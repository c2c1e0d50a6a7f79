#include "collect/process/driver/driver_record.h"

namespace tidemark::process {
namespace {

void write(ThreadState* thread, ring::DriverCall call, int device, std::initializer_list<std::uint64_t> numbers,
           std::uint64_t time, std::uint32_t stack) noexcept {
  const std::size_t words = 2 + numbers.size();
  std::uint64_t* record = thread->writer.reserve(words);
  if (record == nullptr) return event_dropped(thread);
  const ring::RecordHeader header{ring::RecordKind::driver, static_cast<std::int8_t>(call),
                                  static_cast<std::int8_t>(device), static_cast<std::uint8_t>(words), stack};
  std::memcpy(record, &header, sizeof(header));
  record[1] = time;
  std::memcpy(record + 2, numbers.begin(), numbers.size() * sizeof(std::uint64_t));
  thread->writer.commit(words);
}

}  // namespace

void record_driver_allocation(ring::DriverCall call, int device, std::initializer_list<std::uint64_t> numbers,
                              const NativeContext& caller) noexcept {
  ThreadState* thread = current_thread(Start::yes);
  if (thread == nullptr) return;
  const detail::BusyLane busy(thread->writer.lane());
  if (!busy.entered()) return;
  const std::uint64_t time = ticks(session.clock);
  if (thread->stack_bounds.high == 0) thread->stack_bounds = native_stack_bounds();
  write(thread, call, device, numbers, time, capture_stack(thread, caller, {session.stacks.python, true}));
}

void record_driver_call(ring::DriverCall call, int device, std::initializer_list<std::uint64_t> numbers) noexcept {
  ThreadState* thread = current_thread(Start::no);
  if (thread == nullptr) return;
  const detail::BusyLane busy(thread->writer.lane());
  if (!busy.entered()) return;
  write(thread, call, device, numbers, ticks(session.clock), ring::kNoStack);
}

}  // namespace tidemark::process
