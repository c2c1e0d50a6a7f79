#include "query/words/recording_text.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <ctime>
#include <sstream>

#include "base/arithmetic.h"
#include "base/units.h"
#include "query/words/printable.h"

namespace tidemark {
namespace {

constexpr std::size_t kCommandWidth = 160;
constexpr std::size_t kSettingsWidth = 400;

std::string known(const std::string& value) {
  return value.empty() ? "n/a" : shown(value, kCommandWidth);
}

std::string process_text(const RecordingInfo& recording) {
  const ProcessInfo& process = recording.process;
  std::string text = process.pid ? fmt::format("pid {}", *process.pid) : "n/a";
  if (!process.hostname.empty()) text += " on " + shown(process.hostname);
  if (process.rank) text += fmt::format(", rank {}", *process.rank);
  if (process.rank && process.world_size) text += fmt::format(" of {}", *process.world_size);
  if (process.local_rank) text += fmt::format(", local rank {}", *process.local_rank);
  if (recording.is_worker && process.parent_pid)
    text += fmt::format(", DataLoader worker of pid {}", *process.parent_pid);
  return text;
}

std::vector<Fact> snapshot_facts(const RecordingInfo& recording) {
  std::string settings = "n/a";
  if (recording.allocator_settings) {
    settings = recording.allocator_settings->empty() ? "default" : shown(*recording.allocator_settings, kSettingsWidth);
  }
  return {{"source", "PyTorch memory snapshot"},
          {"started", fmt::format("{}, duration {}", wall_clock_text(recording.process.start_wall_ns),
                                  format_duration_ns(recording.duration_ns))},
          {"allocator", settings},
          {"trace entries",
           fmt::format("{}, stacks: {}", format_count(recording.event_count), known(recording.process.stack_mode))}};
}

}  // namespace

std::string share_text(double share) {
  return fmt::format("{:.1f}%", share * 100);
}

std::string share_text(const std::optional<double>& share) {
  return share ? share_text(*share) : "n/a";
}

std::string at_text(const std::optional<std::uint64_t>& time_ns) {
  return time_ns ? "at " + format_duration_ns(*time_ns) : "n/a";
}

std::string exact_text(std::uint64_t bytes) {
  return fmt::format("{} ({} bytes)", format_bytes(bytes), format_count(bytes));
}

std::string peak_text(std::uint64_t bytes, const std::optional<std::uint64_t>& at_ns) {
  if (!at_ns) return format_bytes(bytes);
  return exact_text(bytes) + " " + at_text(at_ns);
}

std::string nothing_allocated_text(Device device, const std::optional<std::uint64_t>& at_ns,
                                   const std::optional<std::uint64_t>& reserved) {
  std::string text = to_string(device);
  if (at_ns) text += " " + at_text(at_ns);
  text += ": nothing allocated";
  if (reserved.value_or(0) != 0) text += fmt::format(", peak reserved {}", format_bytes(*reserved));
  return text;
}

std::string bytes_text(const std::optional<std::uint64_t>& bytes) {
  return bytes ? format_bytes(*bytes) : "n/a";
}

std::string wall_clock_text(const std::optional<std::uint64_t>& wall_ns) {
  if (!wall_ns) return "n/a";
  const auto seconds = static_cast<std::time_t>(*wall_ns / 1'000'000'000);
  return fmt::format("{:%Y-%m-%d %H:%M:%S} UTC", fmt::gmtime(seconds));
}

std::string signed_text(std::int64_t change, std::string (*format)(std::uint64_t)) {
  const char* sign = change > 0 ? "+" : "";
  return (change < 0 ? "-" : sign) + format(magnitude(change));
}

std::string signed_bytes(std::int64_t change) {
  return signed_text(change, format_bytes);
}

std::vector<std::string> command_words(const RecordingInfo& recording) {
  std::vector<std::string> words;
  std::istringstream text(recording.process.command_line);
  for (std::string word; text >> word;) words.push_back(word);
  return words;
}

std::optional<std::string> pasted_command(const RecordingInfo& recording) {
  if (recording.process.rank) return std::nullopt;
  const std::vector<std::string> words = command_words(recording);
  const auto is_plain = [](const std::string& word) { return shell_argument(word) == word; };
  if (words.empty() || !std::ranges::all_of(words, is_plain)) return std::nullopt;
  return fmt::format("{}", fmt::join(words, " "));
}

std::string process_name(const RecordingInfo& recording, bool child) {
  if (recording.source != SourceKind::recording) return printable(base_name(recording.path));
  const ProcessInfo& process = recording.process;
  const std::string pid = process.pid ? std::to_string(*process.pid) : "n/a";
  const std::string parent = process.parent_pid ? std::to_string(*process.parent_pid) : "n/a";
  std::string role;
  if (recording.is_worker || child) {
    role = fmt::format("{} {} of {}", recording.is_worker ? "DataLoader worker" : "child", pid, parent);
  } else if (!process.rank) {
    role = "pid " + pid;
  }
  if (!process.rank) return role;
  return fmt::format("rank {}{}{}", *process.rank, role.empty() ? "" : ", ", role);
}

std::string recording_title(const RecordingInfo& recording) {
  std::string file = printable(base_name(recording.path));
  if (recording.source != SourceKind::recording) return file;
  const ProcessInfo& process = recording.process;
  const std::string pid = process.pid ? fmt::format("pid {}", *process.pid) : "pid n/a";
  if (recording.is_worker) return fmt::format("{} {}", process_name(recording), file);
  if (!process.rank) return fmt::format("{} {}", pid, file);
  return fmt::format("rank {} ({}) {}", *process.rank, pid, file);
}

std::vector<Fact> recording_facts(const RecordingInfo& recording) {
  if (recording.source == SourceKind::pytorch_snapshot) return snapshot_facts(recording);
  const ProcessInfo& process = recording.process;
  std::vector<Fact> facts = {
      {"command", known(process.command_line)},
      {"started", fmt::format("{}, duration {}", wall_clock_text(process.start_wall_ns),
                              format_duration_ns(recording.duration_ns))},
      {"process", process_text(recording)},
      {"software", fmt::format("Python {}, PyTorch {}, tidemark {}", known(process.python_version),
                               known(process.torch_version), known(process.recorder_version))},
      {"events", fmt::format("{}, stacks: {}", format_count(recording.event_count), known(process.stack_mode))}};
  if (!recording.simulated_gpu.empty()) {
    facts.push_back({"GPU", "simulated by tidemark plan: " + shown(recording.simulated_gpu)});
  }
  if (!recording.allocator_settings.value_or("").empty()) {
    facts.push_back({"allocator", shown(*recording.allocator_settings, kSettingsWidth)});
  }
  return facts;
}

std::string no_events_text(const RecordingInfo& recording) {
  std::string text = "No events recorded: tidemark saw no tensor allocations.\n";
  if (recording.process.torch_version.empty()) text += "PyTorch was not detected in the process.\n";
  return text;
}

std::string chosen_blocks_text(const RecordingInfo& recording, bool lists) {
  if (recording.chosen_blocks.empty()) return {};
  const std::string blocks = printable(recording.chosen_blocks);
  return lists ? "Lists only " + blocks + "; totals are of all blocks.\n" : "Only " + blocks + ".\n";
}

}  // namespace tidemark
