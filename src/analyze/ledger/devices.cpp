#include "analyze/ledger/devices.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "analyze/common/devices.h"

namespace tidemark {
namespace {

// cuda_index of a recording may be anything; the program's devices have few numbers.
std::optional<Device> program_device(const SampledDevice& sampled) {
  constexpr std::uint32_t kMax = 127;
  if (!sampled.cuda_index || *sampled.cuda_index > kMax) return std::nullopt;
  return Device{DeviceType::cuda, static_cast<std::int8_t>(*sampled.cuda_index)};
}

std::string name_of(const SampledDevice& sampled) {
  if (const auto device = program_device(sampled)) return to_string(*device);
  if (sampled.instance_of) return fmt::format("{}:{}.{}", sampled.vendor, *sampled.instance_of, sampled.index);
  return fmt::format("{}:{}", sampled.vendor, sampled.index);
}

// Those that the program has numbers for, then those named as the vendor's tool does.
bool listed_earlier(const LedgerTarget& left, const LedgerTarget& right) {
  const auto left_device = parse_device(left.name);
  const auto right_device = parse_device(right.name);
  return left_device && right_device ? listed_before(*left_device, *right_device) : left_device && !right_device;
}

std::optional<std::size_t> find_device(const Overview& overview, Device device) {
  const auto found = std::find_if(overview.devices.begin(), overview.devices.end(),
                                  [&](const DeviceSummary& summary) { return summary.device == device; });
  if (found == overview.devices.end()) return std::nullopt;
  return static_cast<std::size_t>(found - overview.devices.begin());
}

}  // namespace

std::vector<LedgerTarget> ledger_targets(const Overview& overview, const std::vector<SampledDevice>& sampled) {
  std::vector<LedgerTarget> targets;
  targets.reserve(sampled.size() + overview.devices.size());
  for (std::size_t index = 0; index < sampled.size(); ++index) {
    LedgerTarget& target = targets.emplace_back();
    target.name = name_of(sampled[index]);
    target.sampled = index;
    const auto device = program_device(sampled[index]);
    if (!device) continue;
    target.indexes.emplace(overview, *device);
    target.framework = find_device(overview, *device);
    target.used = target.indexes->used();
  }
  for (std::size_t index = 0; index < overview.devices.size(); ++index) {
    const Device device = overview.devices[index].device;
    if (device.type == DeviceType::cpu || is_driver_memory(device)) continue;
    const std::string name = to_string(device);
    const auto same = [&](const LedgerTarget& target) { return target.name == name; };
    if (std::any_of(targets.begin(), targets.end(), same)) continue;
    LedgerTarget& target = targets.emplace_back();
    target.name = name;
    target.indexes.emplace(overview, device);
    target.framework = index;
    target.used = true;
  }
  std::stable_sort(targets.begin(), targets.end(), listed_earlier);
  return targets;
}

Result<std::vector<LedgerTarget>> select_targets(const Overview& overview, std::vector<LedgerTarget> targets,
                                                 const std::optional<std::string>& device) {
  if (!device) return targets;
  std::vector<LedgerTarget> selected;
  std::string known;
  for (LedgerTarget& target : targets) {
    known += (known.empty() ? "" : ", ") + target.name;
    if (*device == target.name) selected.push_back(std::move(target));
  }
  if (selected.empty()) {
    return Error{fmt::format("{}: no GPU '{}' (available: {})", overview.path, *device,
                             known.empty() ? "none; no GPU was used or sampled" : known)};
  }
  return selected;
}

}  // namespace tidemark
