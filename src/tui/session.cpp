#include "tui/session.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/output_file.h"
#include "monitor/watch_reports.h"
#include "query/words/printable.h"
#include "report/monitor/json.h"
#include "report/monitor/missing_device.h"
#include "tui/flight_recorder.h"

namespace tidemark::tui {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t kMaxMarks = 1000;

std::string expanded(const std::string& path) {
  const char* home = std::getenv("HOME");
  return path.starts_with("~/") && home != nullptr ? home + path.substr(1) : path;
}

}  // namespace

Session::Session(const ProgramOptions& options)
    : options_(options),
      monitor_(options.monitor),
      recorded_results_(options.monitor.interval, options.monitor.choice.pid.has_value()) {}

void Session::start() {
  monitor_.start();
  if (options_.follow) recorded_results_.start();
}

std::optional<Error> Session::wrong_choice() const {
  auto missing = missing_device_text(monitor_.state());
  return missing ? std::optional(Error{*std::move(missing)}) : std::nullopt;
}

bool Session::update() {
  bool changed = monitor_.update();
  monitor_.add_peaks(recorded_results_.take_peaks());
  recorded_results_.tell(monitor_.state());
  hand_on();
  if (held_) return false;
  cuda_pinned_bytes_ = cuda_pinned_bytes(recorded_results_.processes());
  if (auto recorded = recorded_results_.take()) {
    recorded_ = std::move(*recorded);
    recordings_came_ = changed = true;
  }
  return changed;
}

void Session::hand_on() {
  if (options_.on_update) options_.on_update(monitor_, [this] { return recorded_results_.processes(); });
}

void Session::look_at_recordings(bool wanted) {
  if (wanted) recorded_results_.start();
  recorded_results_.want(wanted);
  recorded_results_.tell(monitor_.state());
}

bool Session::has_recordings() const {
  return recordings_came_ && std::none_of(recorded_.begin(), recorded_.end(),
                                          [](const ProcessResults& process) { return process.reading; });
}

Content Session::content() const {
  return {.machine = held_ ? *held_ : monitor_.state(),
          .recorded = recorded_,
          .marks = marks_,
          .cuda_pinned_bytes = cuda_pinned_bytes_,
          .interval_ns = static_cast<std::uint64_t>(options_.monitor.interval.count())};
}

void Session::hold(bool held) {
  if (held) {
    held_ = monitor_.state();
  } else {
    held_.reset();
  }
}

Message Session::mark(const std::string& name) {
  if (marks_.size() == kMaxMarks) return {fmt::format("n/a: there are {} marks already", kMaxMarks), true};
  marks_.push_back(
      {.time_ns = monitor_.state().now_ns, .name = name.empty() ? std::to_string(marks_.size() + 1) : printable(name)});
  return {fmt::format("Marked this moment: {}", marks_.back().name)};
}

std::string Session::report() {
  monitor_.assess();
  hand_on();
  WatchRun run{.state = monitor_.state(),
               .interval_seconds = std::chrono::duration<double>(options_.monitor.interval).count(),
               .pid = options_.monitor.choice.pid,
               .end = WatchEnd::duration,
               .recorded = {}};
  Json report = Json::parse(to_json(ProfileReport{run}));
  OomReport risks;
  static_cast<WatchRun&>(risks) = std::move(run);
  risks.threshold_percent = options_.monitor.forecast.threshold_percent;
  const Json assessed = Json::parse(to_json(risks));
  for (const auto& [key, device] : assessed["devices"].items()) {
    report["devices"][key]["risk_assessment"] = device["risk_assessment"];
  }
  report["command"] = "interactive";
  report["ended_by"] = nullptr;
  report["marks"] = Json::array();
  for (const Mark& mark : marks_) {
    report["marks"].push_back({{"seconds", static_cast<double>(mark.time_ns) / 1e9}, {"name", mark.name}});
  }
  return report.dump(2) + "\n";
}

Message Session::save(const std::string& path) {
  const auto written = write_file(expanded(path), report());
  return written ? Message{"Saved: " + printable(path)} : Message{printable(written.error().message), true};
}

Message Session::record(std::optional<std::int64_t> pid) {
  if (!pid) return {"n/a: select a process in the view of processes first", true};
  const auto recorder = ask_flight_recorder(*pid);
  if (!recorder) return {recorder.error().message, true};
  return {fmt::format("Asked process {} (tidemark run) to write what it keeps", *recorder)};
}

}  // namespace tidemark::tui
