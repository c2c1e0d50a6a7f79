#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <protozero/pbf_builder.hpp>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "analyze/common/annotations.h"
#include "analyze/common/recording_info.h"
#include "analyze/common/stack_names.h"
#include "analyze/common/totals.h"
#include "base/crc32c.h"
#include "base/units.h"
#include "export/format.h"
#include "export/perfetto_messages.h"
#include "query/words/attribution.h"
#include "query/words/printable.h"
#include "query/words/recording_text.h"
#include "query/words/stack_text.h"

namespace tidemark {
namespace {

template <typename Message>
using Builder = protozero::pbf_builder<Message>;

constexpr std::size_t kMaxLanes = 32;  // of annotations that overlap; more are left out

// A counter's track, and its last value.
struct Counter {
  std::uint64_t track = 0;
  std::optional<std::uint64_t> shown;
};

struct DeviceCounters {
  bool wanted = false;
  bool has_pending = false;  // otherwise active is allocated at all times, and has no counter
  Counter allocated;
  Counter active;
  Counter reserved;
};

class TraceWriter {
 public:
  TraceWriter(const Store& store, Symbols& symbols, const std::vector<std::size_t>& devices,
              const ExportOptions& options, const ByteOutput& output, const Progress& progress)
      : store_(store),
        symbols_(symbols),
        attribution_(options.attribution),
        filter_(options.filter),
        output_(output),
        progress_(progress),
        start_wall_ns_(store.definitions.process.start_wall_ns),
        file_id_(crc32c_of(store)),
        counters_(store.devices.size()) {
    for (const std::size_t device : devices) counters_[device].wanted = true;
    for (const TotalsChange& change : store.totals_changes) {
      if (change.pending != 0) counters_[change.device].has_pending = true;
    }
  }

  Result<void> write() {
    add_clock();
    add_process();
    for (std::size_t device = 0; device < counters_.size(); ++device) {
      if (counters_[device].wanted) add_counters(device);
    }
    add_marks();
    walk_totals(store_, [&](const DeviceTotals& totals) { add_totals(totals); });
    add_blocks();
    for (std::size_t index = 0; index < store_.out_of_memory.size(); ++index) {
      if (counters_[store_.out_of_memory[index].device].wanted) add_out_of_memory(index);
    }
    if (written_.ok()) written_ = output_(bytes_);
    return written_;
  }

 private:
  // Traces that are put together (`cat a b > c` is a trace) must not share the numbers of their tracks.
  static std::uint32_t crc32c_of(const Store& store) {
    const ProcessInfo& process = store.definitions.process;
    const std::string identity = fmt::format("{} {} {}", store.path, process.hostname, process.pid.value_or(-1));
    return crc32c(std::as_bytes(std::span(identity)));
  }

  std::uint64_t new_track() { return (std::uint64_t{file_id_} << 20) + ++track_count_; }

  // Adds a packet, filled in by `fill`.
  template <typename Fill>
  void packet(const Fill& fill) {
    {
      Builder<perfetto::TracePacket> builder(trace_, perfetto::Trace::packet);
      builder.add_uint32(perfetto::TracePacket::trusted_packet_sequence_id, file_id_ | 1U);  // any but 0
      fill(builder);
    }
    if (bytes_.size() < kOutputPiece) return;
    if (written_.ok()) written_ = output_(bytes_);
    bytes_.clear();
  }

  template <typename Fill>
  std::uint64_t add_track(std::optional<std::uint64_t> parent, const std::string& name, const Fill& fill) {
    const std::uint64_t track = new_track();
    packet([&](auto& builder) {
      Builder<perfetto::TrackDescriptor> descriptor(builder, perfetto::TracePacket::track_descriptor);
      descriptor.add_uint64(perfetto::TrackDescriptor::uuid, track);
      if (parent) descriptor.add_uint64(perfetto::TrackDescriptor::parent_uuid, *parent);
      if (!name.empty()) descriptor.add_string(perfetto::TrackDescriptor::name, name);
      fill(descriptor);
    });
    return track;
  }

  template <typename Fill>
  void add_event(std::uint64_t time_ns, std::uint64_t track, perfetto::EventType type, const Fill& fill) {
    packet([&](auto& builder) {
      builder.add_uint64(perfetto::TracePacket::timestamp, start_wall_ns_.value_or(0) + time_ns);
      Builder<perfetto::TrackEvent> event(builder, perfetto::TracePacket::track_event);
      event.add_enum(perfetto::TrackEvent::type, static_cast<std::int32_t>(type));
      event.add_uint64(perfetto::TrackEvent::track_uuid, track);
      fill(event);
    });
  }

