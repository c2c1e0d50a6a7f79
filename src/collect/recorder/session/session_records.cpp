// What the lanes say: records become events that wait for their turn.
#include <algorithm>
#include <iterator>
#include <utility>

#include "collect/recorder/process_facts.h"
#include "collect/recorder/session/session.h"

namespace tidemark {
namespace {

// Further from now than clocks of different cores are apart: a time that only overwritten memory says.
constexpr std::uint64_t kFutureNs = 1'000'000'000;

}  // namespace

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
      if (lane.definitions.process_facts != nullptr) learn(*std::exchange(lane.definitions.process_facts, nullptr));
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
  std::copy(fields.begin() + 1, fields.end(), told.numbers);
  Event event;
  event.thread = lane.definitions.thread();
  event.stack = lane.definitions.stack(record.header.stack);
  // A call that gave something back has the time when it was made: a signal handler may have recorded something since,
  // and after kLongestCallNs (session.cpp) what came later has been written.
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

void Session::learn(const ProcessFacts& facts) {
  if (facts.rank) process_.rank = facts.rank;
  if (facts.local_rank) process_.local_rank = facts.local_rank;
  if (facts.world_size) process_.world_size = facts.world_size;
  if (!facts.python_version.empty()) process_.python_version = facts.python_version;
  if (!facts.reporting_library.empty()) process_.torch_version = torch_version(facts.reporting_library);
  writer_->process(process_);
}

}  // namespace tidemark
