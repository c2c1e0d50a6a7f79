#include "report/common/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "base/units.h"
#include "query/words/machine.h"
#include "query/words/monitors.h"
#include "query/words/printable.h"
#include "query/words/rates.h"
#include "query/words/recording_text.h"
#include "query/words/risks.h"
#include "query/words/stack_text.h"
#include "report/common/columns.h"
#include "report/common/text_parts.h"
#include "report/leaks/words.h"

namespace tidemark {
namespace {

std::string mean_and_most_text(const RunningValue& percent) {
  if (percent.count == 0) return "n/a";
  return fmt::format("{:.1f}% on average, {:.1f}% at most", percent.average, percent.highest);
}

constexpr std::uint64_t kManyStorages = 8;  // of one holder: a list that grows

// As in holders() for an owner without a reference.
constexpr const char* kHeldByNative =
    "held by native code, such as an autograd graph, or a temporary of a running function";

std::string peak_cell(const WatchedUsage& used) {
  return used.empty() ? "n/a" : format_bytes(used.peak_bytes());
}

// Ended processes have no value.
std::string memory_cell(const std::optional<std::uint64_t>& bytes, const WatchedProcess& process) {
  return process.ended ? "-" : bytes_text(bytes);
}

std::string process_cell(const WatchedProcess& process) {
  if (process.kind == ProcessKind::other_namespace) return "(another container)";
  const std::string words = process_words(process);
  const std::string name = words.empty() ? "n/a" : words;
  return process.ended ? name + " (ended)" : name;
}

// "Watched for 60 s, sampled every 1 s; 2026-11-23 10:02:11 UTC", and what is unavailable.
std::string head(const WatchRun& run, const Terminal& terminal) {
  std::string text =
      fmt::format("Watched for {}, sampled every {}, from {}\n", span_text(static_cast<double>(run.state.now_ns) / 1e9),
                  span_text(run.interval_seconds), wall_clock_text(run.state.wall_ns(0)));
  for (const std::string& note : watch_notes(run)) {
    text += paint(terminal, Tone::warning, printable("Note: " + note + ".")) + "\n";
  }
  return text;
}

std::string heading(const WatchedDevice& device, const MachineState& state, const Terminal& terminal) {
  return "\n" + paint(terminal, Tone::heading, printable(watched_title(device, state))) + "\n";
}

std::string memory_line(const WatchedDevice& device) {
  std::string text = fmt::format("{} of {}", bytes_text(device.used_bytes()), bytes_text(device.info.total_bytes));
  if (const auto free = device.free_bytes()) text += ", " + format_bytes(*free) + " free";
  return text;
}

std::string peak_line(const WatchedDevice& device) {
  if (device.used.empty()) return "n/a";
  const std::string peak = format_bytes(device.used.peak_bytes());
  const std::string when = at_text(device.used.peak_at_ns());
  return device.used.peak_is_sampled() ? fmt::format("{} {}", peak, when)
                                       : fmt::format("{} {}, recorded between samples", peak, when);
}

std::string processes_of(const MachineState& state, const Terminal& terminal) {
  if (state.processes.empty()) return "";
  Columns columns({"pid", "device", "on device", "peak", "RSS", "peak RSS", "PSS", "process"});
  for (const WatchedProcess& process : state.processes) {
    const auto row = [&](const std::string& device, const std::string& bytes, const std::string& peak) {
      columns.add({std::to_string(process.pid), device, bytes, peak, memory_cell(process.rss_bytes, process),
                   peak_cell(process.rss), memory_cell(process.pss_bytes, process), process_cell(process)});
    };
    if (process.devices.empty()) row("-", "-", "-");
    for (const ProcessOnDevice& on : process.devices) {
      row(short_title(state.devices[on.device]), on.held ? bytes_text(on.bytes) : "-", peak_cell(on.used));
    }
  }
  return "\n" + paint(terminal, Tone::heading, "Processes") + "\n" + columns.text(terminal, 2);
}

constexpr std::string_view kOfCpu =
    "  cpu: its recorded allocations, added up; PyTorch's allocator of the CPU reserves nothing.\n";

std::string recorded_of(const WatchRun& run, const Terminal& terminal) {
  if (run.recorded.empty()) return "";
  Columns columns({"pid", "device", "allocated", "peak", "reserved", "peak", "unused", "program"});
  bool of_cpu = false;
  for (const RecordedProcess& process : run.recorded) {
    const std::string pid = std::to_string(process.recording.pid);
    std::string program = shown(process.recording.command);
    if (process.state == FollowState::ended) program += " (ended)";
    if (!process.problem.empty()) program += ": " + shown(process.problem);
    if (process.devices.empty()) columns.add({pid, "-", "-", "-", "-", "-", "-", program});
    for (const RecordedDevice& on : process.devices) {
      of_cpu |= on.device.type == DeviceType::cpu;
      columns.add({pid, to_string(on.device), format_bytes(on.allocated_bytes), bytes_text(on.most_allocated()),
                   bytes_text(on.reserved_bytes), bytes_text(on.most_reserved()), share_text(on.unused_share.mean()),
                   program});
    }
  }
  return "\n" + paint(terminal, Tone::heading, "Recorded processes: what their allocators hold, true peaks") + "\n" +
         columns.text(terminal, 2) + (of_cpu ? std::string(kOfCpu) : "");
}

std::string host_holds_text(const WatchRun& run) {
  return host_parts_text(run.state.host.parts()) + and_cuda_pinned_text(cuda_pinned_bytes(run.recorded));
}

std::string host_text(const WatchRun& run) {
  const WatchedHost& host = run.state.host;
  std::string text = fmt::format("{} of {}", bytes_text(host.used_bytes()), bytes_text(host.limit_bytes()));
  if (host.limited_by_cgroup()) text += " of " + control_group_text(host);
  if (!host.used.empty()) text += ", peak " + format_bytes(host.used.peak_bytes());
  text += "; " + host_holds_text(run);
  return "\nHost memory: " + text + "\n";
}

bool shows_host(const MachineState& state) {
  return std::none_of(state.devices.begin(), state.devices.end(), [](const auto& device) { return device.is_host; });
}

Tone tone_of(RiskLevel level) {
  return level >= RiskLevel::high ? Tone::error : level == RiskLevel::medium ? Tone::warning : Tone::quiet;
}

std::string risk_lines(const RiskAssessment& risk, bool assessed, const std::string& recommendation,
                       const Terminal& terminal) {
  const std::string level = assessed ? std::string(name_of(risk.level)) : "n/a";
  std::string text =
      fact("risk", assessed ? paint(terminal, tone_of(risk.level), level) + confidence_text(risk) : level);
  return text + fact("evidence", printable(recommendation));
}

std::string growth_rate_text(const MemoryGrowth& growth) {
  if (!growth.growth) return "-";
  const Slope& rate = growth.growth->bytes_per_minute;
  return fmt::format("{} ± {}", per_minute_text(rate.value / 60), per_minute_text((rate.high - rate.low) / 120));
}

std::string verdict_words(const MemoryGrowth& growth) {
  switch (growth.verdict) {
    case GrowthVerdict::growing:
      return "above the threshold";
    case GrowthVerdict::uncertain:
      return growth.growth && growth.growth->classification == GrowthClass::leak
                 ? "perhaps above the threshold: watch for longer"
                 : fmt::format("grew for {}: too short to tell", span_text(growth.growth ? growth.growth->seconds : 0));
    case GrowthVerdict::below_threshold:
      return "below the threshold";
    case GrowthVerdict::none:
      return "no lasting growth";
    case GrowthVerdict::unknown:
      break;
  }
  return fmt::format("too few samples ({})", format_count(growth.sample_count));
}

// Memory of a process whose recording shows a leak: other memory of it may hide the growth in its samples.
bool contains_leak(const MemoryGrowth& growth, const LeakReport& report) {
  if (growth.memory == GrowingMemory::device || growth.memory == GrowingMemory::host) return false;
  if (growth.memory == GrowingMemory::allocated) return false;  // the leak was found in it
  const std::int64_t pid = report.state.processes.at(growth.process).pid;
  return std::ranges::any_of(report.by_stack, [&](const RecordedLeaks& of) {
    return of.leaks.verdict == LeakVerdict::leak && report.recorded[of.process].recording.pid == pid;
  });
}

std::string verdict_words(const MemoryGrowth& growth, const LeakReport& report) {
  const bool is_hidden = growth.verdict == GrowthVerdict::none && contains_leak(growth, report);
  return is_hidden ? "contains the leak above" : verdict_words(growth);
}

std::string step_rate_text(const std::optional<double>& bytes_per_step) {
  return bytes_per_step ? rate_text(*bytes_per_step) : "n/a";
}

// The last part of a recording, block by block, is more detailed for a stack; if it is empty, the growth at steps is
// shown.
std::string sources_text(const RecordedLeaks& of, const Terminal& terminal) {
  std::string text;
  if (of.leaks.verdict != LeakVerdict::leak && !of.sources.empty()) {
    Columns columns({"growth", "per step", "held", "device", "stack"});
    for (const GrowingSource& source : of.sources) {
      const auto& per_step = source.growth.bytes_per_step;
      columns.add({per_minute_text(source.growth.bytes_per_minute.value / 60),
                   step_rate_text(per_step ? std::optional(per_step->value) : std::nullopt),
                   format_bytes(source.growth.held_bytes), to_string(source.device)},
                  [&source](std::size_t width) { return stack_text_with_callers(source.stack, width); });
    }
    text += "\n" + paint(terminal, Tone::heading, "Growth by stack, over all steps that were seen") + "\n" +
            columns.text(terminal, 2);
    if (of.other_sources > 0) text += fmt::format("  ({} more)\n", format_count(of.other_sources));
  }
  if (of.modules.empty()) return text;
  Columns columns({"growth", "per step", "held", "device", "module"});
  for (const GrowingModule& module : of.modules) {
    columns.add({per_minute_text(module.bytes_per_minute / 60), step_rate_text(module.bytes_per_step),
                 format_bytes(module.held_bytes), to_string(module.device),
                 module.module ? shown(*module.module) : "(none)"});
  }
  return text + "\n" + paint(terminal, Tone::heading, "Growth by module, over all steps that were seen") + "\n" +
         columns.text(terminal, 2);
}

std::string storages_text(std::uint64_t count) {
  return count == 1 ? "1 storage" : format_count(count) + " storages";
}

// New storages as reported by the program itself.
std::string types_text(const RecordedLeaks& of, const Terminal& terminal) {
  const std::string title = paint(terminal, Tone::heading, "New storages by owner");
  if (!of.objects) return fmt::format("\n{}: n/a, {}. {}.\n", title, printable(of.objects_unknown), kWhereObjectsAre);
  std::string text = fmt::format("\n{}: {} storages, {} since the first query; of {} of them:\n", title,
                                 format_count(of.objects->new_storages), format_bytes(of.objects->new_bytes),
                                 format_count(of.objects->storages.size()));
  if (!of.objects->older_because.empty()) {
    text += fmt::format("  as of {}, the latest answer: {}\n", wall_clock_text(of.objects->answered_wall_ns),
                        printable(of.objects->older_because));
  }
  for (const GrowingType& type : of.types) {
    text += fmt::format("  {}, {} in {}\n", shown(type.type.empty() ? type.kind : type.kind + " (" + type.type + ")"),
                        format_bytes(type.bytes), storages_text(type.storages));
    for (const GrowingHolder& holder : type.holders) {
      text +=
          fmt::format("    {}, {} in {}{}\n", shown(holder.name), format_bytes(holder.bytes),
                      storages_text(holder.storages), holder.chain == holder.name ? "" : ": " + shown(holder.chain));
    }
    if (type.other_holders > 0) text += fmt::format("    ({} more holders)\n", format_count(type.other_holders));
    if (type.native > 0) text += fmt::format("    {} of them: {}\n", format_count(type.native), kHeldByNative);
  }
  for (const std::string& note : of.objects->notes) text += fmt::format("  ({})\n", printable(note));
  if (of.objects->stopped_after_seconds) text += "  " + search_stopped_text(*of.objects->stopped_after_seconds) + "\n";
  return text;
}

// The host's memory grows by more than tensors hold: a list of small tensors keeps their autograd graphs there.
std::string host_growth_holder(const RecordedLeaks& of) {
  if (of.leaks.verdict == LeakVerdict::leak || of.leaks.host_growth.empty() || !of.objects) return "";
  const std::size_t asked = of.objects->storages.size();
  for (const GrowingType& type : of.types) {
    for (const GrowingHolder& holder : type.holders) {
      if (holder.chain == holder.name || holder.storages * 2 < asked || holder.storages < kManyStorages) continue;
      return fmt::format(
          "Likely cause: {} grows ({} of {} new storages). Fix: keep .item() or .detach() of its tensors, not their "
          "autograd graphs\n",
          shown(holder.name), format_count(holder.storages), format_count(asked));
    }
  }
  return "";
}

std::string recorded_leaks_text(const RecordedLeaks& of, const LeakReport& report, const Terminal& terminal) {
  const LiveRecording& recording = report.recorded[of.process].recording;
  const std::string process = fmt::format("Process {} ({})", recording.pid, shown(recording.command));
  return paint(terminal, Tone::heading, process) + "\n" + host_growth_holder(of) + leaks_text(of.leaks, terminal) +
         types_text(of, terminal) + sources_text(of, terminal);
}

// Of what samples show; `found`: recordings show growth.
std::string verdict_line(const LeakReport& report, bool found, const Terminal& terminal) {
  const auto growing = std::count_if(report.growths.begin(), report.growths.end(), [](const MemoryGrowth& growth) {
    return growth.verdict == GrowthVerdict::growing;
  });
  const std::string threshold = per_minute_text(report.threshold_bytes_per_minute / 60);
  if (growing > 0) {
    return paint(terminal, found ? Tone::heading : Tone::error,
                 fmt::format("{} of {} memories grow by {} or more:", growing, report.growths.size(), threshold)) +
           "\n";
  }
  const bool grows_by_stack = std::any_of(report.by_stack.begin(), report.by_stack.end(),
                                          [](const RecordedLeaks& of) { return !of.sources.empty(); });
  if (found || grows_by_stack) {
    return fmt::format("No memory as a whole is known to grow by {} or more, but parts of it grow.\n", threshold);
  }
  return fmt::format("No memory is known to grow by {} or more.\n", threshold);
}

// Whether something grows, or is near its limit.
bool any_risk(const MachineState& state) {
  const auto at_risk = [](const WatchedDevice& device) { return device.risk.level > RiskLevel::low; };
  return !growing_processes_text(state).empty() || state.host.risk.level > RiskLevel::low ||
         std::ranges::any_of(state.devices, at_risk);
}

}  // namespace

std::string to_text(const ProfileReport& report, const Terminal& terminal) {
  const MachineState& state = report.state;
  std::string text = head(report, terminal);
  for (const WatchedDevice& device : state.devices) {
    text += heading(device, state, terminal);
    text += fact("memory", memory_line(device));
    text += fact("peak", peak_line(device));
    text += fact("used", fmt::format("{}, {}", mean_and_most_text(device.used_percent),
                                     samples_text(device.used.sample_count())));
    if (device.is_host) text += fact("holds", host_holds_text(report));
    if (device.is_host) continue;
    text += fact("utilization", mean_and_most_text(device.utilization_percent));
  }
  text += processes_of(state, terminal) + recorded_of(report, terminal);
  return shows_host(state) ? text + host_text(report) : text;
}

std::string to_text(const OomReport& report, const Terminal& terminal) {
  const MachineState& state = report.state;
  std::string text = head(report, terminal);
  // Before the devices: one process may grow while the device as a whole, with others that end, does not.
  for (const std::string& line : growing_processes_text(state)) {
    text += paint(terminal, Tone::warning, printable(line)) + "\n";
  }
  for (const WatchedDevice& device : state.devices) {
    text += heading(device, state, terminal);
    text += fact("memory", memory_line(device));
    text += fact("peak", peak_line(device));
    text += risk_lines(device.is_host ? state.host.risk : device.risk, device.assessed_at_ns.has_value(),
                       recommendation_text(device, state), terminal);
  }
  if (shows_host(state)) {
    text += host_text(report);
    text +=
        risk_lines(state.host.risk, state.host.assessed_at_ns.has_value(), host_recommendation_text(state), terminal);
  }
  text += processes_of(state, terminal);
  if (!report.changes.empty()) text += "\n" + paint(terminal, Tone::heading, "Changes of risk") + "\n";
  if (report.earlier_changes > 0) text += fmt::format("  {} earlier ones\n", format_count(report.earlier_changes));
  for (const RiskChange& change : report.changes) text += "  " + change_text(change) + "\n";
  if (report.recorded.empty()) {
    return text + next_command("tidemark run -- python train.py", "records what holds the memory", terminal);
  }
  const LiveRecording& recording = report.recorded.front().recording;
  if (any_risk(state)) {
    return text + next_command(fmt::format("tidemark leak --enable-tracking --pid {}", recording.pid),
                               "which lines of the recorded program grow, and what holds their memory", terminal);
  }
  return text + next_command("tidemark summary " + shell_word(recording.path), "what holds the memory", terminal);
}

std::string to_text(const LeakReport& report, const Terminal& terminal) {
  // What was found in recordings is exact, so it comes before what samples show.
  std::string found;
  std::string others;
  const RecordedLeaks* leaking = nullptr;
  for (const RecordedLeaks& of : report.by_stack) {
    const bool grows = of.leaks.verdict == LeakVerdict::leak || !of.leaks.host_growth.empty();
    if (leaking == nullptr && of.leaks.verdict == LeakVerdict::leak) leaking = &of;
    (grows ? found : others) += recorded_leaks_text(of, report, terminal) + "\n";
  }
  std::string text = found + head(report, terminal) + "\n" + verdict_line(report, !found.empty(), terminal);
  if (!report.growths.empty()) {
    Columns columns({"growth", "first", "last", "peak", "verdict", "memory"});
    for (const MemoryGrowth& growth : report.growths) {
      columns.add({growth_rate_text(growth), format_bytes(growth.first_bytes), format_bytes(growth.last_bytes),
                   format_bytes(growth.peak_bytes), verdict_words(growth, report),
                   shown(growing_memory_text(growth, report))});
    }
    text += columns.text(terminal, 2);
  }
  if (report.tracking && report.by_stack.empty()) {
    text += fmt::format("\nGrowth by stack and module: n/a, {}.\n", kNoTracking);
  }
  if (!others.empty()) text += "\n" + others;
  if (leaking == nullptr) return text;
  // The recording alone does not contain what holds the memory: its `leaks` would say less.
  return text + next_text(leaking->leaks.recording, "report", "a page with the growth over time", terminal);
}

std::string to_text(const FragmentReport& report, const Terminal& terminal) {
  const MachineState& state = report.state;
  std::string text = head(report, terminal);
  for (const WatchedDevice& device : state.devices) {
    text += heading(device, state, terminal);
    text += fact("memory", memory_line(device));
    const auto unused = report.unused_share(device.key);
    text += unused ? fact("unused", share_text(unused) + " of what recorded processes have reserved, on average")
                   : fact("unused", "n/a: " + no_fragmentation_text(report, device));
  }
  text += recorded_of(report, terminal);
  for (const RecordedFragmentation& of : report.of_recorded) text += "\n" + to_text(of.fragmentation, terminal);
  return text + processes_of(state, terminal);
}

}  // namespace tidemark
