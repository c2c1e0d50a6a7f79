#include "report/common/text_parts.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/units.h"
#include "query/words/data_quality.h"
#include "query/words/printable.h"

namespace tidemark {
namespace {

Tone tone_of(Severity severity) {
  if (severity == Severity::error) return Tone::error;
  return severity == Severity::warning ? Tone::warning : Tone::quiet;
}

std::string cgroup_text(const HostUsage& host) {
  std::string text = "peak " + peak_and_end(*host.cgroup_usage);
  if (host.cgroup_limit_bytes) text += fmt::format(", limit {}", format_bytes(*host.cgroup_limit_bytes));
  if (host.cgroup_oom_kills != 0) {
    text +=
        fmt::format(", {} OOM {}", format_count(host.cgroup_oom_kills), host.cgroup_oom_kills == 1 ? "kill" : "kills");
  }
  return text;
}

}  // namespace

std::string peak_and_end(const SampledBytes& bytes) {
  const std::string end =
      bytes.end ? format_bytes(*bytes.end) : fmt::format("n/a (last read {})", at_text(bytes.last_at_ns));
  return fmt::format("{} {}, {} at end", format_bytes(bytes.peak), at_text(bytes.peak_at_ns), end);
}

std::string fact(const char* label, const std::string& value) {
  return fmt::format("  {:<15} {}\n", label, value);
}

std::string fact(const char* label, const std::string& value, const Terminal& terminal) {
  return fact(
      label, [&](std::size_t width) { return fit(value, width); }, terminal);
}

std::string fact(const char* label, const FittedText& value, const Terminal& terminal) {
  constexpr std::size_t kBefore = 18;  // of the label and the space around it
  constexpr std::size_t kNarrowest = 24;
  if (terminal.width == 0) return fact(label, value(0));
  return fact(label, value(std::max(kNarrowest, terminal.width - std::min(terminal.width, kBefore))));
}

std::string share_cell(double share, const Terminal& terminal) {
  constexpr std::size_t kCells = 8;
  constexpr std::size_t kWideEnough = 100;  // columns of the terminal
  constexpr const char* kEighths[] = {"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};
  if (!terminal.colour || (terminal.width != 0 && terminal.width < kWideEnough)) return share_text(share);
  const auto eighths = static_cast<std::size_t>(std::lround(std::clamp(share, 0.0, 1.0) * kCells * 8));
  std::string bar;
  for (std::size_t cell = 0; cell < eighths / 8; ++cell) bar += "█";
  bar += kEighths[eighths % 8];
  const std::size_t cells = eighths / 8 + (eighths % 8 != 0 ? 1 : 0);
  return fmt::format("{}{} {:>6}", bar, std::string(kCells - cells, ' '), share_text(share));
}

std::string quality_text(const DataQuality& quality, const Terminal& terminal) {
  std::string text = paint(terminal, Tone::heading, fmt::format("Data quality: {}", quality_verdict(quality))) + "\n";
  for (const QualityIssue& issue : quality.issues) {
    const Severity severity = facts_of(issue.id).severity;
    const std::string label = fmt::format("{:<8}", name_of(severity));
    text += fmt::format("  {} {}\n", paint(terminal, tone_of(severity), label), printable(quality_text(issue)));
  }
  return text;
}

std::string short_quality_text(const DataQuality& quality, const Terminal& terminal) {
  constexpr std::size_t kMax = 3;
  DataQuality wrong = quality;
  std::erase_if(wrong.issues, [](const QualityIssue& issue) { return facts_of(issue.id).severity == Severity::info; });
  if (quality.complete && wrong.issues.empty()) return {};
  const std::size_t more = wrong.issues.size() - std::min(wrong.issues.size(), kMax);
  wrong.issues.resize(wrong.issues.size() - more);
  return quality_text(wrong, terminal) +
         (more == 0 ? "" : fmt::format("  ({} more; --all lists them)\n", format_count(more)));
}

std::string quality_hint(const RecordingInfo& recording, const Terminal& terminal) {
  if (recording.quality.complete) return {};
  if (is_still_recorded(recording.quality)) return "Still recording: later events are not included.\n";
  const std::string command = "tidemark summary --all " + shell_word(recording.path);
  return paint(terminal, Tone::warning, fmt::format("Events are missing: `{}` says which and why.", command)) + "\n";
}

std::string next_text(const RecordingInfo& recording, const std::string& command, const std::string& purpose,
                      const Terminal& terminal) {
  return next_command(fmt::format("tidemark {} {}", command, shell_word(recording.path)), purpose, terminal);
}

std::string next_command(const std::string& command, const std::string& purpose, const Terminal& terminal) {
  return fmt::format("{} {}  {}\n", paint(terminal, Tone::heading, "Next:"), command,
                     paint(terminal, Tone::quiet, "# " + purpose));
}

std::string join_devices(const std::vector<std::string>& texts) {
  const auto is_line = [](const std::string& text) { return text.find('\n') + 1 == text.size(); };
  std::string joined;
  for (std::size_t index = 0; index < texts.size(); ++index) {
    if (index != 0 && !(is_line(texts[index - 1]) && is_line(texts[index]))) joined += "\n";
    joined += texts[index];
  }
  return joined;
}

std::vector<Fact> host_facts(const HostUsage& host) {
  std::vector<Fact> facts;
  if (host.rss) facts.push_back({"peak RSS", peak_and_end(*host.rss)});
  if (host.pss) facts.push_back({"peak PSS", peak_and_end(*host.pss)});
  const auto add = [&](const char* label, const std::optional<SampledBytes>& bytes) {
    if (bytes && bytes->peak != 0) facts.push_back({label, peak_and_end(*bytes)});
  };
  add("peak anonymous", host.anon);
  add("peak shared", host.shmem);
  add("peak of files", host.file);
  add("peak in swap", host.swap);
  add("peak locked", host.locked);
  add("peak pinned", host.pinned);
  if (host.most_job_processes.value_or(0) > 1) {
    facts.push_back({"job processes", "at most " + format_count(*host.most_job_processes)});
    if (host.job_rss) facts.push_back({"job peak RSS", peak_and_end(*host.job_rss)});
    add("job peak anon.", host.job_anon);
    add("job peak shared", host.job_shmem);
    if (host.job_pss) facts.push_back({"job peak PSS", peak_and_end(*host.job_pss)});
  }
  if (host.lowest_available_bytes) {
    facts.push_back({"min. available", fmt::format("{} on the machine {}", format_bytes(*host.lowest_available_bytes),
                                                   at_text(host.lowest_available_at_ns))});
  }
  // Without a limit it is the whole machine's.
  if (host.cgroup_usage && (host.cgroup_limit_bytes || host.cgroup_oom_kills != 0)) {
    facts.push_back({"control group", cgroup_text(host)});
  }
  return facts;
}

}  // namespace tidemark
