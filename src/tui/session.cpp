#include "tui/session.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "base/output_file.h"
#include "monitor/watch_reports.h"
#include "query/results/machine_results.h"
#include "query/words/printable.h"
#include "tui/flight_recorder.h"

namespace tidemark::tui {
namespace {

constexpr std::size_t kMaxMarks = 1000;

// Recordings are shown for their last minute.
EngineOptions engine_options(EngineOptions options) {
  options.window = RecordedResults::kWindow;
  options.endless = true;
  return options;
}

std::string expanded(const std::string& path) {
  const char* home = std::getenv("HOME");
  return path.starts_with("~/") && home != nullptr ? home + path.substr(1) : path;
}

}  // namespace

Session::Session(const ProgramOptions& options)
    : options_(options),
      monitor_(engine_options(options.engine)),
      now_(std::make_shared<const MonitorSnapshot>()),
      recorded_results_(monitor_) {}

void Session::start() {
  monitor_.start();
  static_cast<void>(monitor_.snapshot());  // available from the first turn on
}

std::optional<Error> Session::wrong_choice() const {
  return missing_device(now_->state, "--devices");
}

bool Session::update() {
  bool changed = false;
  if (auto latest = monitor_.snapshot()) {
    changed = latest->state.latest_reading_ns != now_->state.latest_reading_ns ||
              latest->state.devices_known != now_->state.devices_known;
    now_ = std::move(latest);
    hand_on();
  }
  if (held_) return false;
  cuda_pinned_bytes_ = cuda_pinned_bytes(now_->recorded);
  if (auto recorded = recorded_results_.take()) {
    recorded_ = std::move(*recorded);
    recordings_came_ = changed = true;
  }
  return changed;
}

void Session::hand_on() {
  const auto changes = monitor_.take_changes();
  if (!options_.on_update || !changes) return;
  options_.on_update(now_->state, *changes, [this] { return now_->recorded; });
}

void Session::set_recordings_enabled(bool enabled) {
  if (enabled) recorded_results_.start();
  recorded_results_.set_enabled(enabled);
}

bool Session::has_recordings() const {
  return recordings_came_ && std::none_of(recorded_.begin(), recorded_.end(),
                                          [](const ProcessResults& process) { return process.reading; });
}

Content Session::content() const {
  return {.machine = held_ ? held_->state : now_->state,
          .recorded = recorded_,
          .marks = marks_,
          .cuda_pinned_bytes = cuda_pinned_bytes_,
          .interval_ns = static_cast<std::uint64_t>(options_.engine.machine.interval.count())};
}

void Session::hold(bool held) {
  held_ = held ? now_ : nullptr;
}

Message Session::mark(const std::string& name) {
  if (marks_.size() == kMaxMarks) return {fmt::format("n/a: there are {} marks already", kMaxMarks), true};
  marks_.push_back(
      {.time_ns = now_->state.now_ns, .name = name.empty() ? std::to_string(marks_.size() + 1) : printable(name)});
  return {fmt::format("Marked this moment: {}", marks_.back().name)};
}

Result<std::string> Session::report() {
  auto report = monitor_.profile();
  if (!report) return report.error();
  update();
  report->end = WatchEnd::duration;  // so far
  report->recorded.clear();
  report->has_risks = true;
  report->marks = marks_;
  return to_json(*report);
}

Message Session::save(const std::string& path) {
  const auto text = report();
  const auto written = text ? write_file(expanded(path), *text) : Result<void>(text.error());
  return written ? Message{"Saved: " + printable(path)} : Message{printable(written.error().message), true};
}

Message Session::record(std::optional<std::int64_t> pid) {
  if (!pid) return {"n/a: select a process in the view of processes first", true};
  const auto recorder = ask_flight_recorder(*pid);
  if (!recorder) return {recorder.error().message, true};
  return {fmt::format("Asked process {} (tidemark run) to write what it keeps", *recorder)};
}

}  // namespace tidemark::tui
