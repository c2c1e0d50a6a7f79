#include "report/common/text.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/units.h"
#include "query/words/printable.h"
#include "query/words/recording_text.h"
#include "query/words/risks.h"
#include "report/common/columns.h"
#include "report/common/csv.h"
#include "report/common/text_parts.h"

namespace tidemark {
namespace {

constexpr std::size_t kMaxListed = 10;

// A file of unknown origin may contain any times.
std::string time_text(std::int64_t time_ms) {
  constexpr std::int64_t kMaxTimeMs = 253'402'300'799'000;  // the year 9999
  if (time_ms <= 0 || time_ms > kMaxTimeMs) return "n/a";
  return wall_clock_text(static_cast<std::uint64_t>(time_ms) * 1'000'000);
}

std::string title(const HistoryDevice& device) {
  if (device.id == "host") return "host memory";
  return fmt::format("GPU {}{}{} ({})", device.key, device.name.empty() ? "" : ": ", device.name, device.id);
}

std::string processes_text(const HistoryDevice& device, const Terminal& terminal) {
  if (device.processes.empty()) return "";
  Columns columns({"peak", "at", "first seen", "last seen", "pid", "process"});
  const std::size_t rows = std::min(device.processes.size(), kMaxListed);
  for (std::size_t index = 0; index < rows; ++index) {
    const HistoryProcess& process = device.processes[index];
    columns.add({format_bytes(process.peak_bytes), time_text(process.peak_ms), time_text(process.first_ms),
                 time_text(process.last_ms), std::to_string(process.pid),
                 process.name.empty() ? "n/a" : shown(process.name)});
  }
  std::string text = columns.text(terminal, 4);
  const std::uint64_t more = device.processes.size() - rows + device.more_processes;
  if (more > 0) text += fmt::format("    … {} more\n", format_count(more));
  return text;
}

std::string device_text(const HistoryDevice& device, const Terminal& terminal) {
  const std::string limit = device.limit_bytes ? " of " + format_bytes(*device.limit_bytes) : "";
  std::string text = "\n" + paint(terminal, Tone::heading, shown(title(device), terminal.width)) + "\n";
  text += fact("seen", fmt::format("{} to {}, {}", time_text(device.first_ms), time_text(device.last_ms),
                                   samples_text(device.samples)));
  text += fact("peak", fmt::format("{}{}, {}", format_bytes(device.peak_bytes), limit, time_text(device.peak_ms)));
  text += fact("mean", format_bytes(device.mean_bytes));
  text += fact("latest", format_bytes(device.last_bytes));
  return text + processes_text(device, terminal);
}

std::string risks_text(const History& history, const Terminal& terminal) {
  if (history.risks.empty()) return "\nNo change of a risk.\n";
  std::string text = "\n" + paint(terminal, Tone::heading, "Changes of risk") + "\n";
  Columns columns({"time", "device", "risk"});
  const std::size_t rows = std::min(history.risks.size(), 2 * kMaxListed);
  for (auto risk = history.risks.end() - static_cast<std::ptrdiff_t>(rows); risk != history.risks.end(); ++risk) {
    columns.add(
        {time_text(risk->time_ms), shown(risk->key), fmt::format("{} → {}", shown(risk->before), shown(risk->level))});
  }
  text += columns.text(terminal, 4);
  const std::uint64_t earlier = history.risks.size() - rows + history.earlier_risks;
  if (earlier > 0) text += fmt::format("    {} earlier ones\n", format_count(earlier));
  return text;
}

}  // namespace

std::string to_text(const History& history, const Terminal& terminal) {
  const std::string since = history.since_ms ? "since " + time_text(*history.since_ms) : "all that is kept";
  std::string text = fmt::format("{}: {}\n", printable(history.path), since);
  if (history.devices.empty()) text += "Nothing was seen in this time.\n";
  for (const HistoryDevice& device : history.devices) text += device_text(device, terminal);
  return text + risks_text(history, terminal);
}

std::string to_csv(const History& history) {
  std::string text = "time,time_ms,device,id,span_ms,high_bytes,mean_bytes\n";
  for (const HistoryDevice& device : history.devices) {
    const std::string fields = fmt::format("{},{}", csv_field(device.key), csv_field(device.id));
    for (const HistoryPoint& point : device.points) {
      text += fmt::format("{},{},{},{},{},{}\n", time_text(point.time_ms), point.time_ms, fields, point.span_ms,
                          point.high_bytes, point.mean_bytes);
    }
  }
  return text;
}

}  // namespace tidemark
