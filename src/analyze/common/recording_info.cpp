#include "analyze/common/recording_info.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <string_view>
#include <tuple>
#include <utility>

namespace tidemark {
namespace {

using Issues = std::vector<QualityIssue>;

QualityIssue issue_of(const Loss& loss) {
  QualityIssue issue{loss.kind, loss.count};
  if (loss.limit && loss.kind == QualityId::size_limit) {
    issue.params.push_back({"limit_bytes", QualityBytes{*loss.limit}});
  } else if (loss.limit) {
    issue.params.push_back({"limit", *loss.limit});
  }
  if (!loss.text.empty()) issue.params.push_back({"detail", loss.text});
  return issue;
}

void add_ending(const Overview& overview, Issues& issues) {
  const auto& end = overview.definitions.end;
  if (!end && overview.source.growing) {
    issues.push_back({QualityId::in_progress, {}});
  } else if (!end) {
    issues.push_back({QualityId::recorder_killed, {}});
  } else if (!end->process_exited) {
    issues.push_back({QualityId::stopped_early, {}});
  }
  if (overview.window_began_ns) {
    issues.push_back({QualityId::window, {}, {{"began_ns", QualityDuration{*overview.window_began_ns}}}});
  }
  if (!overview.pauses.empty()) {
    std::uint64_t paused_ns = 0;
    for (const Pause& pause : overview.pauses) paused_ns += pause.end_ns - pause.begin_ns;
    issues.push_back({QualityId::paused, overview.pauses.size(), {{"duration_ns", QualityDuration{paused_ns}}}});
  }
}

void add_devices(const Overview& overview, Issues& issues) {
  for (const std::size_t index : devices_in_order(overview)) {
    const DeviceSummary& device = overview.devices[index];
    const std::string name = to_string(device.device);
    if (device.unmatched_free_count != 0) {
      issues.push_back({QualityId::unmatched_frees, device.unmatched_free_count, {{"device", name}}});
    }
    const auto baseline = static_cast<std::int64_t>(device.baseline_bytes.value_or(0));
    if (baseline > 0) issues.push_back({QualityId::baseline, device.baseline_bytes, {{"device", name}}});
  }
}

void add_symbols(const Symbols& symbols, Issues& issues) {
  for (const MissingSymbols& missing : symbols.missing()) {
    issues.push_back({QualityId::missing_symbols,
                      missing.locations,
                      {{"file", missing.path}, {"reason", missing.error.value_or("no_symbol")}}});
  }
}

int group_of(Device device) {
  if (is_driver_memory(device)) return 2;
  return device.type == DeviceType::cpu ? 1 : 0;
}

// All that a worker does, it does below this function.
bool has_worker_loop(const Definitions& definitions) {
  return std::any_of(definitions.locations.begin(), definitions.locations.end(), [&](const Location& location) {
    return location.kind == Location::Kind::python && definitions.text(location.function) == "_worker_loop" &&
           definitions.text(location.file).ends_with("/torch/utils/data/_utils/worker.py");
  });
}

}  // namespace

DataQuality analyze_data_quality(const Overview& overview, const Symbols& symbols) {
  DataQuality quality;
  for (const Loss& loss : overview.definitions.losses) quality.issues.push_back(issue_of(loss));
  quality.issues.insert(quality.issues.end(), overview.source.issues.begin(), overview.source.issues.end());
  if (overview.source.kind == SourceKind::recording) add_ending(overview, quality.issues);
  add_devices(overview, quality.issues);
  add_symbols(symbols, quality.issues);
  std::stable_sort(quality.issues.begin(), quality.issues.end(), [](const auto& left, const auto& right) {
    return facts_of(left.id).severity > facts_of(right.id).severity;
  });
  quality.complete = std::none_of(quality.issues.begin(), quality.issues.end(),
                                  [](const QualityIssue& issue) { return facts_of(issue.id).incomplete; });
  return quality;
}

bool listed_before(Device left, Device right) {
  return std::tuple(group_of(left), left.type, left.index) < std::tuple(group_of(right), right.type, right.index);
}

std::vector<std::size_t> devices_in_order(const Overview& overview) {
  std::vector<std::size_t> order(overview.devices.size());
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(), [&](std::size_t left, std::size_t right) {
    return listed_before(overview.devices[left].device, overview.devices[right].device);
  });
  return order;
}

Result<std::vector<std::size_t>> select_devices(const Overview& overview, const std::optional<std::string>& device) {
  std::vector<std::size_t> selected;
  std::string known;
  for (const std::size_t index : devices_in_order(overview)) {
    const Device found = overview.devices[index].device;
    const std::string name = to_string(found);
    if (device ? *device == name : !is_driver_memory(found)) selected.push_back(index);
    known += (known.empty() ? "" : ", ") + name;
  }
  if (device && selected.empty()) {
    return Error{fmt::format("{}: no device '{}' (available: {})", overview.path, *device,
                             known.empty() ? "none: no events recorded" : known)};
  }
  return selected;
}

RecordingInfo describe_recording(const Overview& overview, const Symbols& symbols) {
  const auto& settings = overview.source.allocator_settings;
  RecordingInfo recording;
  recording.path = overview.path;
  recording.source = overview.source.kind;
  if (settings) recording.allocator_settings = settings->text;
  recording.process = overview.definitions.process;
  recording.is_worker = has_worker_loop(overview.definitions);
  recording.event_count = overview.event_count;
  recording.duration_ns = overview.end_ns;
  recording.quality = analyze_data_quality(overview, symbols);
  recording.simulated_gpu = overview.source.simulated_gpu;
  return recording;
}

}  // namespace tidemark