  // Times are of the wall clock if it is known: traces of several ranks are aligned.
  void add_clock() {
    if (!start_wall_ns_) return;
    packet([&](auto& builder) {
      Builder<perfetto::ClockSnapshot> snapshot(builder, perfetto::TracePacket::clock_snapshot);
      for (const perfetto::ClockId clock : {perfetto::ClockId::realtime, perfetto::ClockId::boottime}) {
        Builder<perfetto::Clock> reading(snapshot, perfetto::ClockSnapshot::clocks);
        reading.add_uint32(perfetto::Clock::clock_id, static_cast<std::uint32_t>(clock));
        reading.add_uint64(perfetto::Clock::timestamp, *start_wall_ns_);
      }
    });
  }

  // A process, or a group with the file's name if its pid is unknown.
  void add_process() {
    const ProcessInfo& info = store_.definitions.process;
    const std::string title = recording_title(describe_recording(store_, symbols_));
    process_ = add_track(std::nullopt, !info.pid ? title : "", [&](auto& descriptor) {
      if (!info.pid) return;
      Builder<perfetto::Process> process(descriptor, perfetto::TrackDescriptor::process);
      process.add_int32(perfetto::Process::pid, static_cast<std::int32_t>(*info.pid));
      if (!info.command_line.empty()) process.add_string(perfetto::Process::cmdline, printable(info.command_line));
      process.add_string(perfetto::Process::process_name, title);
    });
  }

  std::uint64_t add_counter_track(std::size_t device, const std::string& what) {
    const std::string name = fmt::format("{} {}", to_string(store_.devices[device].device), what);
    return add_track(process_, name, [](auto& descriptor) {
      Builder<perfetto::Counter> counter(descriptor, perfetto::TrackDescriptor::counter);
      counter.add_enum(perfetto::Counter::unit, static_cast<std::int32_t>(perfetto::CounterUnit::size_bytes));
    });
  }

  void add_counters(std::size_t device) {
    const DeviceSummary& summary = store_.devices[device];
    const auto track = [&](const char* what) { return add_counter_track(device, what); };
    DeviceCounters& counters = counters_[device];
    counters.allocated.track = track("allocated");
    if (counters.has_pending) counters.active.track = track("active");
    if (summary.peak_reserved_bytes) counters.reserved.track = track("reserved");
  }

  // Ranges as slices. On one track slices nest, so ranges that overlap otherwise go to another.
  void add_marks() {
    struct Lane {
      std::uint64_t track = 0;
      std::vector<std::uint64_t> ends;  // of the open slices, the innermost last
    };
    std::vector<Lane> lanes;
    const auto end_until = [&](Lane& lane, std::uint64_t time_ns) {
      for (; !lane.ends.empty() && lane.ends.back() <= time_ns; lane.ends.pop_back()) {
        add_event(lane.ends.back(), lane.track, perfetto::EventType::slice_end, [](auto&) {});
      }
    };
    for (const AnnotatedRange& range : annotated_ranges(store_.definitions)) {
      const std::uint64_t end_ns = range.end_ns.value_or(store_.end_ns);
      for (Lane& lane : lanes) end_until(lane, range.begin_ns);
      auto lane = std::find_if(lanes.begin(), lanes.end(),
                               [&](const Lane& each) { return each.ends.empty() || each.ends.back() >= end_ns; });
      if (lane == lanes.end() && lanes.size() == kMaxLanes) continue;
      if (lane == lanes.end()) lane = lanes.insert(lane, {add_track(process_, "annotations", [](auto&) {}), {}});
      const bool moment = range.begin_ns == range.end_ns;
      const auto type = moment ? perfetto::EventType::instant : perfetto::EventType::slice_begin;
      add_event(range.begin_ns, lane->track, type, [&](auto& event) {
        event.add_string(perfetto::TrackEvent::name, printable(store_.definitions.text(range.name)));
      });
      if (!moment) lane->ends.push_back(end_ns);
    }
    for (Lane& lane : lanes) end_until(lane, store_.end_ns);
  }

  void add_totals(const DeviceTotals& totals) {
    DeviceCounters& counters = counters_[totals.device];
    if (counters.wanted) {
      add_value(counters.allocated, totals.time_ns, totals.allocated_bytes);
      if (counters.has_pending) add_value(counters.active, totals.time_ns, totals.active_bytes);
      add_value(counters.reserved, totals.time_ns, totals.reserved_bytes);
    }
    if (progress_ && totals.change_count % 4096 == 0) progress_(totals.change_count, store_.live_changes.size());
  }

  // A counter for each category of a device and, if only some blocks are selected, one for their total.
  void add_blocks() {
    struct Held {
      Counter counter;
      std::uint64_t bytes = 0;
    };
    std::map<std::pair<std::size_t, std::optional<Category>>, Held> held;  // without a category: of all
    for (const LiveChange& change : store_.live_changes) {
      const std::size_t block = change.block.value;
      const std::size_t device = store_.blocks.device[block];
      if (!counters_[device].wanted || !filter_(block)) continue;
      const auto count = [&](std::optional<Category> category) {
        const auto [entry, is_new] = held.try_emplace({device, category});
        auto& [counter, bytes] = entry->second;
        if (is_new) counter.track = add_counter_track(device, category ? category_text(*category) : "chosen blocks");
        bytes += change.birth ? store_.blocks.size[block] : 0 - store_.blocks.size[block];
        add_value(counter, change.time_ns, bytes);
      };
      if (attribution_ != nullptr) count(attribution_->blocks[block].category);
      if (!filter_.all()) count(std::nullopt);
    }
  }

