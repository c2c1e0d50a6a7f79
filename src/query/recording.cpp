#include "query/recording.h"

#include <fmt/format.h>

#include <algorithm>

#include "analyze/common/moment.h"
#include "query/simulated_advice.h"
#include "store/symbols.h"

namespace tidemark {
namespace {

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

// One of those that analyses share.
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
