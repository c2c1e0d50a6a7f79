#include "analyze/leaks/host_growth.h"

#include <algorithm>
#include <optional>

#include "analyze/forecast/peak_growth.h"
#include "analyze/forecast/usage_history.h"

namespace tidemark {
namespace {

constexpr std::uint64_t kLeastBytes = std::uint64_t{32} << 20;
constexpr std::uint64_t kLeastShare = 20;  // 1 / 20 of what is there
constexpr std::size_t kMaxGrownCells = 32;

std::optional<HostGrowth> growth_of(const std::vector<UsageSpan>& samples) {
  if (samples.size() < kFewestGrownCells) return std::nullopt;
  const auto cells = std::min(samples.size(), kMaxGrownCells);
  const UsageGrid grid = cut_into_cells(samples, samples.front().from_ns, cells);
  const auto growth = find_cell_growth(grid.peaks, 0);
  if (!growth || growth->jumped) return std::nullopt;
  HostGrowth found;
  found.from_bytes = samples.front().last_bytes;
  found.to_bytes = samples.back().last_bytes;
  found.from_ns = samples.front().from_ns;
  found.to_ns = samples.back().to_ns;
  found.bytes_per_second = growth->per_cell.value / grid.cell_seconds;
  const std::uint64_t least = std::max(kLeastBytes, found.to_bytes / kLeastShare);
  if (found.to_bytes < found.from_bytes + least) return std::nullopt;
  return found;
}

// What the blocks on the CPU come to at a time.
std::uint64_t tensor_bytes(const Store& store, std::uint64_t time_ns) {
  std::uint64_t bytes = 0;
  const std::uint64_t changes = store.changes_until(time_ns);
  for (std::size_t block = 0; block < store.blocks.count(); ++block) {
    if (store.devices[store.blocks.device[block]].device.type != DeviceType::cpu) continue;
    if (store.blocks.alive(block, changes)) bytes += store.blocks.size[block];
  }
  return bytes;
}

}  // namespace

std::vector<HostGrowth> find_host_growth(const Store& store, std::uint64_t from_ns, std::uint64_t to_ns) {
  const HostSeries& host = store.samples.host;
  std::vector<UsageSpan> own;
  std::vector<UsageSpan> others;
  for (std::size_t n = 0; n < host.time_ns.size(); ++n) {
    const HostSample sample = host.at(n);
    if (sample.time_ns < from_ns || sample.time_ns > to_ns) continue;
    const auto add = [&](std::vector<UsageSpan>& samples, std::uint64_t bytes) {
      samples.push_back({sample.time_ns, sample.time_ns, bytes, bytes, bytes, 1, {}});
    };
    if (sample.anon_bytes) add(own, *sample.anon_bytes + sample.swap_bytes.value_or(0));
    if (sample.job_pss_bytes && sample.pss_bytes)
      add(others, *sample.job_pss_bytes - std::min(*sample.job_pss_bytes, *sample.pss_bytes));
  }
  std::vector<HostGrowth> found;
  if (auto growth = growth_of(own)) {
    const std::uint64_t before = tensor_bytes(store, growth->from_ns);
    const std::uint64_t after = tensor_bytes(store, growth->to_ns);
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
