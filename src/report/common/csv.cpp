#include "report/common/csv.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <variant>

#include "query/words/frame_text.h"
#include "query/words/printable.h"
#include "query/words/stack_text.h"

namespace tidemark {
namespace {

template <typename Number>
std::string number(const std::optional<Number>& value) {
  return value ? std::to_string(*value) : "";
}

std::string key_fields(const NamedStack& stack) {
  return stack_fields(stack);
}
std::string key_fields(const BlockSize& size) {
  return std::to_string(size.bytes);
}
std::string key_fields(const ThreadInfo& thread) {
  return fmt::format("{},{}", number(thread.tid), csv_field(thread.name));
}
std::string key_fields(const StreamHandle& stream) {
  return std::to_string(stream.handle);
}
std::string key_fields(const PoolId& pool) {
  return fmt::format("{}:{}", pool.first, pool.second);
}
std::string key_fields(const BlockAnnotation& annotation) {
  return csv_field(annotation.name.value_or(""));
}
std::string key_fields(const BlockOwner& owner) {
  return csv_field(owner.name.value_or(""));
}
std::string key_fields(const DeviceAt&) {
  return {};
}  // has the device and at_ns columns

std::string key_columns(GroupBy by) {
  switch (by) {
    case GroupBy::stack:
      return "stack,frames,";
    case GroupBy::size:
      return "block_bytes,";
    case GroupBy::thread:
      return "tid,thread_name,";
    case GroupBy::device:
      return "";
    default:
      return std::string(name_of(by)) + ",";
  }
}

}  // namespace

std::string recording_fields(const RecordingInfo& recording) {
  return fmt::format("{},{}", csv_field(recording.path), number(recording.process.rank));
}

std::string stack_fields(const NamedStack& stack) {
  std::string frames;
  for (const FrameName& frame : stack.frames) {
    if (!frames.empty()) frames += ';';
    frames += frame_text(frame);
  }
  return csv_field(stack_text(stack)) + "," + csv_field(frames);
}

std::string to_csv(std::span<const Table> tables) {
  const GroupBy by = tables.empty() ? GroupBy::stack : tables.front().by;
  std::string text = fmt::format("file,rank,device,at_ns,{}bytes,block_count,share\n", key_columns(by));
  for (const Table& table : tables) {
    const std::string recording = recording_fields(table.recording);
    for (const TableSection& section : table.sections) {
      for (const TableRow& row : section.rows) {
        const auto* own = std::get_if<DeviceAt>(&row.key);
        const DeviceAt device = own != nullptr ? *own : section.device.value_or(DeviceAt{});
        const std::string key = std::visit([](const auto& value) { return key_fields(value); }, row.key);
        text += fmt::format("{},{},{},{}{}{},{},{:.6f}\n", recording, to_string(device.device), number(device.at_ns),
                            key, own != nullptr ? "" : ",", row.bytes, row.blocks, row.share);
      }
    }
  }
  return text;
}

std::string to_csv(std::span<const Temporary> results) {
  const std::optional<OwnerKind> by = results.empty() ? std::nullopt : results.front().by;
  std::string text = fmt::format("file,rank,device,{},allocation_count,bytes,largest_bytes,share\n",
                                 by ? name_in(kOwnerKindNames, *by) : std::string_view("stack,frames"));
  for (const Temporary& temporary : results) {
    const std::string recording = recording_fields(temporary.recording);
    for (const TemporaryDevice& device : temporary.devices) {
      for (const TemporaryRow& row : device.rows) {
        text += fmt::format("{},{},{},{},{},{},{}\n", recording, to_string(device.totals.device),
                            row.owner ? key_fields(*row.owner) : key_fields(row.stack), row.count, row.bytes,
                            row.largest_bytes, row.share ? fmt::format("{:.6f}", *row.share) : "");
      }
    }
  }
  return text;
}

namespace {

// One split of each series: all have the same.
std::string splits_csv(std::span<const Timeline> timelines, std::optional<OwnerKind> by) {
  std::string text = fmt::format("file,rank,device,time_ns,{},held_bytes\n",
                                 by ? name_in(kOwnerKindNames, *by) : std::string_view("stack,frames"));
  for (const Timeline& timeline : timelines) {
    for (const TimelineSeries& series : timeline.series) {
      const std::string begin = fmt::format("{},{}", recording_fields(timeline.recording), to_string(series.device));
      const auto add = [&](const std::string& site, const std::vector<std::uint64_t>& bytes) {
        for (std::size_t index = 0; index < bytes.size(); ++index) {
          text += fmt::format("{},{},{},{}\n", begin, series.points[index].time_ns, site, bytes[index]);
        }
      };
      for (const TimelineLayers& split : series.splits) {
        for (const TimelineLayers::Layer& layer : split.layers) {
          add(by ? key_fields(layer.owner) : stack_fields(layer.stack), layer.bytes);
        }
        add(by ? "(others)" : "(other call sites),", split.other);
        add(by ? "(not recorded)" : "(not recorded),", split.unrecorded);
      }
    }
  }
  return text;
}

}  // namespace

std::string to_csv(std::span<const Timeline> timelines) {
  for (const Timeline& timeline : timelines) {
    if (timeline.series.empty() || timeline.series.front().splits.empty()) continue;
    return splits_csv(timelines, timeline.series.front().splits.front().by);
  }
  std::string text = "file,rank,device,time_ns,allocated_bytes,reserved_bytes,active_bytes,driver_bytes\n";
  for (const Timeline& timeline : timelines) {
    const std::string recording = recording_fields(timeline.recording);
    for (const TimelineSeries& series : timeline.series) {
      for (const TimelinePoint& point : series.points) {
        text += fmt::format("{},{},{},{},{},{},{}\n", recording, to_string(series.device), point.time_ns,
                            point.allocated_bytes, number(point.reserved_bytes), number(point.active_bytes),
                            number(point.driver_bytes));
      }
    }
  }
  return text;
}

std::string csv_field(const std::string& raw) {
  std::string text = printable(raw);
  // Spreadsheets take such a cell for a formula (OWASP, CSV injection). A tab or CR at the start was escaped above.
  if (text.find_first_of("=+-@") == 0) text.insert(text.begin(), '\'');
  if (text.find_first_of(",\"\n") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char letter : text) {
    if (letter == '"') quoted += '"';
    quoted += letter;
  }
  return quoted + "\"";
}

std::string number_field(const std::optional<std::uint64_t>& number) {
  return number ? fmt::format(",{}", *number) : ",";
}

std::string yes_field(const std::optional<bool>& value) {
  return value ? *value ? ",true" : ",false" : ",";
}

}  // namespace tidemark
