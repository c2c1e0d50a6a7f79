#include "cli/plan_need.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <iterator>
#include <system_error>
#include <utility>
#include <variant>

#include "base/output_file.h"
#include "base/standard_streams.h"
#include "base/units.h"
#include "cli/command.h"
#include "cli/reading.h"
#include "cli/record_program.h"
#include "plan/gpu_profiles.h"
#include "sweep/fitting_changes.h"

namespace tidemark::cli {

namespace {

constexpr const char* kNoLimit = "--memory=4TiB";

// With less memory than it takes without a limit a program may still fit: PyTorch releases cached segments first, and
// libraries take smaller workspaces. So GPUs between are planned, the largest first, until one does not fit.
void add_known_gpus(PlanNeed& need, const NeedRequest& request, const MeasureTrial& measure) {
  constexpr std::size_t kMaxTrials = 2;
  std::vector<const GpuProfile*> gpus;
  for (const GpuProfile& gpu : gpu_profiles()) gpus.push_back(&gpu);
  std::ranges::stable_sort(gpus, std::greater<>(), &GpuProfile::memory_bytes);
  std::size_t trials = 0;
  for (const GpuProfile* gpu : gpus) {
    if (gpu->memory_bytes < need.bytes) {
      std::optional<std::uint64_t> used;
      if (gpu->memory_bytes > request.memory_bytes) {
        if (trials++ == kMaxTrials) return;
        TrialRequest trial = request.trial;
        trial.gpu = gpu->name;
        trial.options.push_back(fmt::format("--memory={}", gpu->memory_bytes));
        used = measure(trial, "it on " + gpu->name);
      }
      if (!used) {
        need.too_small = gpu->name;
        return;
      }
      need.bytes = *used;
    }
    need.enough.insert(need.enough.begin(), gpu->name);
  }
}

// Removes the recordings of the trial before, which another number of ranks may have named otherwise.
void empty_folder(const std::string& folder) {
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator(folder, ignored)) {
    std::filesystem::remove_all(entry.path(), ignored);
  }
}

// Bytes of each GPU that the trial needs; nullopt if it failed, for a reason that `failure` gets, unless it is null.
std::optional<std::uint64_t> measure_trial(const TrialRequest& trial, const std::string& change,
                                           const std::string& folder, StopSignals& signals, std::string* failure) {
  if (signals.stopped()) return std::nullopt;
  say_printable("planning " + change);
  empty_folder(folder);
  const auto result = run_trial(trial, folder, signals);
  if (result && *result && (*result)->fits == true) return (*result)->used_bytes();
  if (failure != nullptr && result && *result) *failure = (*result)->failure;
  if (failure != nullptr && !result) *failure = result.error().message;
  return std::nullopt;
}

// Advice on the device with the least headroom that saves enough for the program to fit.
std::vector<Advice> sufficient_advice(const Plan& plan, std::uint64_t excess_bytes) {
  std::vector<Advice> enough;
  if (plan.devices.empty()) return enough;
  std::ranges::copy_if(plan.devices.front().summary.advice, std::back_inserter(enough),
                       [excess_bytes](const Advice& advice) { return advice.avoidable_peak_bytes >= excess_bytes; });
  return enough;
}

// On the device with the least headroom, the part of what is in proportion to the batch that fits beside the rest:
// beside the context, the libraries, the model and its optimizer. Cached memory is in proportion to it too.
// `used`: of the device, by all.
std::optional<double> fitting_batch_share(const Plan& plan, std::uint64_t used, std::uint64_t memory) {
  if (plan.devices.empty()) return std::nullopt;
  const SummaryDevice& device = plan.devices.front().summary;
  std::uint64_t proportional = 0;
  for (const CategoryBytes& category : device.categories) {
    if (grows_with_batch(category.category)) proportional += category.bytes;
  }
  if (proportional == 0) return std::nullopt;
  const std::uint64_t reserved = device.totals.peak_reserved_bytes.value_or(0);
  const std::uint64_t cached = reserved - std::min(reserved, device.totals.peak_allocated_bytes);
  const std::uint64_t of_batch = std::min(proportional + cached, used);
  const std::uint64_t constant = used - of_batch;
  if (constant >= memory) return std::nullopt;
  return static_cast<double>(memory - constant) / static_cast<double>(of_batch);
}

// A request that failed hides what would have come: only then is a plan without a limit necessary.
std::optional<std::uint64_t> used_without_failure(const Plan& plan) {
  std::uint64_t used = 0;
  for (const PlannedDevice& device : plan.devices) {
    if (device.summary.totals.out_of_memory_count != 0) return std::nullopt;
    used = std::max(used, device.device_used_bytes);
  }
  return used;
}

}  // namespace

