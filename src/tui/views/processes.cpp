// Processes: who holds memory of the devices, and of the host.
#include <algorithm>
#include <tuple>

#include "query/words/monitors.h"
#include "tui/process_rows.h"
#include "tui/table.h"
#include "tui/view.h"
#include "tui/views/parts.h"

namespace tidemark::tui {
namespace {

std::string kind_text(ProcessKind kind) {
  if (kind == ProcessKind::other_namespace) return "container";
  return std::string(name_of(kind));
}

// Whether a process of the job has its own recording is known once recordings are followed.
ProcessKind kind_of(const Content& content, const WatchedProcess& process) {
  const bool recorded = std::any_of(content.recorded.begin(), content.recorded.end(),
                                    [&](const ProcessResults& results) { return results.pid == process.pid; });
  return recorded && process.kind == ProcessKind::job ? ProcessKind::recorded : process.kind;
}

// `wide`: there is room for peaks.
ListRow row_of_process(const Content& content, const ProcessRow& row, bool wide) {
  const MachineState& machine = content.machine;
  const WatchedProcess& process = *row.process;
  const ProcessKind kind = kind_of(content, process);
  const bool named = process.kind != ProcessKind::ended && process.kind != ProcessKind::other_namespace;
  ListRow cells = {{row.device == nullptr ? "-" : short_title(machine.devices[row.device->device])},
                   {std::to_string(process.pid)},
                   {kind_text(kind), kind == ProcessKind::recorded ? Role::key : Role::quiet},
                   {row.device == nullptr ? "-" : size_text(row.device->bytes)}};
  if (wide) {
    const bool known = row.device != nullptr && !row.device->used.empty();
    cells.push_back({known ? size_text(row.device->used.peak_bytes()) : "-", Role::quiet});
  }
  cells.push_back({size_text(process.rss_bytes)});
  cells.push_back(
      {named ? process_words(process, !wide) : "(not visible from here)", named ? Role::plain : Role::quiet});
  return cells;
}

std::size_t process_row_count(const Content& content, const ViewState& state) {
  return process_rows(content.machine, static_cast<ProcessOrder>(state.order)).size();
}

void draw_processes(const Region& region, const Content& content, const ViewState& state) {
  if (!draw_waiting(region, content.machine)) return;
  const auto order = static_cast<ProcessOrder>(state.order);
  const std::vector<ProcessRow> listed = process_rows(content.machine, order);
  const bool wide = region.width() >= kWide;
  std::vector<ListColumn> columns = {
      {.heading = "DEVICE", .width = 8, .left = true, .sorted = order == ProcessOrder::device},
      {.heading = "PID", .width = 8, .sorted = order == ProcessOrder::pid},
      {.heading = "KIND", .width = 9, .left = true},
      {.heading = "GPU MEM", .width = 10, .sorted = order == ProcessOrder::device_bytes},
      {.heading = "RSS", .width = 10, .sorted = order == ProcessOrder::rss},
      {.heading = "PROCESS", .left = true, .sorted = order == ProcessOrder::name}};
  if (wide) columns.insert(columns.begin() + 4, {.heading = "PEAK", .width = 10});
  std::vector<ListRow> rows;
  rows.reserve(listed.size());
  for (const ProcessRow& row : listed) rows.push_back(row_of_process(content, row, wide));
  draw_table(region, columns, rows, row_of(state.selected, rows.size()));
  if (rows.empty()) region.print(0, 2, "No process uses the devices.", Role::quiet);
}

}  // namespace

View processes_view() {
  return {.name = "processes",
          .title = "Processes",
          .keys = "s sort  r record",
          .orders = kProcessOrders,
          .rows = process_row_count,
          .draw = draw_processes};
}

}  // namespace tidemark::tui
