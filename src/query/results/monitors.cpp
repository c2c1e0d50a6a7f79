// Reports of monitors: profile, oom, leak, fragment.
#include "query/results/monitors.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <ctime>
#include <optional>
#include <string>
#include <vector>

#include "query/results/machine_results.h"
#include "query/results/results.h"

namespace tidemark {

std::string iso_time(std::uint64_t wall_ns) {
  const auto whole = static_cast<std::time_t>(wall_ns / 1'000'000'000);
  return fmt::format("{:%Y-%m-%dT%H:%M:%S}.{:06}+00:00", fmt::gmtime(whole), wall_ns % 1'000'000'000 / 1000);
}

namespace {

// Start of every report. `Command`: OneOf.
template <typename Visitor, typename Command>
void describe_run(Visitor& v, const WatchRun& run, const Command& command, bool has_ended = true) {
  v.field("timestamp", iso_time(run.state.now_wall_ns), "UTC");
  v.field("command", command);
  v.field("started", iso_time(run.state.wall_ns(0)));
  v.field("duration_seconds", in_seconds(run.state.now_ns));
  v.field("interval_seconds", run.interval_seconds);
  v.field("ended_by", when(has_ended, named<kWatchEndNames>(run.end)));
  v.field("pid", run.pid, "--pid");
  v.field(
      "notes", [&] { return watch_notes(run); }, "what was not seen and why: sentences");
}

// A device of a report, by its key there.
template <typename Row>
Keyed<Row> by_key(const WatchRun& run) {
  Keyed<Row> rows;
  for (const WatchedDevice& device : run.state.devices) rows.emplace_back(device.key, Row{&device, &run});
  return rows;
}

AssessedRisk risk_of(const WatchedDevice& device, const MachineState& state) {
  return {&device.risk, [&] { return recommendation_text(device, state); }, device.assessed_at_ns.has_value()};
}

struct ProfiledStatistics {
  const WatchedDevice* device = nullptr;
  const WatchRun* run = nullptr;
};
template <typename Visitor>
void describe(Visitor& v, const ProfiledStatistics& of) {
  const WatchedDevice& device = value_or_none(of.device);
  v.type("ProfiledStatistics", "Of all samples of a device.", kMonitorTypes);
  v.field("avg_utilization", device.used_percent.mean(), "of memory, percent of the total");
  v.field("max_utilization", device.used_percent.most());
  v.field(
      "avg_fragmentation", [&] { return of.run->unused_share(device.key); },
      "1 - allocated / reserved of recorded processes on it; null: none is recorded");
  v.field("num_snapshots", device.used.sample_count());
}

struct ProfiledDevice {
  const WatchedDevice* device = nullptr;
  const WatchRun* run = nullptr;
  bool has_risk = false;
};
template <typename Visitor>
void describe(Visitor& v, const ProfiledDevice& of) {
  const WatchedDevice& device = value_or_none(of.device);
  const WatchRun& run = value_or_none(of.run);
  v.type("ProfiledDevice", "Memory of a device over a while.");
  v.field("current_memory", in(device, MemoryNow()));
  v.field("peak_memory", peak_of(device.used), "bytes");
  v.field("statistics", ProfiledStatistics{&device, &run});
  v.part(in(device, DeviceIdentity()));
  v.field("peak_at_seconds", when(!device.used.empty(), [&] { return in_seconds(device.used.peak_at_ns()); }));
  v.field("peak_is", peak_is(device.used), "recorded: between samples, as a recorder saw it");
  v.field("driver_reserved_bytes", device.latest.driver_reserved_bytes);
  v.field("gpu_utilization_percent", device.utilization_percent);
  v.field("temperature_celsius", device.latest.temperature_celsius);
  v.field("power_milliwatts", device.latest.power_milliwatts);
  v.field("history", device.used);
  v.field_if(of.has_risk, "risk_assessment", risk_of(device, run.state), "of `interactive`");
}

}  // namespace

template <typename Visitor>
void describe(Visitor& v, const WatchMark& mark) {
  v.type("WatchMark", "A moment that somebody marked.");
  v.field("seconds", in_seconds(mark.time_ns));
  v.field("name", mark.name);
}

template <typename Visitor>
void describe(Visitor& v, const ProfileReport& report) {
  Keyed<ProfiledDevice> devices = by_key<ProfiledDevice>(report);
  for (auto& [key, device] : devices) device.has_risk = report.has_risks;
  v.type("ProfileReport", "Memory of devices and processes over a while.");
  describe_run(v, report, one_of<"profile", "interactive">(report.marks ? "interactive" : "profile"), !report.marks);
  v.field("devices", devices, "by key");
  v.field("processes", in(report.state.processes, report.state));
  v.field("recorded", report.recorded, "processes that were being recorded");
  v.field("host", report.state.host);
  v.field_if(report.marks.has_value(), "marks", report.marks.value_or(std::vector<WatchMark>()), "of `interactive`");
}
TIDEMARK_DESCRIBED(ProfileReport);

template <typename Visitor>
void describe(Visitor& v, const RiskChange& change) {
  v.type("RiskChange", "A change of a risk.", kMonitorTypes);
  v.field("timestamp", iso_time(change.wall_ns));
  v.field("device", change.device, "its key");
  v.field("name", known_text(change.name));
  v.field("before", named<kRiskLevelNames>(change.before));
  v.field(
      "change", [&] { return change_text(change); }, "a line");
  v.field("limit_bytes", change.limit_bytes);
  v.field("risk_assessment", AssessedRisk{&change.now, [&] { return recommendation_text(change); }});
}
TIDEMARK_DESCRIBED(RiskChange);

namespace {

struct RiskyDevice {
  const WatchedDevice* device = nullptr;
  const WatchRun* run = nullptr;
};
template <typename Visitor>
void describe(Visitor& v, const RiskyDevice& of) {
  const WatchedDevice& device = value_or_none(of.device);
  v.type("RiskyDevice", "Whether a device will run out of memory.");
  v.field("risk_assessment", risk_of(device, value_or_none(of.run).state));
  v.part(in(device, DeviceIdentity()));
  v.field("current_memory", in(device, MemoryNow()));
  v.field("limit_bytes", device.limit_bytes(), "what programs can have of it");
  v.field("peak_memory", peak_of(device.used), "bytes");
  v.field("peak_is", peak_is(device.used));
  v.field("num_snapshots", device.used.sample_count());
}

}  // namespace

template <typename Visitor>
void describe(Visitor& v, const WatchedHost& host, const MachineState& state) {
  v.type("RiskyHost", "Whether the host will run out of memory.");
  describe_host(v, host);
  v.field("risk_assessment",
          AssessedRisk{&host.risk, [&] { return host_recommendation_text(state); }, host.assessed_at_ns.has_value()});
}

template <typename Visitor>
void describe(Visitor& v, const OomReport& report) {
  const MachineState& state = report.state;
  v.type("OomReport", "Whether devices or the host will run out of memory.");
  describe_run(v, report, one_of<"oom">("oom"));
  v.field("threshold_percent", report.threshold_percent, "--threshold");
  v.field("devices", by_key<RiskyDevice>(report), "by key");
  v.field("host", in(state.host, state));
  v.field("processes", in(state.processes, state));
  v.field("changes", report.changes, "of risks, the latest ones");
  v.field("earlier_change_count", report.earlier_changes);
}
TIDEMARK_DESCRIBED(OomReport);

namespace {

struct GrowthEvidence {
  const MemoryGrowth* growth = nullptr;
};
template <typename Visitor>
void describe(Visitor& v, const GrowthEvidence& of) {
  const MemoryGrowth& growth = value_or_none(of.growth);
  const LiveGrowth* found = growth.growth ? &*growth.growth : nullptr;
  v.type("GrowthEvidence", "What a verdict on growth follows from.");
  v.field("sample_count", growth.sample_count);
  v.field("span_seconds", growth.span_seconds);
  v.field("growth_seconds", when(found != nullptr, [&] { return found->seconds; }));
  v.field("step_count", found != nullptr ? found->steps : std::nullopt);
  v.field("growing_count", when(found != nullptr, [&] { return found->grown_steps; }),
          "of steps, or of stretches of time");
  v.field("analyzed_count", when(found != nullptr, [&] { return found->analyzed_steps; }));
}

// Owner of growing memory: a device's key and a process, if known.
struct GrowingOwner {
  std::optional<std::string> device;
  std::optional<std::int64_t> pid;
  std::string_view measure = "used";
};
GrowingOwner owner_of(const MemoryGrowth& growth, const WatchRun& run) {
  const MachineState& state = run.state;
  switch (growth.memory) {
    case GrowingMemory::allocated: {
      const RecordedProcess& process = run.recorded[growth.process];
      return {to_string(process.devices[growth.device].device), process.recording.pid, "allocated"};
    }
    case GrowingMemory::device:
      return {state.devices[growth.device].key, std::nullopt};
    case GrowingMemory::process_device:
      return {state.devices[growth.device].key, state.processes[growth.process].pid};
    case GrowingMemory::process_host:
      return {std::nullopt, state.processes[growth.process].pid, growth.is_pss ? "pss" : "rss"};
    case GrowingMemory::host:
      break;
  }
  return {};
}

}  // namespace

template <typename Visitor>
void describe(Visitor& v, const MemoryGrowth& growth, const WatchRun& run) {
  const bool known = growth.verdict != GrowthVerdict::unknown;
  const LiveGrowth* found = growth.growth ? &*growth.growth : nullptr;
  v.type("MemoryGrowth", "How a memory grows.");
  v.field("memory", named<kGrowingMemoryNames>(growth.memory));
  v.field("title", [&] { return growing_memory_text(growth, run); });
  v.field(
      "device", [&] { return owner_of(growth, run).device; }, "its key; PyTorch's name of what is allocated");
  v.field("pid", [&] { return owner_of(growth, run).pid; });
  v.field("measure", [&] { return one_of<"used", "pss", "rss", "allocated">(owner_of(growth, run).measure); });
  v.field("verdict", named<kGrowthVerdictNames>(growth.verdict));
  v.field("growth_mb_per_minute", when(known, [&] { return in_mib(growth.bytes_per_minute()); }), "null: not known");
  v.field("growth_mb_per_minute_low", when(found != nullptr, [&] { return in_mib(found->bytes_per_minute.low); }),
          "95% interval");
  v.field("growth_mb_per_minute_high", when(found != nullptr, [&] { return in_mib(found->bytes_per_minute.high); }));
  v.field("growth_bytes_per_step",
          when(found != nullptr && found->bytes_per_step, [&] { return found->bytes_per_step->value; }));
  v.field("classification", when(found != nullptr, [&] { return named<kGrowthClassNames>(found->classification); }));
  v.field("first_bytes", growth.first_bytes);
  v.field("last_bytes", growth.last_bytes);
  v.field("peak_bytes", growth.peak_bytes);
  v.field("evidence", GrowthEvidence{&growth});
}

template <typename Visitor>
void describe(Visitor& v, const GrowingSource& source) {
  const LiveGrowth& growth = source.growth;
  v.type("GrowingStack", "A stack that leaks, since the process is followed.");
  v.field("device", to_string(source.device));
  v.field("stack", known(source.stack));
  v.field("growth_mb_per_minute", in_mib(growth.bytes_per_minute.value));
  v.field("growth_bytes_per_step",
          when(growth.bytes_per_step.has_value(), [&] { return growth.bytes_per_step->value; }));
  v.field("growing_step_count", growth.grown_steps);
  v.field("analyzed_step_count", growth.analyzed_steps);
  v.field("held_bytes", growth.held_bytes, "now");
}

template <typename Visitor>
void describe(Visitor& v, const GrowingModule& module) {
  v.type("GrowingModule", "Stacks that leak, by the module that allocated them.");
  v.field("device", to_string(module.device));
  v.field("module", module.module, "null: outside of modules, or not known");
  v.field("growth_mb_per_minute", in_mib(module.bytes_per_minute));
  v.field("growth_bytes_per_step", module.bytes_per_step);
  v.field("held_bytes", module.held_bytes);
}

template <typename Visitor>
void describe(Visitor& v, const GrowingHolder& holder) {
  v.type("GrowingHolder", "New storages that one object of the program refers to.");
  v.field("name", holder.name);
  v.field("chain", holder.chain, "of references to one of them");
  v.field("storage_count", holder.storages);
  v.field("bytes", holder.bytes);
}

template <typename Visitor>
void describe(Visitor& v, const GrowingType& type) {
  v.type("GrowingType", "New storages of one kind of owner, as the program says.");
  v.field("kind", type.kind);
  v.field("type", known_text(type.type));
  v.field("storage_count", type.storages);
  v.field("bytes", type.bytes);
  v.field("native_count", type.native, "without a chain of references");
  v.field("holders", type.holders, "most bytes first");
  v.field("other_holder_count", type.other_holders);
}

template <typename Visitor>
void describe(Visitor& v, const ObjectAnswer& objects) {
  v.type("NewStorages", "Storages that the program has since it was first asked.");
  v.field("count", objects.new_storages);
  v.field("bytes", objects.new_bytes);
  v.field("asked_about", objects.storages.size());
  v.field("answered", iso_time(objects.answered_wall_ns), "UTC");
  v.field("older_because", known_text(objects.older_because), "why that was not at the end; null: it was");
  v.field("seconds_to_answer", objects.seconds, "for which the program was held up");
  v.field("stopped_after_seconds", objects.stopped_after_seconds, "of the search for chains");
  v.field("notes", objects.notes, "what the program could not find out");
}

template <typename Visitor>
void describe(Visitor& v, const RecordedLeaks& of, const LeakReport& report) {
  const auto recording = [&]() -> const LiveRecording& { return report.recorded[of.process].recording; };
  v.type("LeakSource", "What leaks in a recorded process.");
  v.field("pid", [&] { return recording().pid; });
  v.field("command", [&] { return recording().command; });
  v.field("leaks", of.leaks, "of the last part, as in `leaks --format json`");
  v.field(
      "holders",
      [&] {
        std::vector<std::optional<std::string>> holders;
        for (const LeakObject& object : of.leaks.objects) {
          const std::string& holder = object.mistake.holder;
          holders.push_back(holder.empty() ? std::nullopt : std::optional(holder));
        }
        return holders;
      },
      "of leaks.groups, in their order: what refers to the memory; null: unknown");
  v.field("by_stack", of.sources, "at all steps that were seen, fastest first");
  v.field("other_stack_count", of.other_sources);
  v.field("by_module", of.modules);
  v.field("object_types", when(of.objects.has_value(), of.types), "null: the program does not say");
  v.field("object_types_unknown_because", known_text(of.objects_unknown));
  v.field("new_storages", of.objects);
}

namespace {

struct TrackedLeaks {};

}  // namespace

template <typename Visitor>
void describe(Visitor& v, const LeakReport& report, const TrackedLeaks& /*tag*/) {
  const bool found = report.tracking && !report.by_stack.empty();
  v.type("LeakTracking", "What recorded processes say of growth.");
  v.field("enabled", report.tracking, "--enable-tracking");
  v.field("sources", in(when(found, report.by_stack), report));
  v.field("unknown_because", when(report.tracking && !found, std::string_view(kNoTracking)));
}

template <typename Visitor>
void describe(Visitor& v, const LeakReport& report) {
  v.type("LeakReport", "Which memory grows, and how fast.");
  describe_run(v, report, one_of<"leak">("leak"));
  v.field("threshold_mb_per_minute", in_mib(report.threshold_bytes_per_minute), "--threshold");
  v.field("growing_count", std::count_if(report.growths.begin(), report.growths.end(), [](const MemoryGrowth& growth) {
            return growth.verdict == GrowthVerdict::growing;
          }));
  v.field("growth", in(report.growths, static_cast<const WatchRun&>(report)), "by kind of memory, the fastest first");
  v.field("tracking", in(report, TrackedLeaks()));
  v.field("processes", in(report.state.processes, report.state));
  v.field("host", report.state.host);
}
TIDEMARK_DESCRIBED(LeakReport);

namespace {

struct FragmentedDevice {
  const WatchedDevice* device = nullptr;
  const WatchRun* run = nullptr;
};
template <typename Visitor>
void describe(Visitor& v, const FragmentedDevice& of) {
  const WatchedDevice& device = value_or_none(of.device);
  const auto unused = [&] { return of.run->unused_share(device.key); };
  v.type("FragmentedDevice", "How much of a device is reserved, but not allocated.");
  v.part(in(device, DeviceIdentity()));
  v.field("current_memory", in(device, MemoryNow()));
  v.field("avg_fragmentation", unused, "1 - allocated / reserved of recorded processes on it");
  v.field("unknown_because", [&] {
    return unused() ? std::optional<std::string>() : std::optional(no_fragmentation_text(*of.run, device));
  });
}

}  // namespace

template <typename Visitor>
void describe(Visitor& v, const RecordedProcess& process, const FragmentReport& report) {
  const auto of =
      std::find_if(report.of_recorded.begin(), report.of_recorded.end(),
                   [&](const RecordedFragmentation& one) { return &report.recorded[one.process] == &process; });
  v.type("FragmentedProcess", "A process that was being recorded, and how its memory is fragmented.");
  describe_recorded(v, process);
  v.field("fragmentation", of == report.of_recorded.end() ? nullptr : &of->fragmentation,
          "as in `fragmentation --format json`");
}

template <typename Visitor>
void describe(Visitor& v, const FragmentReport& report) {
  v.type("FragmentReport", "Fragmentation of recorded processes while they run.");
  describe_run(v, report, one_of<"fragment">("fragment"));
  v.field("devices", by_key<FragmentedDevice>(report), "by key");
  v.field("recorded", in(report.recorded, report));
  v.field("processes", in(report.state.processes, report.state));
}
TIDEMARK_DESCRIBED(FragmentReport);

std::string to_json(const RiskChange& change) {
  return to_object(change).dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace tidemark
