#include "collect/recorder/session/session.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <iterator>
#include <memory>
#include <optional>
#include <thread>
#include <utility>

#include "collect/recorder/process_facts.h"

namespace tidemark {

namespace {

// A thread marks its lane busy before it takes a time. The mark may linger in a store buffer, far shorter than this.
constexpr std::uint64_t kHoldBackNs = 1'000'000;
// A call of the driver may wait for the GPU. Events of other threads wait for it at most this long.
constexpr std::uint64_t kLongestCallNs = 500'000'000;
// A thread stopped in the middle of an event must not make the recorder accumulate the others' events.
constexpr std::size_t kMaxPending = 1 << 20;
constexpr std::uint64_t kPoolBytes = sizeof(ring::Shared::chunks);

// Whether no thread has claimed the lane yet. A thread that found the pool empty changes only a count.
bool untouched(const ring::Lane& lane) {
  return lane.owner.load(std::memory_order_acquire) == 0 && lane.head.load(std::memory_order_acquire) == 0 &&
         lane.dropped.load(std::memory_order_relaxed) == 0;
}

// Further ahead than clocks of different cores can differ: such a time comes from overwritten memory.
constexpr std::uint64_t kFutureNs = 1'000'000'000;

// For the losses and the end of the recording, at the size limit.
constexpr std::uint64_t kRoomForTheEnd = 1024;

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

// A recorder that got no processor for a while finds full rings: these are read in parts, as an event takes several
// times its size in the ring.
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
    // Read both before the lane's records.
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
    // At most the pool's size in one call: a fast producer must not keep this loop running.
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

// Events held back by now can be written a little later.
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

void Session::announce_question() {
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
  const ring::Control& control = memory_->get()->control;
  return dropped_by_lanes() + control.thread_limit_drops.load(std::memory_order_relaxed) +
         control.barred_drops.load(std::memory_order_relaxed);
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
  add(QualityId::barred_threads, memory_->get()->control.barred_drops.load(std::memory_order_relaxed));
  add(QualityId::driver_frees, driver_memory_.unmatched());
  add(QualityId::stack_truncated, truncated, ring::kMaxFrames);
}

Result<void> Session::finish(bool exited) {
  if (!stopped_ || size_limit_reached_) {
    if (!exited) memory_->get()->control.stop.store(1, std::memory_order_relaxed);
    if (!size_limit_reached_) {
      // More than one pass only if a lane held more than one pass takes.
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
  // The window's content so far is readable.
  if (limits_.window != nullptr) static_cast<void>(limits_.window->finish_after_error({last_event_ns_, exited}));
  return {};
}

std::uint64_t Session::take(LaneState& lane) {
  RingRecord record;
  std::uint64_t taken = 0;
  while (taken < kMaxTakenBytes && lane.reader.next(record)) {
    taken += record.header.words * sizeof(std::uint64_t);
    take_record(lane, record);
  }
  if (lane.reader.broken() && !lane.reported_broken) {
    lane.reported_broken = true;
    writer_->loss({QualityId::ring_corrupted, 1});
  }
  return taken;
}

void Session::take_record(LaneState& lane, const RingRecord& record) {
  const auto fields = record.fields();
  const ring::RecordHeader& header = record.header;
  const auto device = Device{static_cast<DeviceType>(header.device_type), header.device_index};
  Event event;
  std::size_t fixed = 0;  // fields before the totals
  switch (header.kind) {
    case ring::RecordKind::blob:
      if (!lane.definitions.blob(header, fields, *writer_)) ++invalid_.definitions;
      if (lane.definitions.process_facts != nullptr)
        set_process_facts(*std::exchange(lane.definitions.process_facts, nullptr));
      if (lane.definitions.mark) write_mark(*std::exchange(lane.definitions.mark, std::nullopt), lane);
      if (lane.definitions.model) write_tensors(*std::exchange(lane.definitions.model, std::nullopt), lane);
      if (const auto number = std::exchange(lane.definitions.thread_number, std::nullopt)) {
        autograd_threads_[*number] = lane.definitions.thread();
      }
      return;
    case ring::RecordKind::reset:
      lane.definitions.reset();
      lane.node.reset();
      return;
    case ring::RecordKind::autograd:
      return take_autograd(lane, record);
    case ring::RecordKind::driver:
    case ring::RecordKind::allocator:
      return take_driver_call(lane, record);
    case ring::RecordKind::allocate:
      event.kind = EventKind::allocate;
      fixed = 3;
      break;
    case ring::RecordKind::out_of_memory:
      event.kind = EventKind::out_of_memory;
      fixed = 3;
      break;
    case ring::RecordKind::free:
      event.kind = EventKind::free;
      fixed = 2;
      break;
    case ring::RecordKind::pause:
      event.kind = EventKind::pause;
      fixed = 1;
      break;
    case ring::RecordKind::resume:
      event.kind = EventKind::resume;
      fixed = 1;
      break;
  }
  if (fixed == 0 || fields.size() < fixed) {
    ++invalid_.records;
    return;
  }
  event.device = device;
  event.thread = lane.definitions.thread();
  event.stack = lane.definitions.stack(header.stack);
  if (fixed >= 2) event.address = fields[1];
  if (fixed >= 3) event.size = fields[2];
  if (fields.size() >= fixed + 2) {
    event.has_totals = true;
    event.total_allocated = fields[fixed];
    event.total_reserved = fields[fixed + 1];
  }
  PendingEvent pending{clamp_timestamp(fields[0], lane), event};
  if (fixed >= 3) {
    pending.event.sequence = lane.sequence;
    pending.node = lane.node;
    if (lane.node) pending.event.node_sequence = lane.node_sequence;
  }
  lane.pending.push_back(pending);
}

void Session::take_autograd(LaneState& lane, const RingRecord& record) {
  const auto fields = record.fields();
  const std::uint32_t code = record.header.stack;
  if (fields.size() != (code == 0 ? 1U : 2U)) {
    ++invalid_.records;
    return;
  }
  lane.sequence = fields[0];
  lane.node = code == 0 ? std::nullopt : lane.definitions.autograd_node(code - 1);
  if (code != 0) lane.node_sequence = fields[1];
}

void Session::take_driver_call(LaneState& lane, const RingRecord& record) {
  const auto fields = record.fields();
  const auto call = static_cast<std::uint8_t>(record.header.device_type);
  DriverCallRecord told;
  if (fields.empty() || fields.size() > 1 + std::size(told.numbers) || call == 0 ||
      call > static_cast<std::uint8_t>(ring::DriverCall::slow)) {
    ++invalid_.records;
    return;
  }
  told.call = static_cast<ring::DriverCall>(call);
  told.device = record.header.device_index;
  told.of_allocator = record.header.kind == ring::RecordKind::allocator;
  std::copy(fields.begin() + 1, fields.end(), told.numbers);
  Event event;
  event.thread = lane.definitions.thread();
  event.stack = lane.definitions.stack(record.header.stack);
  // A call that released memory has the time when it was made: a signal handler may have recorded something since, and
  // after kLongestCallNs (session.cpp) later events have been written.
  const std::uint64_t ticks = std::max({fields[0], lane.last_ticks, written_ticks_});
  lane.pending.push_back({clamp_timestamp(ticks, lane), event, told});
}

std::uint64_t Session::clamp_timestamp(std::uint64_t ticks, LaneState& lane) {
  if (ticks > latest_ticks_) latest_ticks_ = clock_.now() + clock_.ticks_in_ns(kFutureNs);
  if (ticks > latest_ticks_) {
    ++invalid_.times;
  } else {
    lane.last_ticks = ticks;
  }
  return lane.last_ticks;
}

void Session::write_mark(const LaneMark& mark, LaneState& lane) {
  const std::uint64_t time_ns =
      clock_.between_ns(memory_->get()->control.start_ticks, clamp_timestamp(mark.ticks, lane));
  last_event_ns_ = std::max(last_event_ns_, time_ns);
  unflushed_ = true;
  writer_->mark({mark.kind, time_ns, mark.name, lane.definitions.thread()});
}

void Session::write_tensors(ModelTensors model, LaneState& lane) {
  const std::uint64_t time_ns =
      clock_.between_ns(memory_->get()->control.start_ticks, clamp_timestamp(model.ticks, lane));
  unflushed_ = true;
  for (ModelTensor& tensor : model.tensors) {
    tensor.time_ns = time_ns;
    writer_->tensor(tensor);
  }
}

void Session::set_process_facts(const ProcessFacts& facts) {
  if (facts.rank) process_.rank = facts.rank;
  if (facts.local_rank) process_.local_rank = facts.local_rank;
  if (facts.world_size) process_.world_size = facts.world_size;
  if (!facts.python_version.empty()) process_.python_version = facts.python_version;
  if (!facts.reporting_library.empty()) process_.torch_version = torch_version(facts.reporting_library);
  process_.allocator_settings = facts.allocator_settings;
  writer_->process(process_);
}

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
  // Pending data is not compressed yet: there may be room for more.
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
  if (pending.driver_call->of_allocator) {
    const std::optional<Event> release = segments_.take(*pending.driver_call, event);
    return release ? write(*release) : Result<void>();
  }
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

// Not earlier: the name of the thread that made the node may arrive later than the node, from its own lane.
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

// Keeps all definitions that later records may refer to.
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
  segments_.see(event);
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
  // If nothing at all can be written, the recording has no end record.
  static_cast<void>(writer_->finish_after_error({last_event_ns_, exited}));
}

}  // namespace tidemark
