#include "simulate/simulate.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <set>
#include <utility>
#include <vector>

#include "allocator/rules.h"
#include "allocator/settings_text.h"
#include "analyze/plan/simulation.h"
#include "base/result.h"
#include "base/units.h"
#include "launch/interpreter_probe.h"
#include "simulate/allocator_model.h"
#include "simulate/requests.h"

namespace tidemark {

namespace {

/// `limits` by device. Fails if the model does not support a setting.
Result<SimulatedSettings> replay_with_model(const Store& store, const Requests& requests, const SettingList& settings,
                                            const std::vector<AllocatorModel::Limit>& limits);

Result<SimulatedSettings> replay_with_model(const Store& store, const Requests& requests, const SettingList& settings,
                                            const std::vector<AllocatorModel::Limit>& limits) {
  const auto known = allocator_settings(settings);
  if (!known) return known.error();
  std::vector<AllocatorModel> models;
  models.reserve(limits.size());
  for (const AllocatorModel::Limit& limit : limits) models.emplace_back(*known, limit);
  std::vector<AllocatorState> peaks(models.size());
  std::vector<AllocatorModel::Handle> blocks(requests.slots);
  SimulatedSettings run;
  run.settings = settings_text(settings);
  visit_requests(store, requests, [&](const Request& request) {
    AllocatorModel& model = models[request.device];
    switch (request.kind) {
      case Request::Kind::allocate: {
        const auto block = model.allocate(request.size, request.stream, request.pool);
        if (!block) run.out_of_memory_ns = request.time_ns;
        blocks[request.slot] = block.value_or(0);
        return block.has_value();
      }
      case Request::Kind::free:
        model.free(blocks[request.slot]);
        break;
      case Request::Kind::failed:
        if (const auto block = model.allocate(request.size, request.stream, request.pool)) {
          ++run.passed_failures;
          model.free(*block);
        }
        break;
      case Request::Kind::pool_released:
        model.release_pool(request.pool);
        break;
      case Request::Kind::empty_cache:
        model.empty_cache();
        break;
      case Request::Kind::moment:
        peaks[request.device] = model.state();
        break;
    }
    return true;
  });
  for (std::size_t index = 0; index < models.size(); ++index) {
    run.devices.push_back(models[index].outcome());
    run.devices.back().at_peak = peaks[index];
  }
  return run;
}

/// Changes to the recorded settings, most often helpful first: expandable segments; max_split_size_mb around the sizes
/// of the large requests; steps of roundup_power2_divisions; garbage_collection_threshold if `limited`, because PyTorch
/// collects only with a limit.
[[nodiscard]] std::vector<SettingList> candidate_settings(const Store& store, const Requests& requests,
                                                          const SettingList& recorded, bool limited);

constexpr std::uint64_t kMaxSplitSize = 1 << 20;  // MiB; larger than the blocks of any GPU

// Powers of two above the median of the requests that have a segment for themselves, above nine tenths of them, and
// between: max_split_size keeps larger blocks whole.
std::set<std::uint64_t> split_sizes(const Store& store, const Requests& requests) {
  std::array<std::uint64_t, 64> counts{};
  std::uint64_t all = 0;
  visit_requests(store, requests, [&](const Request& request) {
    if (request.kind == Request::Kind::allocate && request.size >= pytorch::kMinLargeAlloc) {
      ++counts[static_cast<std::size_t>(std::bit_width(request.size)) % counts.size()];
      ++all;
    }
    return true;
  });
  std::set<std::uint64_t> sizes;
  std::uint64_t below = 0;
  for (std::size_t bits = 0; bits < counts.size() && all != 0; ++bits) {
    const std::uint64_t before = below;
    below += counts[bits];
    for (const std::uint64_t percent : {50U, 75U, 90U}) {
      if (before * 100 >= all * percent || below * 100 < all * percent) continue;
      const std::uint64_t size = (std::uint64_t{1} << bits) / kMiB;
      if (size > pytorch::kLargeBuffer / kMiB && size <= kMaxSplitSize) sizes.insert(size);
    }
  }
  return sizes;
}

std::vector<SettingList> candidate_settings(const Store& store, const Requests& requests, const SettingList& recorded,
                                            bool limited) {
  std::vector<SettingList> changes = {{{"expandable_segments", "True"}}, {{"expandable_segments", "False"}}};
  const std::set<std::uint64_t> splits = split_sizes(store, requests);
  for (const std::uint64_t size : splits) changes.push_back({{"max_split_size_mb", fmt::format("{}", size)}});
  for (const char* divisions : {"4", "8", "16"}) changes.push_back({{"roundup_power2_divisions", divisions}});
  if (limited) {
    changes.push_back({{"garbage_collection_threshold", "0.8"}});
    if (!splits.empty()) {
      changes.push_back(
          {{"max_split_size_mb", fmt::format("{}", *splits.rbegin())}, {"garbage_collection_threshold", "0.8"}});
    }
  }
  // Settings without effect are not tried: to PyTorch, False is the same as no expandable_segments.
  SettingList base = recorded;
  if (std::none_of(base.begin(), base.end(), [](const auto& each) { return each.first == "expandable_segments"; })) {
    base.emplace_back("expandable_segments", "False");
  }
  std::erase_if(changes, [&](const SettingList& change) { return with_changes(base, change) == base; });
  return changes;
}

// The settings of the recording; nullopt if neither the file nor the user gives them.
Result<std::optional<SettingList>> recorded_settings(const Store& store, const SimulateOptions& options) {
  if (options.recorded) {
    auto given = parse_settings(*options.recorded);
    if (!given) return given.error();
    return std::optional(std::move(*given));
  }
  const auto& known = store.source.allocator_settings;
  if (!known) return std::optional<SettingList>();
  auto written = parse_settings(known->text);
  SettingList settings = written ? placement_settings(*written) : SettingList();
  // A program can change settings while it runs; the text is from the environment.
  SettingList values;
  if (known->expandable_segments.value_or(false)) values.emplace_back("expandable_segments", "True");
  if (known->max_split_size.value_or(-1) > 0) {
    values.emplace_back("max_split_size_mb", fmt::format("{}", *known->max_split_size >> 20));
  }
  return std::optional(with_changes(std::move(settings), values));
}

// The settings to replay: the recorded ones first, each once.
Result<std::vector<SettingList>> settings_to_replay(const Store& store, const Requests& requests,
                                                    const SettingList& recorded, const SimulateOptions& options,
                                                    bool limited) {
  std::vector<SettingList> all = {recorded};
  const auto add = [&](SettingList settings) {
    if (std::find(all.begin(), all.end(), settings) == all.end()) all.push_back(std::move(settings));
  };
  for (const std::string& text : options.sets) {
    const auto changes = parse_settings(text);
    if (!changes) return changes.error();
    for (const auto& [name, value] : *changes) {
      if (name == "backend") return Error{"--set backend:…: only PyTorch's native allocator can be simulated"};
    }
    add(*changes);
  }
  if (options.search) {
    // A recorded setting may be the cause, so the defaults and expandable segments are tried without it.
    add({});
    add({{"expandable_segments", "True"}});
    for (const SettingList& changes : candidate_settings(store, requests, recorded, limited)) {
      add(with_changes(recorded, changes));
    }
  }
  return all;
}

bool collects(const std::vector<SettingList>& settings) {
  return std::any_of(settings.begin(), settings.end(), [](const SettingList& list) {
    return std::any_of(list.begin(), list.end(),
                       [](const NamedSetting& setting) { return setting.first == "garbage_collection_threshold"; });
  });
}

ReplayLimits limits_of(const Requests& requests, const SimulateOptions& options) {
  ReplayLimits limits;
  for (const RequestDevice& device : requests.devices) {
    limits.bytes.push_back(options.memory ? options.memory : device.limit);
    limits.by_fraction = limits.by_fraction || (!options.memory && device.limit_by_fraction);
  }
  return limits;
}

void describe(const Store& store, const Requests& requests, const ReplayLimits& limits, bool given,
              Simulation& simulation) {
  simulation.exact_sizes = requests.exact_sizes;
  simulation.counts_pending = requests.has_pending;
  simulation.blocks_at_start = requests.at_start;
  simulation.limit_by_fraction = limits.by_fraction;
  for (std::size_t index = 0; index < requests.devices.size(); ++index) {
    const RequestDevice& device = requests.devices[index];
    const DeviceSummary& summary = store.devices[device.index];
    SimulatedDevice& simulated = simulation.devices.emplace_back();
    simulated.device = summary.device;
    simulated.recorded = recorded_outcome(summary);
    if (device.segments_known) simulated.recorded.segments = device.segments;
    simulated.limit = limits.bytes[index];
    if (simulated.limit) simulation.limit_source = given ? LimitSource::given : LimitSource::recorded;
    simulation.recorded_failures += summary.out_of_memory_count;
  }
}

using Runs = std::vector<Result<SimulatedSettings>>;

Result<Runs> with_pytorch(const Store& store, const Requests& requests, const std::vector<SettingList>& settings,
                          const ReplayLimits& limits, const SimulateOptions& options, const Progress& progress,
                          std::string& version) {
  const auto python = probe_interpreter(options.python.empty() ? "python3" : options.python);
  if (!python) return python.error();
  std::vector<std::string> texts;
  texts.reserve(settings.size());
  for (const SettingList& list : settings) texts.push_back(settings_text(list));
  auto runs = replay_with_pytorch(store, requests, texts, limits, *python, progress);
  if (runs) version = python->torch_version;
  return runs;
}

Runs with_model(const Store& store, const Requests& requests, const std::vector<SettingList>& settings,
                const ReplayLimits& limits, const Progress& progress) {
  std::vector<AllocatorModel::Limit> model_limits;
  for (const auto& bytes : limits.bytes) model_limits.push_back({bytes, limits.by_fraction});
  Runs runs;
  for (const SettingList& list : settings) {
    runs.push_back(replay_with_model(store, requests, list, model_limits));
    if (progress) progress(runs.size(), settings.size());
  }
  return runs;
}

}  // namespace

Result<Simulation> simulate(const Store& store, const Symbols& symbols, const SimulateOptions& options,
                            const Progress& progress) {
  const auto requests = find_requests(store, options.device);
  if (!requests) return requests.error();
  const auto recorded = recorded_settings(store, options);
  if (!recorded) return recorded.error();
  ReplayLimits limits = limits_of(*requests, options);
  const bool limited = std::any_of(limits.bytes.begin(), limits.bytes.end(), [](const auto& limit) { return limit; });
  const auto settings = settings_to_replay(store, *requests, recorded->value_or(SettingList()), options, limited);
  if (!settings) return settings.error();
  limits.by_fraction = limits.by_fraction || (limited && collects(*settings));

  Simulation simulation;
  simulation.recording = describe_recording(store, symbols);
  simulation.settings_known = recorded->has_value();
  describe(store, *requests, limits, options.memory.has_value(), simulation);
  Result<Runs> runs = Error{"the model was asked for"};
  if (options.replayer != Replayer::model) {
    runs = with_pytorch(store, *requests, *settings, limits, options, progress, simulation.torch_version);
    if (!runs && (options.replayer == Replayer::pytorch || !options.python.empty())) return runs.error();
  }
  if (!runs) {
    simulation.why_no_torch = runs.error().message;
    runs = with_model(store, *requests, *settings, limits, progress);
  }
  if (!runs->front()) {
    return Error{fmt::format("{}: the recorded settings '{}' cannot be replayed: {}", store.path,
                             settings_text(settings->front()), runs->front().error().message)};
  }
  simulation.check = std::move(*runs->front());
  for (std::size_t index = 1; index < runs->size(); ++index) {
    auto& run = (*runs)[index];
    if (run) {
      simulation.runs.push_back(std::move(*run));
    } else {
      simulation.refused.push_back(fmt::format("{}: {}", settings_text((*settings)[index]), run.error().message));
    }
  }
  rank_settings(simulation.runs);
  return simulation;
}

}  // namespace tidemark
