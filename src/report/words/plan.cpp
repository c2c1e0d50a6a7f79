#include "report/words/plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/units.h"
#include "report/words/printable.h"

namespace tidemark {
namespace {

std::string list_of(const std::vector<std::string>& names) {
  constexpr std::size_t kMost = 8;
  std::string text;
  for (std::size_t index = 0; index < std::min(names.size(), kMost); ++index) {
    text += (index == 0 ? "" : ", ") + printable(names[index]);
  }
  if (names.size() > kMost) text += fmt::format(" and {} more", names.size() - kMost);
  return text;
}

}  // namespace

std::string verdict_text(const Plan& plan) {
  const std::string memory = format_bytes(plan.facts.memory_bytes);
  const auto worst =
      std::find_if(plan.devices.begin(), plan.devices.end(), [](const PlannedDevice& device) { return !device.fits; });
  if (worst != plan.devices.end()) {
    const DeviceSummary& totals = worst->summary.totals;
    if (totals.out_of_memory_count == 0) {
      return fmt::format("does not fit on {}: {} reserved and the context are more than its {}", plan.facts.gpu,
                         format_bytes(totals.peak_reserved_bytes.value_or(0)), memory);
    }
    return fmt::format("does not fit on {}: out of memory on {} with {} allocated and {} reserved of {}",
                       plan.facts.gpu, to_string(totals.device), format_bytes(totals.peak_allocated_bytes),
                       format_bytes(totals.peak_reserved_bytes.value_or(0)), memory);
  }
  std::uint64_t used = 0;
  for (const PlannedDevice& device : plan.devices) {
    used = std::max(used, device.device_used_bytes.value_or(device.summary.totals.peak_reserved_bytes.value_or(0)));
  }
  return fmt::format("fits on {}: at most {} of {} used{}, {} left", plan.facts.gpu, format_bytes(used), memory,
                     plan.facts.context_bytes ? "" : " without the context",
                     format_bytes(plan.facts.memory_bytes - used));
}

std::vector<std::string> uncertainties(const Plan& plan) {
  std::vector<std::string> found;
  const PlanFacts& facts = plan.facts;
  found.push_back(
      facts.context_bytes
          ? fmt::format("The context, {}, is what an H200 had with driver 580; it grows with the kernels "
                        "that are loaded, and other drivers differ.",
                        format_bytes(*facts.context_bytes))
          : fmt::format("The context of a process on {} was not measured; it takes some hundred MiB that are "
                        "not in the figures.",
                        facts.gpu));
  if (!facts.memory_measured) {
    found.push_back(fmt::format(
        "The memory of {}, {}, is what others report; it differs by driver and ECC by up to 1%, and --memory sets it.",
        facts.gpu, format_bytes(facts.memory_bytes)));
  }
  found.emplace_back(
      "What libraries take for themselves is not in the figures: cuBLAS took 128 MiB on an H200, NCCL some hundred MiB "
      "for "
      "each communicator.");
  if (facts.reads != 0) {
    found.push_back(
        fmt::format("The program read results from the GPU {} times. They are zeros here: where sizes or steps "
                    "depend on them, a real run differs.",
                    format_count(facts.reads)));
  }
  const std::pair<std::uint64_t, const char*> workspaces[] = {
      {facts.cudnn_estimates, "cuDNN"}, {facts.cusolver_estimates, "cuSOLVER"}, {facts.cufft_estimates, "cuFFT"}};
  for (const auto& [count, library] : workspaces) {
    if (count == 0) continue;
    found.push_back(fmt::format("{} workspaces of {} were estimated, not measured.", format_count(count), library));
  }
  if (facts.kernel_estimates != 0) {
    found.push_back(
        fmt::format("The machine code of {} kernels is not known for this GPU; workspaces that depend on it are "
                    "estimates.",
                    format_count(facts.kernel_estimates)));
  }
  if (!facts.unanswered.empty()) {
    found.push_back(
        fmt::format("The phantom GPU has no answer for {}; the calls failed, and what follows from them may "
                    "differ.",
                    list_of(facts.unanswered)));
  }
  return found;
}

}  // namespace tidemark
