#include "tui/process_rows.h"

#include <algorithm>
#include <cstdint>
#include <tuple>

namespace tidemark::tui {
namespace {

// Unknown values come last.
std::uint64_t device_bytes(const ProcessRow& row) {
  return row.device == nullptr ? 0 : row.device->bytes.value_or(0);
}

bool comes_before(const ProcessRow& a, const ProcessRow& b, ProcessOrder order) {
  if (order == ProcessOrder::device) {
    if ((a.device == nullptr) != (b.device == nullptr)) return b.device == nullptr;
    if (a.device != nullptr && a.device->device != b.device->device) return a.device->device < b.device->device;
  }
  if (order == ProcessOrder::rss && a.process->rss_bytes != b.process->rss_bytes) {
    return a.process->rss_bytes > b.process->rss_bytes;  // nullopt is the lowest
  }
  if (order == ProcessOrder::name && a.process->name != b.process->name) return a.process->name < b.process->name;
  if (order != ProcessOrder::pid && device_bytes(a) != device_bytes(b)) return device_bytes(a) > device_bytes(b);
  return a.process->pid < b.process->pid;
}

}  // namespace

std::vector<ProcessRow> process_rows(const MachineState& machine, ProcessOrder order) {
  std::vector<ProcessRow> rows;
  for (const WatchedProcess& process : machine.processes) {
    if (process.ended) continue;
    const std::size_t before = rows.size();
    for (const ProcessOnDevice& device : process.devices) {
      if (device.held) rows.push_back({&process, &device});
    }
    if (rows.size() == before) rows.push_back({&process, nullptr});
  }
  std::stable_sort(rows.begin(), rows.end(),
                   [&](const ProcessRow& a, const ProcessRow& b) { return comes_before(a, b, order); });
  return rows;
}

}  // namespace tidemark::tui
