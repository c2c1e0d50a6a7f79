#include "collect/recorder/session/session.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <thread>
#include <utility>

namespace tidemark {
namespace {

// A thread marks its lane busy before it takes a time. The mark may linger in a store buffer, far shorter than this.
constexpr std::uint64_t kHoldBackNs = 1'000'000;
// A call of the driver may wait for the GPU. Events of other threads do not wait longer for it.
constexpr std::uint64_t kLongestCallNs = 500'000'000;
// A thread stopped in the middle of an event must not make the recorder hoard the others' events.
constexpr std::size_t kMaxPending = 1 << 20;
constexpr std::uint64_t kPoolBytes = sizeof(ring::Shared::chunks);

// Whether no thread has had the lane yet. One that found the pool empty leaves nothing but a count.
bool untouched(const ring::Lane& lane) {
  return lane.owner.load(std::memory_order_acquire) == 0 && lane.head.load(std::memory_order_acquire) == 0 &&
         lane.dropped.load(std::memory_order_relaxed) == 0;
}

}  // namespace

Session::Session(std::unique_ptr<SharedMemory> memory, const TickClock& clock, std::unique_ptr<RecordingWriter> writer,
                 ProcessInfo process, Limits limits)
    : memory_(std::move(memory)),
      clock_(clock),
      writer_(std::move(writer)),
      process_(std::move(process)),
      limits_(limits),
      samples_(*writer_, clock_, process_.pid.value_or(-1), memory_->get()->control.start_ticks),
      last_flush_ticks_(clock.now()) {
  limit_size();
}

Session::~Session() {
  stop();
}

Error Session::out_of_memory() {
  for (const auto& lane : lanes_) lane->pending.clear();
  stop();
  return {"out of memory"};
}

// A recorder that got no processor for a while finds full rings: these are taken in parts, as an event has several
// times the room that it has there.
Session::Round Session::take_round(std::uint64_t now) {
  const std::uint64_t held_back = now - clock_.ticks_in_ns(kHoldBackNs);
  const std::uint64_t longest_call = now - clock_.ticks_in_ns(kLongestCallNs);
  Round round{.until = held_back};
  std::uint64_t read_until = held_back;
  std::size_t pending = 0;
  ring::Shared* shared = memory_->get();
  for (std::uint32_t index = 0; index < ring::kLaneCount; ++index) {
    if (untouched(shared->lanes[index])) break;  // lanes are claimed from the lowest on
    if (index == lanes_.size()) lanes_.push_back(std::make_unique<LaneState>(shared, index, nn_modules_));
    LaneState& lane = *lanes_[index];
    // Both before looking at what it wrote.
    const bool busy = lane.reader.lane().busy.load(std::memory_order_acquire) != 0;
    const std::uint64_t call_since = lane.reader.lane().call_since.load(std::memory_order_acquire);
    const std::uint64_t bytes = take(lane);
    round.bytes += bytes;
    if (bytes >= kMaxTakenBytes) {
      round.more = true;
      read_until = std::min(read_until, lane.last_ticks);
    }
    if (busy) round.until = std::min(round.until, lane.last_ticks);
    if (call_since != 0) round.until = std::min(round.until, std::max(call_since - 1, longest_call));
    pending += lane.pending.size();
  }
  if (pending > kMaxPending) round.until = held_back;
  round.until = std::min(round.until, read_until);
  return round;
}

Result<std::uint64_t> Session::drain(bool recorder_was_stopped) {
  if (stopped_) return std::uint64_t{0};
  const std::uint64_t now = clock_.now();
  std::uint64_t taken = 0;
  Round round;
  do {
    round = take_round(now);
    taken += round.bytes;
    const std::uint64_t dropped = dropped_by_lanes();
    if (recorder_was_stopped) dropped_while_stopped_ += dropped - std::min(dropped, dropped_before_);
    dropped_before_ = dropped;
    if (auto written = write_until(round.until); !written) return written.error();
    // At most what the pool holds in one go: a fast producer must not keep us here.
  } while (round.more && taken < kPoolBytes && !stopped_);
  if (auto checked = check_size(); !checked) return checked.error();
  told_until_ns_ = clock_.between_ns(memory_->get()->control.start_ticks, round.until);
  if (limits_.window != nullptr && !stopped_) {
    const std::uint64_t now_ns = std::max(last_event_ns_, told_until_ns_);
    if (limits_.window->is_due(now_ns)) {
      if (auto begun = next_segment(now_ns); !begun) return begun.error();
    }
  }
  if (!stopped_ && unflushed_ && clock_.between_ns(last_flush_ticks_, now) > flush_ns_) {
    if (auto flushed = writer_->flush(); !flushed) {
      stop_after_error(false);
      return flushed.error();
    }
    unflushed_ = false;
    last_flush_ticks_ = now;
  }
  return taken;
}

// What is held back by now is not, a little later.
Result<void> Session::cut() {
  std::this_thread::sleep_for(std::chrono::nanoseconds(2 * kHoldBackNs));
  if (auto drained = drain(); !drained) return drained.error();
  return stopped_ ? Result<void>() : next_segment(std::max(last_event_ns_, told_until_ns_));
}

std::uint64_t Session::started_ns() const {
  return clock_.between_ns(0, memory_->get()->control.start_ticks);
}

void Session::add(const Reading& reading) {
  if (stopped_) return;
  samples_.add(reading);
  unflushed_ = true;
}

void Session::add(const Loss& loss) {
  if (!stopped_) writer_->loss(loss);
}

void Session::tell_of_question() {
  for (std::size_t index = 0; index < lanes_.size(); ++index) {
    ring::Lane& lane = memory_->get()->lanes[index];
    if (lane.owner.load(std::memory_order_relaxed) == 0) continue;
    lane.connection.fetch_or(ring::kQuestionWaits, std::memory_order_relaxed);
  }
}

bool Session::is_data_worker() const {
  return std::any_of(lanes_.begin(), lanes_.end(),
                     [](const auto& lane) { return lane->definitions.has_worker_loop(); });
}

std::uint64_t Session::dropped_by_lanes() const {
  std::uint64_t dropped = 0;
  for (const auto& lane : lanes_) dropped += lane->reader.lane().dropped.load(std::memory_order_relaxed);
  return dropped;
}

std::uint64_t Session::dropped_count() const {
  return dropped_by_lanes() + memory_->get()->control.thread_limit_drops.load(std::memory_order_relaxed);
}

void Session::add_losses() {
  const std::uint64_t dropped = dropped_by_lanes();
  std::uint64_t reentrant = 0;
  std::uint64_t truncated = 0;
  for (const auto& lane : lanes_) {
    reentrant += lane->reader.lane().reentrant.load(std::memory_order_relaxed);
    truncated += lane->reader.lane().truncated.load(std::memory_order_relaxed);
  }
  const auto add = [this](QualityId kind, std::uint64_t count, std::optional<std::uint64_t> limit = {}) {
    std::uint64_t& told = told_losses_[static_cast<std::size_t>(kind)];
    if (count > told) writer_->loss({kind, count - told, "", limit});
    told = std::max(told, count);
  };
  add(QualityId::invalid_definitions, invalid_.definitions);
  add(QualityId::invalid_records, invalid_.records);
  add(QualityId::invalid_times, invalid_.times);
  add(QualityId::ring_full, dropped - std::min(dropped, dropped_while_stopped_));
  add(QualityId::recorder_stopped, dropped_while_stopped_);
  add(QualityId::reentrant, reentrant);
  add(QualityId::thread_limit, memory_->get()->control.thread_limit_drops.load(std::memory_order_relaxed),
      ring::kLaneCount);
  add(QualityId::driver_frees, driver_memory_.unmatched());
  add(QualityId::stack_truncated, truncated, ring::kMaxFrames);
}

Result<void> Session::finish(bool exited) {
  if (!stopped_ || size_limit_reached_) {
    if (!exited) memory_->get()->control.stop.store(1, std::memory_order_relaxed);
    if (!size_limit_reached_) {
      // More than one pass only when a lane held more than one pass takes.
      for (std::uint64_t taken = 1; taken > 0 && !stopped_;) {
        auto drained = drain();
        if (!drained) return drained.error();
        taken = exited ? *drained : 0;
      }
      if (auto written = write_until(~std::uint64_t{0}); !written) return written;
    }
    if (limits_.max_file_bytes > 0) {
      if (auto flushed = writer_->flush(); !flushed) return flushed;
      writer_->leave_out_above(limits_.max_file_bytes);
    }
    if (size_limit_reached_) {
      writer_->loss({QualityId::size_limit, 1, "", limits_.max_file_bytes});
    }
    add_losses();
    auto finished = writer_->finish({last_event_ns_, exited && !size_limit_reached_});
    if (!finished) stop_after_error(exited);
    return finished;
  }
  // What a window has so far can be read.
  if (limits_.window != nullptr) static_cast<void>(limits_.window->finish_after_error({last_event_ns_, exited}));
  return {};
}

}  // namespace tidemark
