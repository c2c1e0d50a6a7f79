#include "query/words/monitors.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/units.h"
#include "query/words/host_ledger.h"
#include "query/words/machine.h"
#include "query/words/printable.h"
#include "query/words/rates.h"
#include "query/words/recording_text.h"
#include "query/words/risks.h"

namespace tidemark {
namespace {

constexpr double kNsPerSecond = 1e9;

double seconds_of(std::uint64_t ns) {
  return static_cast<double>(ns) / kNsPerSecond;
}

// Readings may come less often than requested: they take a bounded share of the processor.
std::string slow_note(const WatchRun& run, const WatchedDevice& device) {
  if (device.used.sample_count() < 3) return "";
  const double every =
      seconds_of(device.used.end_ns() - device.used.begin_ns()) / static_cast<double>(device.used.sample_count() - 1);
  if (every < run.interval_seconds * 1.5) return "";
  return fmt::format("{} was read every {} instead of every {}: reading it takes long", short_title(device),
                     span_text(every), span_text(run.interval_seconds));
}

void add_device_notes(const WatchRun& run, const WatchedDevice& device, std::vector<std::string>& notes) {
  if (!device.lost.empty()) {
    notes.push_back(device.lost);
  } else if (device.used.empty() && device.sampled_at_ns) {
    notes.push_back(short_title(device) + ": the driver does not say how much memory is used");
  } else if (device.used.empty()) {
    notes.push_back(short_title(device) + ": no reading yet");
  }
  if (device.info.mig_enabled.value_or(false)) {
    notes.push_back(short_title(device) + " is divided into MIG instances, which have processes of their own");
  }
  if (const std::string slow = slow_note(run, device); !slow.empty()) notes.push_back(slow);
}

// Without a note, old values would look current.
void add_recorder_notes(const WatchRun& run, std::vector<std::string>& notes) {
  for (const RecordedProcess& process : run.recorded) {
    if (process.state != FollowState::recorder_gone && process.state != FollowState::changed) continue;
    notes.push_back(fmt::format("the {} of process {} ({}) {}: what its allocator holds is that of then",
                                process.state == FollowState::changed ? "recording" : "recorder", process.recording.pid,
                                process.recording.command,
                                process.state == FollowState::changed ? "was changed or deleted" : "is gone"));
  }
}

// Values from events alone are incomplete: without a note they would look complete.
void add_lag_notes(const WatchRun& run, std::vector<std::string>& notes) {
  for (const RecordedProcess& process : run.recorded) {
    if (std::string text = lag_text(process); !text.empty()) notes.push_back(std::move(text));
  }
}

void add_unrecorded_note(const WatchRun& run, std::vector<std::string>& notes) {
  if (!run.recorded.empty()) return;
  notes.push_back(
      fmt::format("process {} is not recorded: what is shown is what the driver and the kernel say of it. With "
                  "`tidemark run` there are allocator statistics and stacks too",
                  run.pid.value_or(0)));
}

void add_pid_note(const WatchRun& run, std::vector<std::string>& notes) {
  switch (run.state.watched_pid) {
    case WatchedPid::not_listed:
      notes.push_back(fmt::format("no device lists process {} or one below it", run.pid.value_or(0)));
      add_unrecorded_note(run, notes);
      break;
    case WatchedPid::hidden:
      notes.push_back(
          fmt::format("the driver's PIDs are those of another PID namespace: what process {} has of the devices "
                      "cannot be told; run tidemark on the host, or in a container with --pid=host",
                      run.pid.value_or(0)));
      add_unrecorded_note(run, notes);
      break;
    case WatchedPid::ended:
      notes.push_back(fmt::format("process {} has ended", run.pid.value_or(0)));
      break;
    case WatchedPid::running:
      add_unrecorded_note(run, notes);
      break;
    case WatchedPid::none:
      break;
  }
}

// All recordings of a job have them.
void add_killed_notes(const WatchRun& run, std::vector<std::string>& notes) {
  std::set<std::int64_t> said;
  for (const RecordedProcess& process : run.recorded) {
    for (const KilledProcess& killed : process.killed) {
      if (!said.insert(killed.process.pid).second) continue;
      notes.push_back(process_words(killed.process) + " was " + killed_words(killed, ""));
    }
  }
  const WatchedHost& host = run.state.host;
  if (!said.empty() || !host.cgroup_oom_kills_at_start || host.cgroup_oom_kills <= host.cgroup_oom_kills_at_start)
    return;
  const std::uint64_t kills = *host.cgroup_oom_kills - *host.cgroup_oom_kills_at_start;
  notes.push_back(fmt::format("the kernel's OOM killer ended {} of {} while watching",
                              kills == 1 ? "a process" : format_count(kills) + " processes", control_group_text(host)));
}

// Containers do not see the groups of others.
void add_cgroup_note(const WatchRun& run, std::vector<std::string>& notes) {
  const WatchedHost& host = run.state.host;
  if (!run.pid || host.cgroup_pid || host.cgroup_folder.empty()) return;
  notes.push_back(
      fmt::format("the control group of process {} cannot be seen from here: limit and use of the host's memory are "
                  "those of tidemark's own; run tidemark on the host, or in the container of the process",
                  *run.pid));
}

}  // namespace

std::string lag_text(const RecordedProcess& process) {
  const RecordingLag& lag = process.lag;
  const std::string name = fmt::format("process {} ({})", process.recording.pid, process.recording.command);
  if (lag.all_is_late()) {
    const std::string by = lag.behind_seconds ? span_text(*lag.behind_seconds) : format_bytes(lag.behind_bytes);
    return fmt::format("{} makes events faster than they can be read: what is known of it is {} behind", name, by);
  }
  if (!lag.is_known()) return "";
  std::string text = name + " makes events faster than they can be read: ";
  if (lag.skipped_until_ns) {
    text += fmt::format("{} were skipped, the last of them {} after its start",
                        lag.skipped_events > 0 ? format_count(lag.skipped_events) + " events" : "events",
                        span_text(seconds_of(*lag.skipped_until_ns)));
  }
  if (lag.is_late()) {
    text += fmt::format("{}they are read {} behind", lag.skipped_until_ns ? "; " : "",
                        span_text(lag.behind_seconds.value_or(0)));
  }
  return text + ". What its allocator holds is exact; stacks and steps are those of the events that were read";
}

std::string short_title(const WatchedDevice& device) {
  if (device.is_host) return "host";
  return device.info.instance_of ? fmt::format("GPU {} instance {}", *device.info.instance_of, device.info.index)
                                 : "GPU " + device.key;
}

std::string host_parts_text(const MemoryParts& parts) {
  return fmt::format("{} anonymous, {} page cache, {} shared memory", bytes_text(parts.anon_bytes),
                     bytes_text(parts.cache_bytes), bytes_text(parts.shmem_bytes));
}

std::string and_cuda_pinned_text(std::optional<std::uint64_t> bytes) {
  return bytes ? fmt::format(", {} pinned for CUDA", format_bytes(*bytes)) : "";
}

// Each program is the main process of its own job, and several jobs have workers of the same number.
std::string process_words(const WatchedProcess& process, bool short_form) {
  if (!process.on_host) return shown(process.name);
  const HostProcess& seen = *process.on_host;
  switch (seen.role) {
    case ProcessRole::rank:
      return fmt::format("{}: {}", role_words(seen), shown(process.name));
    case ProcessRole::data_worker:
    case ProcessRole::resource_tracker:
    case ProcessRole::fork_server:
    case ProcessRole::compile_worker:
    case ProcessRole::child:
      return short_form ? role_words(seen) : fmt::format("{}, parent {}", role_words(seen), seen.parent_pid);
    case ProcessRole::launcher:
      return role_words(seen);
    case ProcessRole::main:
    case ProcessRole::other:
      break;
  }
  return shown(process.name);
}

std::vector<std::string> watch_notes(const WatchRun& run) {
  const MachineState& state = run.state;
  std::vector<std::string> notes = state.problems;
  if (!state.devices_known) notes.emplace_back("the drivers' libraries were still being loaded");
  if (state.devices_known && state.no_gpu) {
    notes.emplace_back(
        "no GPU found: the device is the host's memory, named cpu; without --pid, processes are those that are "
        "recorded");
  }
  for (const WatchedDevice& device : state.devices) add_device_notes(run, device, notes);
  add_pid_note(run, notes);
  add_recorder_notes(run, notes);
  add_lag_notes(run, notes);
  add_killed_notes(run, notes);
  add_cgroup_note(run, notes);
  const auto interval_ns = static_cast<std::uint64_t>(run.interval_seconds * kNsPerSecond);
  if (state.devices_known && state.is_old(state.latest_reading_ns, interval_ns)) {
    notes.push_back(fmt::format("{} for {}; what is shown is from before",
                                state.no_gpu ? "nothing could be read" : "a driver has not answered",
                                span_text(seconds_of(state.now_ns - state.latest_reading_ns))));
  }
  if (state.forgotten_processes > 0) {
    notes.push_back(
        fmt::format("{} processes that have ended are not listed", format_count(state.forgotten_processes)));
  }
  if (run.end == WatchEnd::interrupted) {
    notes.push_back(fmt::format("stopped by a signal after {}", span_text(seconds_of(state.now_ns))));
  }
  return notes;
}

std::string watch_progress(const MachineState& state, std::optional<double> duration_seconds) {
  std::string text = span_text(seconds_of(state.now_ns));
  if (duration_seconds) text += " of " + span_text(*duration_seconds);
  if (!state.devices_known) return text + "; loading the drivers' libraries";
  for (const WatchedDevice& device : state.devices) {
    text += "; " + short_title(device) + " ";
    if (!device.lost.empty()) {
      text += "lost";
    } else {
      text += fmt::format("{} of {}", bytes_text(device.used_bytes()), bytes_text(device.info.total_bytes));
      if (!device.used.empty()) text += ", peak " + format_bytes(device.used.peak_bytes());
    }
  }
  return printable(text);
}

std::string change_text(const RiskChange& change) {
  const std::string clock = wall_clock_text(change.wall_ns);
  std::string text =
      fmt::format("{} {}: {} (was {}): ", clock, change.device == "cpu" ? "host" : "GPU " + change.device,
                  name_of(change.now.level), name_of(change.before));
  if (change.now.used_percent) text += fmt::format("{:.1f}% used; ", *change.now.used_percent);
  text += pattern_text(change.now);
  if (change.now.seconds_to_limit) text += "; the limit is reached " + time_to_limit_text(change.now);
  return printable(text);
}

std::string no_fragmentation_text(const WatchRun& run, const WatchedDevice& device) {
  if (run.recorded.empty()) return kNoFragmentation;
  if (device.is_host) return "PyTorch's allocator of the CPU reserves nothing";
  const auto is_elsewhere = [](const RecordedDevice& on) {
    return on.key.empty() && on.device.type == DeviceType::cuda;
  };
  const bool untold = std::any_of(run.recorded.begin(), run.recorded.end(), [&](const RecordedProcess& process) {
    return std::any_of(process.devices.begin(), process.devices.end(), is_elsewhere);
  });
  if (untold) return "it cannot be told which GPU is meant by those of the recorded processes, which are below";
  return "no recorded process has reserved memory of it while it was watched";
}

std::string search_stopped_text(double seconds) {
  return fmt::format(
      "The search for who holds them ended after {}, so as not to hold the program up: chains are missing.",
      span_text(seconds));
}

}  // namespace tidemark
