#include "store/tally.h"

#include <algorithm>
#include <utility>

#include "allocator/settings_text.h"
#include "base/arithmetic.h"

namespace tidemark {

Tally::Tally() : device_table_(std::size_t{1} << 16, static_cast<std::uint16_t>(kMaxDevices)) {}

std::size_t Tally::device_index(Device device) {
  const auto key = static_cast<std::size_t>(static_cast<std::uint8_t>(device.type)) << 8 |
                   static_cast<std::size_t>(static_cast<std::uint8_t>(device.index));
  std::uint16_t& entry = device_table_[key];
  if (entry == kMaxDevices && overview_.devices.size() < kMaxDevices) {
    entry = static_cast<std::uint16_t>(overview_.devices.size());
    overview_.devices.emplace_back().device = device;
    running_.emplace_back();
  }
  return entry;
}

std::optional<std::uint8_t> Tally::find_device(Device device) {
  const std::size_t index = device_index(device);
  if (index == kMaxDevices) return std::nullopt;
  return static_cast<std::uint8_t>(index);
}

std::uint32_t Tally::usage_index(StackId stack, std::uint8_t device) {
  const std::size_t key = stack.valid() ? std::size_t{stack.value} + 1 : 0;
  if (key >= usage_of_stack_.size()) usage_of_stack_.resize(std::max(key + 1, usage_of_stack_.size() * 2), kNone);
  std::uint32_t* link = &usage_of_stack_[key];
  while (*link != kNone) {
    Usage& usage = usages_[*link];
    if (usage.device == device) return *link;
    link = &usage.next;
  }
  const auto index = static_cast<std::uint32_t>(usages_.size());
  *link = index;  // before emplace_back, which may move the target of link
  Usage& usage = usages_.emplace_back();
  usage.stack = stack;
  usage.device = device;
  usage.peak = running_[device].peaks;
  if (is_driver_memory(overview_.devices[device].device)) driver_usages_.push_back(index);
  return index;
}

void Tally::save_peak(Usage& usage, std::uint32_t peak) {
  if (usage.peak == peak) return;
  usage.peak = peak;
  usage.peak_bytes = usage.bytes;
  usage.peak_blocks = usage.blocks;
}

bool Tally::take_totals(const Event& event, std::uint8_t device) {
  if (!event.has_totals) return false;
  Running& now = running_[device];
  DeviceSummary& summary = overview_.devices[device];
  const std::uint64_t unrecorded = event.total_allocated - now.recorded;
  bool changed = unrecorded != now.unrecorded;
  if (!now.seen_totals) {
    now.seen_totals = changed = true;
    summary.has_totals = true;
    summary.baseline_bytes = unrecorded;
  }
  now.unrecorded = unrecorded;
  return take_reserved(event.total_reserved, device) || changed;
}

bool Tally::take_reserved(std::uint64_t reserved, std::uint8_t device) {
  DeviceSummary& summary = overview_.devices[device];
  if (!summary.peak_reserved_bytes || reserved > *summary.peak_reserved_bytes) {
    summary.peak_reserved_bytes = reserved;
    summary.peak_reserved_at_ns = now_ns_;
  }
  return std::exchange(running_[device].reserved, reserved) != reserved;
}

void Tally::begin() {
  overview_.event_count = 0;
  for (std::size_t device = 0; device < running_.size(); ++device) {
    DeviceSummary& summary = overview_.devices[device];
    summary.allocation_count = 0;
    summary.total_bytes_allocated = 0;
    summary.baseline_bytes = running_[device].recorded + running_[device].unrecorded;
  }
}

Tally::Effect Tally::add_totals(Device device, std::uint64_t time_ns, const AllocatorTotals& totals) {
  now_ns_ = std::max(now_ns_, time_ns);
  Effect effect;
  effect.time_ns = now_ns_;
  const std::size_t index = device_index(device);
  if (index == kMaxDevices) return effect;
  effect.device = static_cast<std::uint8_t>(index);
  Running& now = running_[index];
  DeviceSummary& summary = overview_.devices[index];
  now.knows_active = true;
  if (!summary.peak_active_bytes || totals.active > *summary.peak_active_bytes) {
    summary.peak_active_bytes = totals.active;
    summary.peak_active_at_ns = now_ns_;
  }
  const std::uint64_t pending = totals.active - (now.recorded + now.unrecorded);
  effect.totals_changed = std::exchange(now.pending, pending) != pending;
  effect.totals_changed |= take_reserved(totals.reserved, effect.device);
  return effect;
}

void Tally::take_peak(std::uint8_t device) {
  Running& now = running_[device];
  DeviceSummary& summary = overview_.devices[device];
  const std::uint64_t allocated = now.recorded + now.unrecorded;
  if (allocated <= summary.peak_allocated_bytes) return;
  summary.peak_allocated_bytes = allocated;
  summary.peak_recorded_bytes = now.recorded;
  summary.peak_count = now.live_count;
  summary.peak_allocated_at_ns = now_ns_;
  summary.peak_change_count = live_changes_;
  ++now.peaks;
}

void Tally::end_pause() {
  if (paused_) overview_.pauses.back().end_ns = now_ns_;
  paused_ = false;
}

HeldMemory Tally::held() const {
  HeldMemory held;
  held.devices.reserve(running_.size());
  for (const Running& now : running_) {
    const auto allocated = static_cast<std::int64_t>(now.recorded + now.unrecorded);
    held.devices.push_back({allocated > 0 ? static_cast<std::uint64_t>(allocated) : 0,
                            now.seen_totals || now.knows_active ? std::optional(now.reserved) : std::nullopt});
  }
  for (const std::uint32_t index : driver_usages_) {
    const Usage& usage = usages_[index];
    if (usage.blocks != 0) held.driver_stacks.push_back({usage.device, usage.stack, usage.bytes, usage.blocks});
  }
  return held;
}

Tally::Effect Tally::add(const Event& event) {
  ++overview_.event_count;
  now_ns_ = std::max(now_ns_, event.time_ns);
  Effect effect;
  effect.time_ns = now_ns_;
  if (event.kind == EventKind::pause || event.kind == EventKind::resume) {
    end_pause();
    if (event.kind == EventKind::pause) {
      paused_ = true;
      overview_.pauses.push_back({now_ns_, now_ns_});
    }
    return effect;
  }
  const std::size_t index = device_index(event.device);
  if (index == kMaxDevices) {
    ++ignored_;
    return effect;
  }
  effect.device = static_cast<std::uint8_t>(index);
  DeviceSummary& summary = overview_.devices[index];
  Running& now = running_[index];
  switch (event.kind) {
    case EventKind::allocate: {
      const std::uint32_t at = usage_index(event.stack, effect.device);
      Usage& usage = usages_[at];
      save_peak(usage, now.peaks);
      usage.bytes += event.size;
      ++usage.blocks;
      if (event.slot.value >= usage_of_slot_.size()) usage_of_slot_.resize(std::size_t{event.slot.value} + 1, kNone);
      usage_of_slot_[event.slot.value] = at;
      ++summary.allocation_count;
      summary.total_bytes_allocated = saturating_add(summary.total_bytes_allocated, event.size);
      now.recorded += event.size;
      ++now.live_count;
      ++live_changes_;
      effect.kind = Effect::Kind::birth;
      break;
    }
    case EventKind::free: {
      ++summary.free_count;
      if (!event.slot.valid() || event.slot.value >= usage_of_slot_.size() ||
          usage_of_slot_[event.slot.value] == kNone) {
        ++summary.unmatched_free_count;
        break;
      }
      Usage& usage = usages_[std::exchange(usage_of_slot_[event.slot.value], kNone)];
      save_peak(usage, now.peaks);
      usage.bytes -= event.size;
      --usage.blocks;
      now.recorded -= event.size;
      --now.live_count;
      ++live_changes_;
      effect.kind = Effect::Kind::death;
      break;
    }
    case EventKind::release:
      break;
    default: {
      ++summary.out_of_memory_count;
      OutOfMemory& oom = overview_.out_of_memory.emplace_back();
      oom.time_ns = now_ns_;
      oom.change_count = live_changes_;
      oom.requested = event.size;
      if (event.has_totals) {
        oom.allocated = event.total_allocated;
        oom.reserved = event.total_reserved;
      }
      oom.stack = event.stack;
      oom.thread = event.thread;
      oom.node = event.node;
      oom.node_sequence = event.node_sequence;
      oom.sequence = event.sequence;
      oom.device = effect.device;
      break;
    }
  }
  effect.totals_changed = take_totals(event, effect.device);
  take_peak(effect.device);
  return effect;
}

Tally::Effect Tally::add_out_of_memory(const Event& event, const OutOfMemoryDetails& details) {
  const std::size_t before = overview_.out_of_memory.size();
  const Effect effect = add(event);
  if (overview_.out_of_memory.size() != before)
    static_cast<OutOfMemoryDetails&>(overview_.out_of_memory.back()) = details;
  return effect;
}

Overview Tally::finish(std::string path, Definitions definitions) && {
  overview_.path = std::move(path);
  overview_.definitions = std::move(definitions);
  if (const auto& settings = overview_.definitions.process.allocator_settings) {
    overview_.source.allocator_settings = known_settings(*settings);
  }
  overview_.last_event_ns = last_event_ns();
  if (overview_.definitions.end) now_ns_ = std::max(now_ns_, overview_.definitions.end->time_ns);
  std::vector<Mark>& marks = overview_.definitions.marks;
  std::stable_sort(marks.begin(), marks.end(),
                   [](const Mark& left, const Mark& right) { return left.time_ns < right.time_ns; });
  if (!marks.empty()) now_ns_ = std::max(now_ns_, marks.back().time_ns);
  overview_.end_ns = now_ns_;
  end_pause();
  for (std::size_t device = 0; device < running_.size(); ++device) {
    const Running& now = running_[device];
    DeviceSummary& summary = overview_.devices[device];
    summary.live_recorded_bytes = now.recorded;
    summary.live_allocated_bytes = now.recorded + now.unrecorded;
    summary.live_count = now.live_count;
    if (now.seen_totals || now.knows_active) summary.end_reserved_bytes = now.reserved;
    if (now.knows_active) summary.end_active_bytes = summary.live_allocated_bytes + now.pending;
  }
  for (Usage& usage : usages_) {
    save_peak(usage, running_[usage.device].peaks);
    if (usage.peak_blocks == 0) continue;
    overview_.stacks_at_peak.push_back({usage.device, usage.stack, usage.peak_bytes, usage.peak_blocks});
  }
  if (ignored_ != 0) {
    overview_.definitions.losses.push_back({Loss::Kind::too_many_devices, ignored_, "", kMaxDevices});
  }
  return std::move(overview_);
}

}  // namespace tidemark
