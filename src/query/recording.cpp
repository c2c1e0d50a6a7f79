#include "query/recording.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <optional>
#include <sstream>
#include <system_error>
#include <utility>
#include <vector>

#include "analyze/advice/advice.h"
#include "analyze/common/moment.h"
#include "analyze/ledger/replay.h"
#include "analyze/timeline/host_timeline.h"
#include "analyze/usage/breakdown.h"
#include "simulate/simulate.h"
#include "store/symbols.h"

namespace tidemark {
namespace {

// Suggestion for a directory argument: the recordings in it.
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

PeakOwners peak_owners(const Store& store, const Attribution& attribution) {
  PeakOwners owners;
  Symbols symbols(store.definitions);
  Adviser adviser(store, symbols, attribution);
  for (std::size_t device = 0; device < store.devices.size(); ++device) {
    owners.advice.push_back(adviser.at_peak(device));
  }
  LeakOptions options;
  options.attribution = &attribution;
  auto leaks = analyze_leaks(store, symbols, options);
  if (leaks && leaks->verdict == LeakVerdict::leak) owners.leaks = std::make_shared<const Leaks>(std::move(*leaks));
  owners.model_bytes = model_peaks(store, attribution);
  auto breakdown = analyze_breakdown(store, symbols, attribution, {});
  if (breakdown) owners.breakdown = std::make_shared<const Breakdown>(std::move(*breakdown));
  return owners;
}

// Snapshots have no model: stacks determine their owners.
PeakOwners peak_owners(const AttributedStore& store, const ComponentRules& rules) {
  if (store.attribution) return peak_owners(store, *store.attribution);
  if (store.source.kind != SourceKind::pytorch_snapshot || store.definitions.stacks.empty()) return {};
  return peak_owners(store, attribute_blocks(store, rules));
}

bool may_have_owners(const Overview& overview) {
  if (overview.source.kind == SourceKind::pytorch_snapshot) return !overview.definitions.stacks.empty();
  return has_attribution(overview.definitions);
}

Progress progress_of(const ProgressFor& progress, const std::string& path) {
  return progress ? progress(path, "Reading") : Progress();
}

template <typename Enum, std::size_t Count>
Result<void> check_name(const std::string& value, const EnumName<Enum> (&names)[Count]) {
  std::vector<std::string_view> known;
  for (const EnumName<Enum>& entry : names) known.push_back(entry.name);
  if (std::find(known.begin(), known.end(), value) != known.end()) return {};
  return Error{fmt::format("invalid value '{}' (expected one of {})", value, fmt::join(known, ", "))};
}

Result<void> check_moment(const std::string& at) {
  if (may_be_a_moment(at)) return {};
  return Error{parse_moment(at).error().message};
}

const AnalysisOption* find_option(const AnalysisInfo& analysis, const std::string& name) {
  for (const AnalysisOption& option : analysis.options) {
    if (option.name == name) return &option;
  }
  return nullptr;
}

// Sets an option that analyses share.
Result<void> set_shared(const std::string& name, const std::string& value, AnalysisOptions& options) {
  const auto [into, status] = [&]() -> std::pair<std::string*, Result<void>> {
    FilterOptions& filter = options.filter;
    if (name == "at") return {&options.at, check_moment(value)};
    if (name == "module") return {&filter.module, {}};
    if (name == "component") return {&filter.component, check_name(value, kComponentNames)};
    if (name == "category") return {&filter.category, check_name(value, kCategoryNames)};
    return {&filter.phase, check_name(value, kPhaseNames)};
  }();
  if (!status) return status.error();
  *into = value;
  return {};
}

}  // namespace

void choose_simulation(const Analysis& analysis, bool automatic, const ProgressFor& progress,
                       const std::function<void(const std::string&)>& failed, AnalysisOptions& chosen,
                       const std::string& python) {
  const bool has_option = std::any_of(analysis.options.begin(), analysis.options.end(),
                                      [](const AnalysisOption& option) { return option.name == "simulate"; });
  if (!has_option) return;
  const std::string& how = chosen.word("simulate");
  const bool must = how != "auto";
  std::vector<Replayer> replayers;  // the first one that succeeds counts
  if (how == "pytorch" || (!must && automatic)) replayers.push_back(Replayer::pytorch);
  // Whether a request would have been met is known from the model too; what settings save needs PyTorch's own
  // allocator.
  if (how == "model" || (!must && analysis.name == "explain")) replayers.push_back(Replayer::model);
  if (replayers.empty()) return;
  SimulateOptions what;
  what.search = true;
  what.python = python;
  what.device = chosen.device;
  chosen.simulate = [what, must, replayers, progress, failed](const Store& store,
                                                              const Symbols& symbols) -> std::optional<Simulation> {
    constexpr std::size_t kQuickEvents = 1'000'000;
    for (const Replayer replayer : replayers) {
      if (!must && replayer == Replayer::model && store.live_changes.size() > kQuickEvents) continue;
      SimulateOptions options = what;
      options.replayer = replayer;
      auto simulation = simulate(store, symbols, options, progress ? progress(store.path, "Replaying") : Progress());
      if (simulation) return std::move(*simulation);
      if (must) failed(simulation.error().message);
    }
    return std::nullopt;
  };
}

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
  sampled.owners = peak_owners(*store, ComponentRules::built_in());
  return sampled;
}