  void add_value(Counter& counter, std::uint64_t time_ns, std::optional<std::uint64_t> value) {
    if (!value || counter.shown == value) return;
    counter.shown = value;
    add_event(time_ns, counter.track, perfetto::EventType::counter, [&](auto& event) {
      event.add_int64(perfetto::TrackEvent::counter_value, static_cast<std::int64_t>(*value));
    });
  }

  // On the requesting thread, if it is known.
  void add_out_of_memory(std::size_t index) {
    const OutOfMemory& failure = store_.out_of_memory[index];
    const std::uint64_t track = thread_track(failure.thread);
    add_event(failure.time_ns, track, perfetto::EventType::instant, [&](auto& event) {
      const std::string device = to_string(store_.devices[failure.device].device);
      event.add_string(perfetto::TrackEvent::name,
                       fmt::format("out of memory: {} on {}", format_bytes(failure.requested), device));
      annotate(event, "requested_bytes", failure.requested);
      annotate(event, "allocated_bytes", failure.allocated);
      annotate(event, "reserved_bytes", failure.reserved);
      Builder<perfetto::Annotation> stack(event, perfetto::TrackEvent::debug_annotations);
      stack.add_string(perfetto::Annotation::name, "stack");
      stack.add_string(perfetto::Annotation::string_value,
                       stack_text_with_callers(name_stack(symbols_, failure.stack)));
      stack.commit();
      if (attribution_ != nullptr) annotate_owner(event, attribution_->out_of_memory[index]);
    });
  }

  static void annotate(Builder<perfetto::TrackEvent>& event, const char* name, std::optional<std::uint64_t> bytes) {
    if (!bytes) return;
    Builder<perfetto::Annotation> annotation(event, perfetto::TrackEvent::debug_annotations);
    annotation.add_string(perfetto::Annotation::name, name);
    annotation.add_uint64(perfetto::Annotation::uint_value, *bytes);
  }

  void annotate_owner(Builder<perfetto::TrackEvent>& event, const Owner& owner) const {
    const auto add = [&](const char* name, std::string_view value) {
      Builder<perfetto::Annotation> annotation(event, perfetto::TrackEvent::debug_annotations);
      annotation.add_string(perfetto::Annotation::name, name);
      annotation.add_string(perfetto::Annotation::string_value, printable(value));
    };
    add("category", name_in(kCategoryNames, owner.category));
    add("phase", name_in(kPhaseNames, owner.phase));
    if (owner.module.valid()) add("module", attribution_->modules[owner.module.value].path);
  }

  std::uint64_t thread_track(ThreadId id) {
    const std::optional<std::int64_t>& pid = store_.definitions.process.pid;
    if (!pid || !id.valid() || !store_.definitions.threads[id.value].tid) return process_;
    const auto [entry, is_new] = threads_.try_emplace(id, 0);
    if (!is_new) return entry->second;
    const ThreadInfo& info = store_.definitions.threads[id.value];
    entry->second = add_track(process_, "", [&](auto& descriptor) {
      Builder<perfetto::Thread> thread(descriptor, perfetto::TrackDescriptor::thread);
      thread.add_int32(perfetto::Thread::pid, static_cast<std::int32_t>(*pid));
      thread.add_int32(perfetto::Thread::tid, static_cast<std::int32_t>(*info.tid));
      if (!info.name.empty()) thread.add_string(perfetto::Thread::thread_name, printable(info.name));
    });
    return entry->second;
  }

  const Store& store_;
  Symbols& symbols_;
  const Attribution* attribution_;
  const BlockFilter& filter_;
  const ByteOutput& output_;
  const Progress& progress_;
  std::optional<std::uint64_t> start_wall_ns_;
  std::uint32_t file_id_;
  std::vector<DeviceCounters> counters_;
  std::unordered_map<ThreadId, std::uint64_t> threads_;
  std::uint64_t process_ = 0;
  std::uint64_t track_count_ = 0;
  std::string bytes_;
  Builder<perfetto::Trace> trace_{bytes_};
  Result<void> written_;
};

/// Allocated, active and reserved memory of each device over time as counters, and failed requests: a Perfetto trace.
Result<void> write_perfetto(const Store& store, Symbols& symbols, const ExportOptions& options,
                            const ByteOutput& output, const Progress& progress) {
  const auto selected = select_devices(store, options.device);
  if (!selected) return selected.error();
  return TraceWriter(store, symbols, *selected, options, output, progress).write();
}

}  // namespace

ExportFormat perfetto_format() {
  return {"perfetto", "memory over time, for https://ui.perfetto.dev", ".pftrace", true, false, write_perfetto};
}

}  // namespace tidemark
