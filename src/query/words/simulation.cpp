#include "query/words/simulation.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/arithmetic.h"
#include "base/units.h"
#include "query/words/printable.h"
#include "query/words/recording_text.h"

namespace tidemark {
namespace {

std::string replayer_text(const Simulation& simulation) {
  if (!simulation.torch_version.empty()) {
    return fmt::format("Replayed by the allocator of PyTorch {} on a phantom GPU.",
                       printable(simulation.torch_version));
  }
  return fmt::format("Replayed by Tidemark's model of the allocator, not by PyTorch: {}.",
                     printable(simulation.why_no_torch));
}

std::string check_text(const Simulation& simulation) {
  const std::string settings = settings_words(simulation.check.settings) +
                               (simulation.settings_known ? "" : ", as the recording does not say which");
  const std::int64_t error = simulation.reserved_error();
  if (error == 0) {
    return fmt::format("With the recorded settings ({}) the replay's peak reserved is the recorded one, to the byte.",
                       settings);
  }
  return fmt::format("With the recorded settings ({}) the replay's peak reserved is {} bytes {} the recorded one{}.",
                     settings, format_count(magnitude(error)), error > 0 ? "below" : "above",
                     simulation.devices.size() > 1 ? ", all devices together" : "");
}

void add_limit(const Simulation& simulation, std::vector<std::string>& sentences) {
  if (simulation.limit_source == LimitSource::none) return;
  std::string limits;
  for (const SimulatedDevice& device : simulation.devices) {
    if (!device.limit) continue;
    limits +=
        fmt::format("{}{} on {}", limits.empty() ? "" : ", ", exact_text(*device.limit), to_string(device.device));
  }
  const char* const how =
      simulation.limit_by_fraction ? ", as torch.cuda.set_per_process_memory_fraction() limits it" : "";
  sentences.push_back(
      simulation.limit_source == LimitSource::given
          ? fmt::format("The allocator can reserve {}{}.", limits, how)
          : fmt::format("The allocator can reserve {}{}, as requests show that were refused when it was "
                        "recorded.",
                        limits, how));
}

bool collects(const Simulation& simulation) {
  const auto in = [](const SimulatedSettings& run) {
    return run.settings.find("garbage_collection_threshold") != std::string::npos;
  };
  return in(simulation.check) || std::any_of(simulation.runs.begin(), simulation.runs.end(), in);
}

}  // namespace

std::string settings_words(const std::string& settings) {
  return settings.empty() ? "the defaults" : printable(settings);
}

std::vector<std::string> simulation_sentences(const Simulation& simulation) {
  std::vector<std::string> sentences = {replayer_text(simulation), check_text(simulation)};
  add_limit(simulation, sentences);
  if (!simulation.exact_sizes) {
    sentences.emplace_back(
        "Recordings have the sizes of blocks, not of requests, and neither streams nor pools: all requests are made on "
        "the default stream, some up to 1 MiB too large.");
  }
  if (simulation.blocks_at_start != 0) {
    sentences.push_back(
        fmt::format("{} blocks were there before the first event. They are allocated first, in order of their "
                    "addresses; how the program had come to have them is not known.",
                    format_count(simulation.blocks_at_start)));
  }
  if (simulation.counts_pending) {
    sentences.emplace_back(
        "Blocks that another stream still used when they were freed count as allocated until then, unlike in the "
        "recording.");
  }
  if (simulation.limit_source == LimitSource::none && collects(simulation)) {
    sentences.emplace_back("Without a limit garbage_collection_threshold has no effect; --memory sets one.");
  }
  const auto passes = [](const SimulatedSettings& run) { return run.passed_failures != 0; };
  if (std::any_of(simulation.runs.begin(), simulation.runs.end(), passes)) {
    sentences.emplace_back(
        "Where a request that failed succeeds, its block is freed at once: what the program would have done next is "
        "not known.");
  }
  for (const std::string& refused : simulation.refused) {
    sentences.push_back("Not simulated: " + printable(refused) + ".");
  }
  return sentences;
}

std::string best_settings_text(const Simulation& simulation) {
  if (simulation.runs.empty()) return "";
  const SimulatedSettings& best = simulation.runs.front();
  const auto saving = simulation.saving(best);
  const std::string reserved = format_bytes(simulation.check.peak_reserved());
  if (best.out_of_memory_ns) return "None of these settings would have kept the program from running out of memory.";
  if (best.passed_failures > simulation.check.passed_failures) {
    return simulation.recorded_failures == 1
               ? fmt::format("With {} the request that failed would have succeeded.", settings_words(best.settings))
               : fmt::format("With {} {} of the {} requests that failed would have succeeded.",
                             settings_words(best.settings), format_count(best.passed_failures),
                             format_count(simulation.recorded_failures));
  }
  if (simulation.check.out_of_memory_ns) {
    return fmt::format("With {} the program would not have run out of memory.", settings_words(best.settings));
  }
  if (!saving || *saving <= 0) return fmt::format("None of these settings would have reserved less than {}.", reserved);
  return fmt::format("{} would have saved {} of {} reserved.", settings_words(best.settings),
                     format_bytes(static_cast<std::uint64_t>(*saving)), reserved);
}

bool best_helps(const Simulation& simulation) {
  if (simulation.runs.empty() || simulation.runs.front().out_of_memory_ns) return false;
  const SimulatedSettings& best = simulation.runs.front();
  if (best.passed_failures > simulation.check.passed_failures || simulation.check.out_of_memory_ns) return true;
  return simulation.saving(best).value_or(0) > 0;
}

std::string cited_simulation_text(const Simulation& simulation) {
  const std::int64_t error = simulation.reserved_error();
  const std::string exact =
      error == 0 ? std::string("to the byte")
                 : fmt::format("{} bytes {}", format_count(magnitude(error)), error > 0 ? "below" : "above");
  return fmt::format(
      "{} Replayed by {}, which with the recorded settings comes to the recorded peak reserved {}; `tidemark simulate "
      "{} "
      "--search` shows all settings.",
      best_settings_text(simulation), printable(simulation.replayer()), exact,
      printable(base_name(simulation.recording.path)));
}

}  // namespace tidemark
