#include "query/open_recording.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <system_error>
#include <utility>
#include <vector>

#include "analyze/advice/advice.h"
#include "analyze/ledger/replay.h"
#include "analyze/timeline/host_timeline.h"
#include "analyze/usage/breakdown.h"

namespace tidemark {
namespace {

// What to type instead of a directory: the recordings in it.
std::string recordings_in(const std::string& directory) {
  constexpr std::size_t kMaxListed = 3;
  std::vector<std::string> found;
  std::error_code error;
  for (std::filesystem::directory_iterator entry(directory, error), end; !error && entry != end;
       entry.increment(error)) {
    if (entry->path().extension() == ".tide") found.push_back(entry->path().string());
  }
  if (found.empty()) return "it contains no .tide files";
  std::sort(found.begin(), found.end());
  const std::size_t more = found.size() - std::min(found.size(), kMaxListed);
  found.resize(found.size() - more);
  return fmt::format("name the recordings in it: {}{}", fmt::join(found, " "),
                     more == 0 ? "" : fmt::format(" and {} more", more));
}

PeakOwners peak_owners(const AttributedStore& store) {
  PeakOwners owners;
  if (!store.attribution) return owners;
  Symbols symbols(store.definitions);
  Adviser adviser(store, symbols, *store.attribution);
  for (std::size_t device = 0; device < store.devices.size(); ++device) {
    owners.advice.push_back(adviser.at_peak(device));
  }
  auto breakdown = analyze_breakdown(store, symbols, *store.attribution, {});
  if (breakdown) owners.breakdown = std::make_shared<const Breakdown>(std::move(*breakdown));
  return owners;
}

Progress progress_of(const ProgressFor& progress, const std::string& path) {
  return progress ? progress(path, "Reading") : Progress();
}

}  // namespace

Result<void> check_recording_path(const std::string& path) {
  std::error_code error;
  const auto status = std::filesystem::status(path, error);
  if (status.type() == std::filesystem::file_type::not_found) return Error{fmt::format("{}: no such file", path)};
  if (error) return Error{fmt::format("{}: {}", path, error.message())};
  if (status.type() == std::filesystem::file_type::directory) {
    return Error{fmt::format("{}: is a directory; {}", path, recordings_in(path))};
  }
  if (status.type() != std::filesystem::file_type::regular) return Error{fmt::format("{}: not a regular file", path)};
  return {};
}

Result<ComponentRules> read_rules(const std::string& path) {
  if (path.empty()) return ComponentRules::built_in();
  if (auto status = check_recording_path(path); !status) return status.error();
  std::ostringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  auto rules = ComponentRules::parse(text.str(), path);
  if (!rules) return rules.error();
  return rules->before(ComponentRules::built_in());
}

Result<AttributedStore> open_attributed(const std::string& path, const Progress& progress,
                                        const ComponentRules& rules) {
  auto store = open_store(path, progress);
  if (!store) return store.error();
  return attribute(std::move(*store), rules);
}

Result<SampledOverview> open_sampled_overview(const std::string& path, const ProgressFor& progress,
                                              const ComponentRules& rules) {
  SampleCollector samples;
  auto overview =
      open_overview(path, progress_of(progress, path),
                    [&](const SampleRecord& sample, const EventsSoFar& events) { samples.add(sample, events); });
  if (!overview) return overview.error();
  SampledOverview sampled;
  static_cast<Overview&>(sampled) = std::move(*overview);
  std::move(samples).finish(sampled);
  sampled.load_blocks = [path, progress, rules]() -> Result<std::shared_ptr<const AttributedStore>> {
    auto store = open_attributed(path, progress_of(progress, path), rules);
    if (!store) return store.error();
    return std::make_shared<const AttributedStore>(std::move(*store));
  };
  sampled.owners = take_owners(path, progress, rules, sampled);
  return sampled;
}

SampledOverview sampled_overview(const std::shared_ptr<const AttributedStore>& store) {
  SampledOverview sampled;
  static_cast<Overview&>(sampled) = *store;
  sampled.samples = collect_samples(*store).devices;
  sampled.host = host_usage(store->samples.host);
  sampled.host_ledgers = collect_host(*store);
  sampled.load_blocks = [store]() -> Result<std::shared_ptr<const AttributedStore>> { return store; };
  sampled.owners = peak_owners(*store);
  return sampled;
}

PeakOwners take_owners(const std::string& path, const ProgressFor& progress, const ComponentRules& rules,
                       Overview& overview) {
  constexpr std::uint64_t kMaxEvents = 50'000'000;  // their blocks take some 4 GB while they are read
  if (!has_attribution(overview.definitions) || overview.event_count > kMaxEvents) return {};
  auto store = open_attributed(path, progress_of(progress, path), rules);
  if (!store || !store->attribution) return {};
  PeakOwners owners = peak_owners(*store);
  overview = std::move(static_cast<Overview&>(*store));
  return owners;
}

}  // namespace tidemark
