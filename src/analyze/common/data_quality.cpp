#include "analyze/common/data_quality.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "base/units.h"

namespace tidemark {
namespace {

// Whether a loss means that events are missing (and not only their stacks or names).
bool loses_events(Loss::Kind kind) {
  switch (kind) {
    case Loss::Kind::python_unsupported:
    case Loss::Kind::native_unsupported:
    case Loss::Kind::stack_truncated:
    case Loss::Kind::device_lost:
    case Loss::Kind::driver_off:
    case Loss::Kind::driver_frees:
      return false;
    default:
      return true;
  }
}

std::string describe(const Loss& loss) {
  const std::string count = format_count(loss.count);
  switch (loss.kind) {
    case Loss::Kind::ring_full:
      return fmt::format("{} events were dropped because they came faster than they could be written", count);
    case Loss::Kind::reentrant:
      return fmt::format("{} events inside signal handlers were not recorded", count);
    case Loss::Kind::thread_limit:
      return fmt::format("{} events of threads beyond the limit were not recorded", count);
    case Loss::Kind::disk:
      return "the recording could not be written to the end";
    case Loss::Kind::size_limit:
      return "the recording stopped at the size set by --max-size";
    case Loss::Kind::python_unsupported:
      return "there are no Python stacks: this Python is not supported";
    case Loss::Kind::native_unsupported:
      return "there are no native stacks";
    case Loss::Kind::stack_truncated:
      return fmt::format("{} stacks were deeper than the limit and lack their outermost frames", count);
    case Loss::Kind::recorder_gone:
      return "the recorder ended before the program: later events are missing";
    case Loss::Kind::unknown_record:
      return fmt::format("{} records are of a kind that this version of tidemark does not know", count);
    case Loss::Kind::torn_tail:
      return fmt::format("the last {} of the file are damaged or incomplete and were left out",
                         format_bytes(loss.count));
    case Loss::Kind::protocol:
      return fmt::format("{} records from the program could not be understood", count);
    case Loss::Kind::device_lost:
      return "a device stopped answering: what the driver said of it ends there";
    case Loss::Kind::driver_off:
      return "what libraries take from the CUDA driver is missing, in part or whole";
    case Loss::Kind::driver_frees:
      return fmt::format("{} calls gave back memory of the CUDA driver that was not seen being taken", count);
  }
  return fmt::format("{} losses of an unknown kind", count);
}

void add_losses(const Overview& overview, DataQuality& quality) {
  for (const Loss& loss : overview.definitions.losses) {
    std::string text = describe(loss);
    if (!loss.text.empty()) text += fmt::format(" ({})", loss.text);
    quality.notes.push_back({name(loss.kind), severity(loss.kind), loss.count, std::move(text)});
    if (loses_events(loss.kind)) quality.complete = false;
  }
}

void add_source(const Overview& overview, DataQuality& quality) {
  for (const SourceNote& note : overview.source.notes) {
    quality.notes.push_back({note.kind, note.severity, note.count, note.text});
    if (note.incomplete) quality.complete = false;
  }
}

void add_ending(const Overview& overview, DataQuality& quality) {
  const auto& end = overview.definitions.end;
  if (!end) {
    quality.complete = false;
    quality.notes.push_back({"recorder_killed", "error", std::nullopt,
                             "the recorder was killed or is still running: what came after the last event is missing"});
  } else if (!end->process_exited) {
    quality.complete = false;
    quality.notes.push_back(
        {"stopped_early", "info", std::nullopt, "the recording was stopped before the program ended"});
  }
  if (overview.pause_count != 0) {
    quality.complete = false;
    quality.notes.push_back(
        {"paused", "info", overview.pause_count,
         fmt::format("the program paused the recording {} {}, {} in all", overview.pause_count,
                     overview.pause_count == 1 ? "time" : "times", format_duration_ns(overview.paused_ns))});
  }
}

void add_devices(const Overview& overview, DataQuality& quality) {
  for (const DeviceSummary& device : overview.devices) {
    const std::string where = to_string(device.device);
    if (device.unmatched_free_count != 0) {
      quality.notes.push_back({"unmatched_frees", "info", device.unmatched_free_count,
                               fmt::format("frees on {} of blocks whose allocation was not recorded: {}", where,
                                           format_count(device.unmatched_free_count))});
    }
    const auto baseline = static_cast<std::int64_t>(device.baseline_bytes.value_or(0));
    if (baseline > 0) {
      quality.notes.push_back({"baseline", "info", device.baseline_bytes,
                               fmt::format("{} on {} had been allocated before the first recorded event",
                                           format_bytes(*device.baseline_bytes), where)});
    }
  }
}

void add_symbols(const Symbols& symbols, DataQuality& quality) {
  for (const MissingSymbols& missing : symbols.missing()) {
    quality.notes.push_back(
        {"missing_symbols", "info", missing.locations,
         fmt::format("{} native {} of {} without a name: the file {}", format_count(missing.locations),
                     missing.locations == 1 ? "frame" : "frames", missing.path, missing.reason)});
  }
}

int badness(std::string_view severity) {
  if (severity == "error") return 0;
  return severity == "warning" ? 1 : 2;
}

}  // namespace

DataQuality analyze_data_quality(const Overview& overview, const Symbols& symbols) {
  DataQuality quality;
  add_losses(overview, quality);
  add_source(overview, quality);
  if (overview.source.kind == SourceKind::recording) add_ending(overview, quality);
  add_devices(overview, quality);
  add_symbols(symbols, quality);
  std::stable_sort(quality.notes.begin(), quality.notes.end(), [](const QualityNote& left, const QualityNote& right) {
    return badness(left.severity) < badness(right.severity);
  });
  return quality;
}

}  // namespace tidemark
