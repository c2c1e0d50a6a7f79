// device_traces: the trace entries of each device.
#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <utility>

#include "import/pytorch_snapshot/model/snapshot_builder.h"

namespace tidemark::pytorch {
namespace {

bool is_before(const EntryText& a, const EntryText& b) {
  return a.entry < b.entry;
}

/// They are in order already, except for entries with items that were set in several batches.
void sort(std::vector<EntryText>& texts) {
  if (!std::is_sorted(texts.begin(), texts.end(), is_before)) std::stable_sort(texts.begin(), texts.end(), is_before);
}

/// Entries without a time get the time of the entry before; entries before all others get the first time.
void finish_times(DeviceTrace& trace) {
  const auto has_time = [](const TraceEntry& entry) { return entry.has_time; };
  const auto first = std::find_if(trace.entries.begin(), trace.entries.end(), has_time);
  std::int64_t time_us = first != trace.entries.end() ? first->time_us : 0;
  for (TraceEntry& entry : trace.entries) {
    trace.unknown_times += entry.has_time ? 0 : 1;
    time_us = entry.time_us = entry.has_time ? entry.time_us : time_us;
  }
}

/// Entries without an address or size contain nothing about memory.
void leave_out_unreadable(DeviceTrace& trace) {
  for (TraceEntry& entry : trace.entries) {
    if (entry.has_address && entry.has_size) continue;
    if (entry.action == Action::user_defined || entry.action == Action::unknown) continue;
    if (entry.action == Action::out_of_memory && entry.has_size) continue;
    entry.action = Action::unknown;
    ++trace.unreadable_entries;
  }
}

}  // namespace

bool SnapshotBuilder::fill_entry(std::uint32_t id, std::span<const PickleValue> items) {
  TraceEntry& entry = entries_[id];
  for (std::size_t n = 0; n < items.size(); n += 2) {
    const PickleValue value = items[n + 1];
    bool valid = true;
    switch (known(items[n])) {
      case Known::action:
        valid = use_action(entry, value);
        break;
      case Known::addr:
        valid = entry.has_address = tables.numbers.get_address(value, entry.address);
        break;
      case Known::device_free:  // not a number in an exported recording, which lacks it
        entry.has_address = tables.numbers.get_address(value, entry.address);
        valid = entry.has_address || tables.numbers.is_nan(value);
        break;
      case Known::size:
        valid = entry.has_size = tables.numbers.get(value, entry.size);
        break;
      case Known::stream:
        if (!use_stream(entry.stream, value, valid)) return false;
        break;
      case Known::time_us:
        valid = entry.has_time = tables.numbers.get(value, entry.time_us);
        break;
      case Known::pool_id:
        if (!use_pool(entry.pool, value, valid)) return false;
        snapshot_.entries_name_pools = true;
        break;
      case Known::frames:
        valid = use_frames(entry.stack, value);
        break;
      case Known::compile_context:
        if (known(value) == Known::not_available || known(value) == Known::empty) break;
        valid = value.tag() == Tag::text;
        if (valid) compile_context_.push_back({id, StringId{value.id()}});
        break;
      case Known::user_metadata:
        if (known(value) == Known::empty) break;
        valid = value.tag() == Tag::text;
        if (valid) user_metadata_.push_back({id, StringId{value.id()}});
        break;
      case Known::internal_metadata:  // why the allocator did it; changes nothing
        valid = value.tag() == Tag::text;
        break;
      default:
        unknown_.key(Scope::trace, items[n]);
    }
    if (!valid) invalid_.add(Scope::trace, known(items[n]), id);
  }
  return true;
}

/// False: not even a text.
bool SnapshotBuilder::use_action(TraceEntry& entry, PickleValue value) {
  const auto first = static_cast<std::uint32_t>(Known::alloc);
  const auto last = static_cast<std::uint32_t>(Known::annotate);
  entry.action = Action::unknown;
  if (value.tag() != Tag::text) return false;
  if (value.id() >= first && value.id() <= last) {
    entry.action = static_cast<Action>(value.id() - first);
  } else {
    unknown_.action(value);
  }
  return true;
}

/// One list for each device.
void SnapshotBuilder::finish_traces(PickleValue list) {
  struct Found {
    std::size_t device = 0;
    const Container* list = nullptr;
    bool is_column = false;
  };
  const Container* devices = use_once(list, false);
  if (devices == nullptr || devices->count != 0) return invalid_.add(Scope::snapshot, Known::device_traces, "");
  std::vector<Found> found;
  for (std::size_t device = 0; device < devices->items.size(); ++device) {
    const PickleValue value = devices->items[device];
    if (value.tag() == Tag::empty_list) continue;
    const Container* trace = use_once(value, false);
    if (!failure_.empty()) return;
    if (trace == nullptr || (trace->count > 0 && trace->run_of != Tag::entry)) {
      invalid_.add(Scope::snapshot, Known::device_traces, fmt::format("[{}]", device));
      continue;
    }
    for (std::size_t n = 0; n < trace->items.size(); ++n) {
      if (trace->items[n].tag() == Tag::entry) continue;
      invalid_.add(Scope::snapshot, Known::device_traces, fmt::format("[{}][{}]", device, n));
    }
    found.push_back({device, trace, trace->count > 0 && entries_.is_column(trace->first, trace->count)});
  }
  sort(user_metadata_);
  sort(compile_context_);
  // Columns last: they are empty once they are moved out.
  std::stable_partition(found.begin(), found.end(), [](const Found& each) { return !each.is_column; });
  for (const Found& each : found) {
    DeviceTrace trace;
    trace.device = static_cast<std::int32_t>(each.device);
    finish_trace(trace, *each.list, each.is_column);
    if (!failure_.empty()) return;
    if (!trace.entries.empty()) snapshot_.traces.push_back(std::move(trace));
  }
  std::sort(snapshot_.traces.begin(), snapshot_.traces.end(),
            [](const DeviceTrace& a, const DeviceTrace& b) { return a.device < b.device; });
}

void SnapshotBuilder::finish_trace(DeviceTrace& trace, const Container& list, bool is_column) {
  if (is_column) {
    trace.entries = entries_.take_column(list.first);
    if (trace.entries.empty()) fail("two devices have the same trace");
  } else {
    trace.entries.reserve(list.count + list.items.size());
    for (std::uint32_t n = 0; n < list.count; ++n) trace.entries.push_back(entries_[list.first + n]);
    for (const PickleValue value : list.items) {
      if (value.tag() == Tag::entry) trace.entries.push_back(entries_[value.id()]);
    }
  }
  finish_times(trace);
  leave_out_unreadable(trace);
  finish_texts(user_metadata_, list, trace.user_metadata);
  finish_texts(compile_context_, list, trace.compile_context);
  invalid_.place(Scope::trace, [&](std::uint32_t id) -> std::string {
    const auto index = index_in(list, Tag::entry, id);
    return index ? fmt::format("device_traces[{}][{}]", trace.device, *index) : "";
  });
}

/// The texts of a list's entries, by their indexes in it.
void SnapshotBuilder::finish_texts(const std::vector<EntryText>& of_all, const Container& list,
                                   std::vector<EntryText>& of_trace) {
  const auto take = [&](std::uint32_t first, std::uint32_t count, std::uint32_t index) {
    auto text = std::lower_bound(of_all.begin(), of_all.end(), EntryText{first, {}}, is_before);
    for (; text != of_all.end() && text->entry - first < count; ++text) {
      of_trace.push_back({text->entry - first + index, stacks_.string(text->text.value)});
    }
  };
  if (list.count > 0) take(list.first, list.count, 0);
  std::uint32_t index = 0;
  for (const PickleValue value : list.items) {
    if (value.tag() == Tag::entry) take(value.id(), 1, index++);
  }
}

}  // namespace tidemark::pytorch
