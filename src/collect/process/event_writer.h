// Shared by the hooks of allocators: forwards calls to the original definitions, and writes events into the calling
// thread's lane. This is the hot path: no lock, no external call except the stack walk.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "collect/process/autograd.h"
#include "collect/process/elf_dynamic.h"
#include "collect/process/script/objects_script.h"
#include "collect/process/session.h"
#include "collect/process/stack_capture.h"

namespace tidemark::process {

/// Forwards calls of one symbol of the framework and records the library that defines it. Constant-initialized, safe
/// from any thread.
template <typename Function>
class Forward {
 public:
  constexpr explicit Forward(const char* symbol) noexcept : symbol_(symbol) {}

  /// The next definition, or null.
  Function* get(const void* caller, const void* self) noexcept {
    void* found = next_.load(std::memory_order_acquire);
    if (found == nullptr) [[unlikely]] {
      found = find_next_definition(symbol_, caller, self);
      if (found != nullptr) {
        set_reporting_library(found);
        find_autograd_functions();
      }
      next_.store(found != nullptr ? found : this, std::memory_order_release);
    }
    return found != this ? reinterpret_cast<Function*>(found) : nullptr;
  }

  /// patch_import_slots() for this symbol: the original is known from then on.
  std::size_t patch(Function* hook) noexcept {
    void* original = nullptr;
    const std::size_t slots = patch_import_slots(symbol_, reinterpret_cast<void*>(hook), &original);
    if (original != nullptr) {
      set_reporting_library(original);
      find_autograd_functions();
      next_.store(original, std::memory_order_release);
    }
    return slots;
  }

 private:
  const char* symbol_;
  std::atomic<void*> next_{nullptr};  ///< null = not looked up yet; this object = there is none
};

/// c10::Device as passed by value: two signed bytes.
struct DeviceArgument {
  std::int8_t type;
  std::int8_t index;
};

/// The allocator's own counters after an event, in bytes.
struct Totals {
  std::uint64_t allocated;
  std::uint64_t reserved;
};

namespace detail {

/// Marks the lane busy while an event is being written, so that the recorder does not consider later events of other
/// threads complete, and a signal handler that interrupts this thread does not write into the middle of a record. Not
/// entered if the recording has ended meanwhile: see end_session().
class BusyLane {
 public:
  explicit BusyLane(ring::Lane* lane) noexcept
      : lane_(lane), entered_(lane->busy.load(std::memory_order_relaxed) == 0) {
    if (entered_) [[likely]] {
      lane_->busy.store(1, std::memory_order_relaxed);
      std::atomic_signal_fence(std::memory_order_seq_cst);
      const auto epoch = static_cast<std::uint32_t>(thread_link.epoch);
      if (lane_->connection.load(std::memory_order_relaxed) != epoch && !take_question(lane_, epoch)) [[unlikely]] {
        lane_->busy.store(0, std::memory_order_release);
        entered_ = false;
      }
    } else {
      lane_->reentrant.store(lane_->reentrant.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
    }
  }
  ~BusyLane() {
    if (entered_) [[likely]]
      lane_->busy.store(0, std::memory_order_release);
  }
  BusyLane(const BusyLane&) = delete;
  BusyLane& operator=(const BusyLane&) = delete;

  [[nodiscard]] bool entered() const noexcept { return entered_; }

 private:
  ring::Lane* lane_;
  bool entered_;
};

inline void put_header(std::uint64_t* record, ring::RecordKind kind, DeviceArgument device, std::size_t words,
                       std::uint32_t stack) noexcept {
  const ring::RecordHeader header{kind, device.type, device.index, static_cast<std::uint8_t>(words), stack};
  std::memcpy(record, &header, sizeof(header));
}

inline void put_totals(std::uint64_t* at, const Totals& totals) noexcept {
  at[0] = totals.allocated;
  at[1] = totals.reserved;
}

}  // namespace detail

/// An allocation, or (kind out_of_memory, address 0) a failed one. `totals` may be null.
inline void record_allocation(ring::RecordKind kind, DeviceArgument device, std::uint64_t address, std::uint64_t size,
                              const Totals* totals, const NativeContext& caller) noexcept {
  ThreadState* thread = current_thread(Start::yes);
  if (thread == nullptr) return;
  const detail::BusyLane busy(thread->writer.lane());
  if (!busy.entered()) return;
  const std::uint64_t time = ticks(session.clock);
  const std::uint32_t stack =
      session.stacks.python || session.stacks.native ? capture_stack(thread, caller, session.stacks) : ring::kNoStack;
  const AutogradPosition position = session.attribute ? autograd_position(thread) : AutogradPosition{};
  const std::size_t before = autograd_record_words(thread->autograd, position);
  const std::size_t words = totals != nullptr ? 6 : 4;
  std::uint64_t* record = thread->writer.reserve(before + words);
  if (record == nullptr) return event_dropped(thread);
  if (before > 0) put_autograd_record(&thread->autograd, position, record);
  record += before;
  detail::put_header(record, kind, device, words, stack);
  record[1] = time;
  record[2] = address;
  record[3] = size;
  if (totals != nullptr) detail::put_totals(record + 4, *totals);
  thread->writer.commit(before + words);
}

/// A free. `totals` may be null.
inline void record_free(DeviceArgument device, std::uint64_t address, const Totals* totals) noexcept {
  ThreadState* thread = current_thread(Start::no);
  if (thread == nullptr) return;
  const detail::BusyLane busy(thread->writer.lane());
  if (!busy.entered()) return;
  const std::uint64_t time = ticks(session.clock);
  const std::size_t words = totals != nullptr ? 5 : 3;
  std::uint64_t* record = thread->writer.reserve(words);
  if (record == nullptr) return event_dropped(thread);
  detail::put_header(record, ring::RecordKind::free, device, words, ring::kNoStack);
  record[1] = time;
  record[2] = address;
  if (totals != nullptr) detail::put_totals(record + 3, *totals);
  thread->writer.commit(words);
}

/// A pause or resume.
inline void record_moment(ring::RecordKind kind) noexcept {
  ThreadState* thread = current_thread(Start::yes);
  if (thread == nullptr) return;
  const detail::BusyLane busy(thread->writer.lane());
  if (!busy.entered()) return;
  std::uint64_t* record = thread->writer.reserve(2);
  if (record == nullptr) return event_dropped(thread);
  detail::put_header(record, kind, {0, 0}, 2, ring::kNoStack);
  record[1] = ticks(session.clock);
  thread->writer.commit(2);
}

}  // namespace tidemark::process
