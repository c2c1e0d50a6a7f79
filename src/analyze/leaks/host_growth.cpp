#include "analyze/leaks/host_growth.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <optional>
#include <span>
#include <vector>

#include "analyze/forecast/peak_growth.h"

namespace tidemark {
namespace {

constexpr std::uint64_t kLeastBytes = std::uint64_t{32} << 20;
constexpr std::uint64_t kLeastShare = 20;  // 1 / 20 of the memory at the start
constexpr std::size_t kHostCells = 32;

struct HostReading {
  std::uint64_t time_ns = 0;
  std::uint64_t bytes = 0;
};

/// The maximum in each of this many cells of equal length; cells without values are interpolated: PSS takes long to
/// read, and comes at irregular times.
std::vector<double> highest_in_cells(const std::vector<HostReading>& readings) {
  std::vector<double> cells;
  const std::uint64_t begin = readings.front().time_ns;
  const double cell_ns = static_cast<double>(readings.back().time_ns - begin) / kHostCells;
  auto next = readings.begin();
  for (std::size_t cell = 0; cell < kHostCells; ++cell) {
    const double middle = static_cast<double>(begin) + cell_ns * (static_cast<double>(cell) + 0.5);
    const double end = middle + cell_ns / 2;
    double highest = 0;
    const auto first = next;
    for (; next != readings.end() && static_cast<double>(next->time_ns) < end; ++next) {
      highest = std::max(highest, static_cast<double>(next->bytes));
    }
    if (next == first) {
      const HostReading& before = *std::prev(next);
      const double share =
          (middle - static_cast<double>(before.time_ns)) / static_cast<double>(next->time_ns - before.time_ns);
      highest = std::lerp(static_cast<double>(before.bytes), static_cast<double>(next->bytes), share);
    }
    cells.push_back(highest);
  }
  return cells;
}

std::optional<HostGrowth> growth_of(const std::vector<HostReading>& readings) {
  if (readings.size() < kFewestGrownCells || readings.front().time_ns == readings.back().time_ns) return std::nullopt;
  const auto growth = find_cell_growth(highest_in_cells(readings), 0);
  if (!growth || growth->jumped) return std::nullopt;
  HostGrowth found;
  found.from_bytes = readings.front().bytes;
  found.to_bytes = readings.back().bytes;
  found.from_ns = readings.front().time_ns;
  found.to_ns = readings.back().time_ns;
  found.bytes_per_second = growth->per_cell.value * kHostCells * 1e9 / static_cast<double>(found.to_ns - found.from_ns);
  const std::uint64_t least = std::max(kLeastBytes, found.to_bytes / kLeastShare);
  if (found.to_bytes < found.from_bytes + least) return std::nullopt;
  return found;
}

// The least total size of CPU blocks at some readings: what a step allocates and frees is in some of them only.
std::uint64_t steady_tensor_bytes(const Store& store, std::span<const HostReading> readings) {
  std::vector<std::uint64_t> changes;
  for (const HostReading& reading : readings) changes.push_back(store.changes_until(reading.time_ns));
  std::vector<std::uint64_t> bytes(readings.size());
  for (std::size_t block = 0; block < store.blocks.count(); ++block) {
    if (store.devices[store.blocks.device[block]].device.type != DeviceType::cpu) continue;
    for (std::size_t n = 0; n < readings.size(); ++n) {
      if (store.blocks.alive(block, changes[n])) bytes[n] += store.blocks.size[block];
    }
  }
  return *std::min_element(bytes.begin(), bytes.end());
}

}  // namespace

std::vector<HostGrowth> find_host_growth(const Store& store, std::uint64_t from_ns, std::uint64_t to_ns) {
  const HostSeries& host = store.samples.host;
  std::vector<HostReading> own;
  std::vector<HostReading> others;
  for (std::size_t n = 0; n < host.time_ns.size(); ++n) {
    const HostSample sample = host.at(n);
    if (sample.time_ns < from_ns || sample.time_ns > to_ns) continue;
    if (sample.anon_bytes) own.push_back({sample.time_ns, *sample.anon_bytes + sample.swap_bytes.value_or(0)});
    if (sample.job_pss_bytes && sample.pss_bytes) {
      others.push_back({sample.time_ns, *sample.job_pss_bytes - std::min(*sample.job_pss_bytes, *sample.pss_bytes)});
    }
  }
  std::vector<HostGrowth> found;
  if (auto growth = growth_of(own)) {
    constexpr std::size_t kReadings = 4;
    const std::size_t count = std::min(kReadings, own.size());
    const std::uint64_t before = steady_tensor_bytes(store, std::span(own).first(count));
    const std::uint64_t after = steady_tensor_bytes(store, std::span(own).last(count));
    growth->tensor_bytes = after - std::min(after, before);
    if (2 * growth->tensor_bytes < growth->to_bytes - growth->from_bytes) found.push_back(*growth);
  }
  if (auto growth = growth_of(others)) {
    growth->of_other_processes = true;
    found.push_back(*growth);
  }
  return found;
}

}  // namespace tidemark
