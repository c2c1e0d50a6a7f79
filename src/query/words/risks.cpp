#include "query/words/risks.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/units.h"
#include "query/words/monitors.h"
#include "query/words/rates.h"
#include "query/words/recording_text.h"

namespace tidemark {
namespace {

std::string whole_text(double count) {
  return format_count(static_cast<std::uint64_t>(std::llround(std::max(count, 0.0))));
}

bool grows(const RiskAssessment& risk) {
  return risk.growth_bytes_per_second > 0 &&
         (risk.pattern == UsagePattern::growth || risk.pattern == UsagePattern::steps);
}

std::string process_text(const WatchedProcess& process) {
  const std::string words = process_words(process);
  return words.empty() ? fmt::format("process {}", process.pid) : fmt::format("process {} ({})", process.pid, words);
}

std::string holder_sentence(const std::optional<MemoryHolder>& holder) {
  if (!holder) return "";
  return fmt::format(" {} has {} of it.",
                     holder->process.kind == ProcessKind::other_namespace
                         ? fmt::format("Process {} of another container", holder->process.pid)
                         : "P" + process_text(holder->process).substr(1),
                     format_bytes(holder->bytes));
}

std::string killed_sentence(std::uint64_t kills) {
  if (kills == 0) return "";
  return fmt::format(" Meanwhile the kernel killed {} of this control group for lack of memory.",
                     kills == 1 ? "a process" : format_count(kills) + " processes");
}

std::string seen_text(const RiskAssessment& risk) {
  return fmt::format("{} over {}", samples_text(risk.sample_count), span_text(risk.span_seconds));
}

struct Memory {
  const RiskAssessment* risk;
  std::optional<std::uint64_t> limit_bytes;
  std::optional<std::uint64_t> free_bytes;
  std::optional<MemoryHolder> holder;
  std::string leak_options;    ///< of `tidemark leak`, to look closer
  bool process_grows = false;  ///< one of its processes reaches the limit, although the memory as a whole does not
};

// Built from the evidence alone: the pattern, whether the limit is in reach, and the largest process.
std::string recommendation(const Memory& memory) {
  const RiskAssessment& risk = *memory.risk;
  if (risk.pattern == UsagePattern::unknown && risk.level == RiskLevel::low) {
    return fmt::format("Nothing can be said yet ({}); watch for longer.", seen_text(risk));
  }
  const std::string used =
      fmt::format("{} of {} is used", risk.used_percent ? fmt::format("{:.1f}%", *risk.used_percent) : "n/a",
                  bytes_text(memory.limit_bytes));
  const std::string look = fmt::format(" To see which memory grows: tidemark leak{}.", memory.leak_options);
  if (risk.seconds_to_limit) {
    const std::string when =
        fmt::format("{}; {}: the limit is reached {}.", used, pattern_text(risk), time_to_limit_text(risk));
    if (risk.level >= RiskLevel::high) {
      return when + holder_sentence(memory.holder) + " Save a checkpoint or stop it before." + look;
    }
    return when + holder_sentence(memory.holder) + look;
  }
  if (risk.level == RiskLevel::low) {
    if (grows(risk)) {
      return fmt::format("No risk for now: {}, which does not reach the limit in sight ({}).", pattern_text(risk),
                         used);
    }
    return fmt::format("{}: {} ({}; {}).", memory.process_grows ? "No risk yet from all processes together" : "No risk",
                       pattern_text(risk), seen_text(risk), used);
  }
  return fmt::format(
      "{}; {}. {} is free: what needs more at a time, such as a larger batch or another process, fails.{}", used,
      pattern_text(risk), bytes_text(memory.free_bytes), holder_sentence(memory.holder));
}

}  // namespace

std::string watched_title(const WatchedDevice& device, const MachineState& state) {
  if (!device.is_host) return short_title(device) + (device.info.name.empty() ? "" : ": " + device.info.name);
  return state.host.limited_by_cgroup() ? "cpu: memory of " + control_group_text(state.host) : "cpu: host memory";
}

std::string control_group_text(const WatchedHost& host) {
  return host.cgroup_pid ? fmt::format("the control group of process {}", *host.cgroup_pid) : "the control group";
}

std::string samples_text(std::uint64_t samples) {
  return fmt::format("{} {}", format_count(samples), samples == 1 ? "sample" : "samples");
}

std::string confidence_text(const RiskAssessment& risk) {
  constexpr double kMaxPercent = 99;  // no forecast is certain
  if (!risk.confidence) return "";
  return fmt::format(", confidence {:.0f}%", std::min(kMaxPercent, *risk.confidence * 100));
}

std::string pattern_text(const RiskAssessment& risk) {
  const std::string period =
      risk.period_seconds ? fmt::format(" with a period of {}", span_text(*risk.period_seconds)) : "";
  switch (risk.pattern) {
    case UsagePattern::steady:
      return "steady";
    case UsagePattern::warm_up:
      return "warm-up: growth of its peaks slows down";
    case UsagePattern::sawtooth:
      return "sawtooth" + period + " whose peaks do not grow";
    case UsagePattern::level:
      return "a new level, steady since";
    case UsagePattern::released:
      return "what had grown was released";
    case UsagePattern::growth:
    case UsagePattern::steps: {
      const double rate = risk.growth_bytes_per_second;
      const double error = risk.growth_error_bytes_per_second;
      return fmt::format("its peaks grow{} by {} ({} to {})", risk.pattern == UsagePattern::steps ? " in steps" : "",
                         per_minute_text(rate), per_minute_text(rate - error), per_minute_text(rate + error));
    }
    case UsagePattern::unknown:
      break;
  }
  return "too few samples";
}

std::string time_to_limit_text(const RiskAssessment& risk) {
  if (!risk.seconds_to_limit) return "";
  std::string text = interval_text(*risk.seconds_to_limit);
  if (risk.steps_to_limit) {
    const Interval& steps = *risk.steps_to_limit;
    text += fmt::format(", in {} training steps ({} to {})", whole_text(steps.expected), whole_text(steps.earliest),
                        steps.latest ? whole_text(*steps.latest) : "never");
  }
  if (risk.level == RiskLevel::medium) {
    text += fmt::format(", if the growth, {} old, goes on", span_text(risk.growth_seconds));
  }
  return text;
}

std::string recommendation_text(const WatchedDevice& device, const MachineState& state) {
  if (device.is_host) return host_recommendation_text(state);
  if (!device.lost.empty()) return device.lost + ".";
  if (device.used.empty()) return "The driver does not say how much memory of the device is used.";
  return recommendation({&device.risk, device.limit_bytes(), device.free_bytes(), largest_holder(state, &device),
                         " --devices " + device.key, !growing_processes_text(state).empty()});
}

std::string host_recommendation_text(const MachineState& state) {
  const WatchedHost& host = state.host;
  if (host.used.empty()) return "The system does not say how much memory is used.";
  return recommendation({&host.risk, host.limit_bytes(), host.free_bytes(), largest_holder(state, nullptr),
                         " --devices cpu", !growing_processes_text(state).empty()}) +
         killed_sentence(host.new_oom_kills());
}

std::string recommendation_text(const RiskChange& change) {
  return recommendation(
             {&change.now, change.limit_bytes, change.free_bytes, change.holder, " --devices " + change.device}) +
         killed_sentence(change.new_oom_kills);
}

std::string process_recommendation_text(const WatchedProcess& process, const WatchedDevice* device,
                                        const ProcessRisk& risk) {
  const std::uint64_t used = risk.risk.used_bytes;
  return recommendation(
      {&risk.risk,
       risk.limit_bytes,
       risk.limit_bytes - std::min(used, risk.limit_bytes),
       {},
       fmt::format(" --pid {}{}", process.pid, device == nullptr ? "" : " --devices " + device->key)});
}

std::vector<std::string> growing_processes_text(const MachineState& state) {
  std::vector<std::string> lines;
  const auto add = [&](const std::string& memory, const WatchedProcess& process,
                       const std::optional<ProcessRisk>& risk) {
    if (process.ended || !risk || !risk->risk.seconds_to_limit) return;
    lines.push_back(fmt::format("{} of {}: {}; with what is free, its limit of {} is reached {}", memory,
                                process_text(process), pattern_text(risk->risk), format_bytes(risk->limit_bytes),
                                time_to_limit_text(risk->risk)));
  };
  for (const WatchedProcess& process : state.processes) {
    for (const ProcessOnDevice& on : process.devices) {
      if (on.held) add(short_title(state.devices[on.device]), process, on.risk);
    }
    if (process.rss_bytes) add("RSS", process, process.risk);
  }
  return lines;
}

std::string growing_memory_text(const MemoryGrowth& growth, const WatchRun& run) {
  const MachineState& state = run.state;
  const auto device = [&] {
    const WatchedDevice& on = state.devices[growth.device];
    return on.info.instance_of ? fmt::format("GPU {} instance {}", *on.info.instance_of, on.info.index)
                               : "GPU " + on.key;
  };
  switch (growth.memory) {
    case GrowingMemory::device:
      return device();
    case GrowingMemory::process_device:
      return device() + " of " + process_text(state.processes[growth.process]);
    case GrowingMemory::host:
      return state.host.limited_by_cgroup() ? "control group" : "host";
    case GrowingMemory::allocated: {
      const RecordedProcess& process = run.recorded[growth.process];
      return fmt::format("allocated on {} by process {} ({})", to_string(process.devices[growth.device].device),
                         process.recording.pid, process.recording.command);
    }
    case GrowingMemory::process_host:
      break;
  }
  return fmt::format("{} of {}", growth.is_pss ? "PSS" : "RSS", process_text(state.processes[growth.process]));
}

}  // namespace tidemark