Result<std::vector<PlannedRecording>> read_planned(const std::vector<std::string>& files, bool with_owners) {
  std::vector<PlannedRecording> recordings;
  std::vector<SampledDevice> devices;
  SummaryOptions what;
  const auto load = [&](const std::string& path, const Progress& progress) {
    devices.clear();
    auto overview = open_overview(path, progress, [&devices](const SampleRecord& sample, const EventsSoFar&) {
      if (const auto* device = std::get_if<SampledDevice>(&sample)) devices.push_back(*device);
    });
    if (overview && with_owners) what.owners = take_owners(path, make_progress, ComponentRules::built_in(), *overview);
    return overview;
  };
  const auto read = read_files(files, load, [&](const Overview& overview, Symbols& symbols) -> Result<void> {
    auto summary = analyze_summary(overview, symbols, what);
    if (!summary) return summary.error();
    recordings.push_back({std::move(*summary), devices});
    return {};
  });
  if (!read) return read.error();
  return recordings;
}

Result<std::vector<PlannedChange>> plan_changes(const NeedRequest& request) {
  const auto folder = ScratchFolder::create("tidemark-trial");
  if (!folder) return folder.error();
  ChangeSearch search{request.trial, 0, request.memory_bytes, request.ranks, script_source(request.trial.command)};
  search.trial.options.emplace_back(kNoLimit);
  StopSignals signals;
  std::string failure;
  const MeasureTrial measure = [&](const TrialRequest& trial, const std::string& change) {
    return measure_trial(trial, change, folder->path(), signals, &failure);
  };
  const auto need = measure(search.trial, "it without a limit of memory");
  std::vector<PlannedChange> changes;
  if (need && *need > request.memory_bytes) {
    search.need_bytes = *need;
    changes = find_fitting_changes(search, measure);
  } else if (need) {
    say(fmt::format("--verify: the program's first steps fit ({} of {}): no change is planned", format_bytes(*need),
                    format_bytes(request.memory_bytes)));
  }
  const bool stopped = signals.take().has_value();
  if (!need && !stopped) return Error{"--verify: the program cannot be planned: " + failure};
  return changes;
}

std::optional<PlanNeed> find_need(const Plan& plan, const NeedRequest& request) {
  const auto folder = ScratchFolder::create("tidemark-trial");
  if (!folder) return std::nullopt;
  ChangeSearch search{request.trial, 0, request.memory_bytes, request.ranks, script_source(request.trial.command)};
  search.trial.options.emplace_back(kNoLimit);
  StopSignals signals;
  const MeasureTrial measure = [&](const TrialRequest& trial, const std::string& change) {
    return measure_trial(trial, change, folder->path(), signals, nullptr);
  };
  say_printable(
      "it does not fit: searching for what it needs and for changes that make it fit (Ctrl-C ends the search)");
  PlanNeed need;
  Plan unlimited = plan;
  if (const auto used = used_without_failure(plan)) {
    need.bytes = *used;
  } else {
    need.bytes = measure(search.trial, "it without a limit of memory").value_or(0);
    auto recordings = read_planned(recordings_in(folder->path()), true);
    if (recordings) unlimited = make_plan(plan.facts, *recordings);
  }
  const std::uint64_t unlimited_bytes = need.bytes;
  if (need.bytes != 0) {
    add_known_gpus(need, request, measure);
    if (signals.stopped()) need.too_small.clear();  // its plan may have been stopped
    if (need.bytes > request.memory_bytes)
      need.advice = sufficient_advice(unlimited, need.bytes - request.memory_bytes);
    if (!unlimited.devices.empty()) need.model_bytes = unlimited.devices.front().summary.peak_model_bytes;
    need.batch_share = fitting_batch_share(unlimited, unlimited_bytes, request.memory_bytes);
    search.need_bytes = need.bytes;
    need.changes = find_fitting_changes(search, measure);
    if (std::ranges::any_of(need.changes, &PlannedChange::checkpoints)) {
      std::erase_if(need.advice,
                    [](const Advice& advice) { return advice.kind == AdviceKind::checkpoint_activations; });
    }
  }
  static_cast<void>(signals.take());
  return need.bytes != 0 ? std::optional(std::move(need)) : std::nullopt;
}

}  // namespace tidemark::cli