PeakOwners take_owners(const std::string& path, const ProgressFor& progress, const ComponentRules& rules,
                       Overview& overview) {
  constexpr std::uint64_t kMaxEvents = 50'000'000;  // their blocks take some 4 GB while they are read
  if (!may_have_owners(overview) || overview.event_count > kMaxEvents) return {};
  auto store = open_attributed(path, progress_of(progress, path), rules);
  if (!store) return {};
  PeakOwners owners = peak_owners(*store, rules);
  overview = std::move(static_cast<Overview&>(*store));
  return owners;
}

Result<std::shared_ptr<Recording>> Recording::open(const std::string& path, ReadingChoice choice) {
  if (auto status = check_recording_path(path); !status) return status.error();
  std::shared_ptr<Recording> recording(new Recording(path, std::move(choice), FileVersion::of(path)));
  if (recording->choice_.with_blocks) {
    if (auto read = recording->blocks(); !read) return read.error();
    return recording;
  }
  auto overview = open_sampled_overview(path, recording->choice_.progress, recording->choice_.rules);
  if (!overview) return overview.error();
  overview->load_blocks = [self = recording.get()] { return self->read_blocks(); };
  if (!recording->choice_.name.empty()) overview->path = recording->choice_.name;
  recording->overview_ = std::move(*overview);
  return recording;
}

Result<std::shared_ptr<const AttributedStore>> Recording::read_blocks() const {
  const ProgressFor& progress = choice_.progress;
  auto store = open_attributed(path_, progress ? progress(path_, "Reading") : Progress(), choice_.rules);
  if (!store) return store.error();
  if (!choice_.with_blocks && FileVersion::of(path_) != version_) {
    return Error{fmt::format("{}: has changed since it was read; read it again", path_)};
  }
  if (!choice_.name.empty()) store->path = choice_.name;
  return std::make_shared<const AttributedStore>(std::move(*store));
}

Result<std::shared_ptr<const AttributedStore>> Recording::blocks() {
  const std::lock_guard lock(mutex_);
  if (blocks_) return blocks_;
  auto read = read_blocks();
  if (read) blocks_ = *read;
  return read;
}

Result<std::shared_ptr<const Attribution>> Recording::attribution() {
  const std::lock_guard lock(mutex_);
  if (attribution_) return attribution_;
  const auto store = blocks();
  if (!store) return store.error();
  attribution_ = (*store)->attribution;
  if (!attribution_) attribution_ = std::make_shared<const Attribution>(attribute_blocks(**store, choice_.rules));
  return attribution_;
}

const SampledOverview& Recording::overview() {
  const std::lock_guard lock(mutex_);
  if (!overview_) overview_ = sampled_overview(blocks_);
  return *overview_;
}

bool has_option(const AnalysisInfo& analysis, const std::string& name) {
  if (name == "device") return true;
  if (name == "at") return analysis.takes_moment;
  const bool filters = name == "module" || name == "component" || name == "category" || name == "phase";
  return filters ? analysis.takes_filter : find_option(analysis, name) != nullptr;
}

Result<AnalysisOptions> choose_options(const AnalysisInfo& analysis,
                                       const std::vector<std::pair<std::string, std::string>>& given) {
  AnalysisOptions options(analysis.options);
  options.format = "json";
  for (const auto& [name, value] : given) {
    if (name == "device") {
      options.device = value;
    } else if (const AnalysisOption* option = find_option(analysis, name)) {
      if (!option->allows(value)) {
        return Error{fmt::format("{}: invalid value '{}' (expected {})", name, value, option->expected())};
      }
      options.set(name, value);
    } else if (auto set = set_shared(name, value, options); !set) {
      return Error{fmt::format("{}: {}", name, set.error().message)};
    }
  }
  return options;
}

Result<std::shared_ptr<const AnalysisRun>> run_analysis(const Analysis& analysis,
                                                        std::span<const std::shared_ptr<Recording>> recordings,
                                                        AnalysisOptions options) {
  std::string failure;
  if (!recordings.empty()) {
    const ReadingChoice& choice = recordings.front()->choice();
    const auto failed = [&failure](const std::string& why) { failure = why; };
    choose_simulation(analysis, false, choice.progress, failed, options, choice.python);
  }
  std::shared_ptr<AnalysisRun> run = analysis.start();
  for (const std::shared_ptr<Recording>& recording : recordings) {
    options.rules = recording->choice().rules;
    Result<void> added;
    if (analysis.needs_blocks) {
      const auto store = recording->blocks();
      if (!store) return store.error();
      options.attribution = (*store)->attribution;
      Symbols symbols((*store)->definitions);
      added = run->add(**store, symbols, options);
    } else {
      const SampledOverview& overview = recording->overview();
      Symbols symbols(overview.definitions);
      added = run->add(overview, symbols, options);
    }
    if (!added) return added.error();
    if (!failure.empty()) return Error{failure};
  }
  return std::shared_ptr<const AnalysisRun>(std::move(run));
}

}  // namespace tidemark
