// Events in the order of time into the file, up to its largest size or the first error.
#include <algorithm>
#include <cstdint>

#include "collect/recorder/session/session.h"

namespace tidemark {
namespace {

// For what was lost and how it ended, at the size limit.
constexpr std::uint64_t kRoomForTheEnd = 1024;

}  // namespace

void Session::limit_size() {
  if (limits_.max_file_bytes > 0) writer_->leave_out_above(limits_.max_file_bytes - kRoomForTheEnd);
}

// Merges the lanes' events up to `ticks`, oldest first.
Result<void> Session::write_until(std::uint64_t ticks) {
  while (true) {
    LaneState* oldest = nullptr;
    std::uint64_t until = ticks;  // the oldest lane may go on until the next lane's first event
    for (const auto& lane : lanes_) {
      if (lane->pending.empty()) continue;
      const std::uint64_t first = lane->pending.front().ticks;
      if (oldest == nullptr || first < oldest->pending.front().ticks) {
        if (oldest != nullptr) until = std::min(until, oldest->pending.front().ticks);
        oldest = lane.get();
      } else {
        until = std::min(until, first);
      }
    }
    if (oldest == nullptr || oldest->pending.front().ticks > ticks) return {};
    while (!oldest->pending.empty() && oldest->pending.front().ticks <= until) {
      if (auto written = write(oldest->pending.front()); !written) return written;
      oldest->pending.pop_front();
      if (stopped_) return {};
    }
  }
}

Result<void> Session::check_size() {
  const std::uint64_t most = limits_.max_file_bytes;
  if (most == 0 || writer_->bytes_written() + writer_->bytes_pending() + kRoomForTheEnd < most) return {};
  // What is pending is not compressed yet: there may be room for more.
  if (auto flushed = writer_->flush(); !flushed) {
    stop_after_error(false);
    return flushed;
  }
  if (writer_->left_out() || writer_->bytes_written() + kRoomForTheEnd + most / 16 > most) {
    size_limit_reached_ = true;
    stop();
  }
  return {};
}

Result<void> Session::write(const PendingEvent& pending) {
  written_ticks_ = std::max(written_ticks_, pending.ticks);
  Event event = pending.event;
  event.time_ns = clock_.between_ns(memory_->get()->control.start_ticks, pending.ticks);
  if (pending.node) event.node = autograd_node(*pending.node);
  if (!pending.driver_call) return write(event);
  if (pending.driver_call->call == ring::DriverCall::slow) {
    const std::uint64_t began = std::min(pending.driver_call->numbers[0], pending.ticks);
    writer_->sample(SlowDriverCall{event.time_ns, clock_.between_ns(began, pending.ticks)});
    return {};
  }
  driver_events_.clear();
  driver_memory_.take(*pending.driver_call, event, driver_events_);
  for (const Event& driver_event : driver_events_) {
    if (auto written = write(driver_event); !written || stopped_) return written;
  }
  return {};
}

// Only now: what the thread that made the node said of itself may have come later than the node, from its own lane.
AutogradNodeId Session::autograd_node(const LaneNode& node) {
  const auto thread = autograd_threads_.find(node.thread_number);
  return writer_->autograd_node({node.type, thread != autograd_threads_.end() ? thread->second : ThreadId{}});
}

Result<void> Session::next_segment(std::uint64_t now_ns) {
  WindowWriter& window = *limits_.window;
  add_losses();
  if (window.has_grown()) {
    keep_definitions(window.definitions());
    window.sweep();
  }
  auto begun = window.next_segment(now_ns);
  if (!begun) stop_after_error(false);
  return begun;
}

// Whatever may still be written that was defined before.
void Session::keep_definitions(KeptDefinitions& definitions) const {
  for (const auto& lane : lanes_) {
    lane->definitions.keep(definitions);
    if (lane->node) definitions.keep(lane->node->type);
    for (const PendingEvent& pending : lane->pending) {
      definitions.keep(pending.event.stack);
      definitions.keep(pending.event.thread);
      if (pending.node) definitions.keep(pending.node->type);
    }
  }
  nn_modules_.keep(definitions);
  driver_memory_.keep(definitions);
  for (const auto& [number, thread] : autograd_threads_) definitions.keep(thread);
}

Result<void> Session::write(const Event& event) {
  if (auto checked = check_size(); !checked || stopped_) return checked;
  last_event_ns_ = std::max(last_event_ns_, event.time_ns);
  ++event_count_;
  unflushed_ = true;
  if (auto written = writer_->event(event); !written) {
    stop_after_error(false);
    return written;
  }
  if (event.kind == EventKind::out_of_memory) ++oom_count_;
  if (limits_.window != nullptr && limits_.window->is_due(event.time_ns)) return next_segment(event.time_ns);
  return {};
}

void Session::stop() {
  stopped_ = true;
  memory_->get()->control.stop.store(1, std::memory_order_relaxed);
}

void Session::stop_after_error(bool exited) {
  stop();
  // Where nothing at all can be written, the recording ends without an end.
  static_cast<void>(writer_->finish_after_error({last_event_ns_, exited}));
}

}  // namespace tidemark
