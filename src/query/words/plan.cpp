#include "query/words/plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/units.h"
#include "query/words/printable.h"

namespace tidemark {
namespace {

std::string list_of(const std::vector<std::string>& names) {
  constexpr std::size_t kMaxListed = 8;
  std::string text;
  for (std::size_t index = 0; index < std::min(names.size(), kMaxListed); ++index) {
    text += (index == 0 ? "" : ", ") + printable(names[index]);
  }
  if (names.size() > kMaxListed) text += fmt::format(" and {} more", names.size() - kMaxListed);
  return text;
}

bool has_communicators(const PlanFacts& facts) {
  return std::any_of(facts.processes.begin(), facts.processes.end(),
                     [](const PlannedProcess& process) { return process.communicators != 0; });
}

std::string does_not_fit_text(const Plan& plan) {
  const PlannedDevice& worst = plan.devices.front();
  const DeviceSummary& totals = worst.summary.totals;
  const std::string memory = format_bytes(plan.facts.memory_bytes);
  const std::string reserved = format_bytes(peak_reserved_bytes(worst));
  if (totals.out_of_memory_count != 0) {
    return fmt::format("does not fit on {}: out of memory on {} with {} allocated and {} reserved of {}",
                       plan.facts.gpu, to_string(totals.device), format_bytes(totals.peak_allocated_bytes), reserved,
                       memory);
  }
  if (worst.process_count > 1) {
    return fmt::format("does not fit on {}: the {} processes on GPU {} take more than its {} together", plan.facts.gpu,
                       worst.process_count, worst.gpu, memory);
  }
  return fmt::format("does not fit on {}: {} reserved and the context are more than its {}", plan.facts.gpu, reserved,
                     memory);
}

}  // namespace

std::string verdict_text(const Plan& plan) {
  if (!plan.fits) return does_not_fit_text(plan);
  std::uint64_t used = 0;
  for (const PlannedDevice& device : plan.devices) {
    used = std::max(used, device.device_used_bytes);
  }
  const std::string in_steps = plan.steps == 0 ? "" : " in " + steps_text(plan);
  // With more memory than the GPU has, a plan shows what the program needs.
  const bool is_larger = plan.facts.memory_bytes > plan.facts.own_memory_bytes && plan.facts.own_memory_bytes != 0;
  const std::string gpu =
      is_larger ? fmt::format("a GPU like {} with {}", plan.facts.gpu, format_bytes(plan.facts.memory_bytes))
                : plan.facts.gpu;
  return fmt::format("fits on {}: at most {} of {} used{}, {} left", gpu, format_bytes(used),
                     format_bytes(plan.facts.memory_bytes), in_steps,
                     format_bytes(plan.facts.memory_bytes - std::min(used, plan.facts.memory_bytes)));
}

std::string need_text(const PlanNeed& need) {
  std::string text = fmt::format("needs {} on each GPU: ", format_bytes(need.bytes));
  text += need.enough.empty() ? "more than any known GPU has" : "fits on " + list_of(need.enough);
  if (!need.too_small.empty()) text += "; not on " + printable(need.too_small);
  return text;
}

std::string steps_text(const Plan& plan) {
  return fmt::format("{} {}{}", format_count(plan.steps), plan.steps_by_marks ? "step" : "training step",
                     plan.steps == 1 ? "" : "s");
}

std::vector<std::string> uncertainties(const Plan& plan) {
  std::vector<std::string> found;
  const PlanFacts& facts = plan.facts;
  found.push_back(
      facts.context_measured
          ? fmt::format("The context, {}, was measured on {}; other drivers differ.", format_bytes(facts.context_bytes),
                        facts.gpu)
          : fmt::format(
                "The CUDA context of a process was not measured on {}; it is assumed to take {}, as on an H200.",
                facts.gpu, format_bytes(facts.context_bytes)));
  if (!facts.memory_measured) {
    found.push_back(fmt::format(
        "The memory of {}, {}, is what others report; it differs by driver and ECC by up to 1%, and --memory sets it.",
        facts.gpu, format_bytes(facts.memory_bytes)));
  }
  std::uint64_t driver_bytes = 0;
  for (const PlannedDevice& device : plan.devices) driver_bytes = std::max(driver_bytes, device.driver_bytes);
  if (driver_bytes != 0) {
    found.push_back(
        fmt::format("What cuBLAS, cuDNN and the code of kernels take beside the context, {}, is an estimate from 107 "
                    "programs on an "
                    "H200.",
                    format_bytes(driver_bytes)));
  }
  if (has_communicators(facts)) {
    found.push_back(
        facts.nccl ? fmt::format(
                         "What NCCL takes is an estimate from two H200: {} for the first communicator of a process, {} "
                         "for each further one.",
                         format_bytes(facts.nccl->first), format_bytes(facts.nccl->further))
                   : "What NCCL takes is not in the figures: some hundred MiB for each communicator.");
  }
  if (facts.interrupted) {
    found.push_back(fmt::format("The program was interrupted after {}.", steps_text(plan)));
  }
  if (facts.stopped) {
    found.push_back(
        fmt::format("The program was ended after {}: what follows, such as an evaluation, is not in the figures; "
                    "--steps 0 plans it.",
                    steps_text(plan)));
  }
  if (plan.steps == 1 && !plan.steps_by_marks) {
    found.emplace_back(
        "In the first training step some optimizers allocate their state only at its end; the second may take "
        "more.");
  }
  if (facts.idle_optimizers != 0) {
    found.push_back(
        fmt::format("{} made no step: what it would take is not in the figures.",
                    facts.idle_optimizers == 1 ? "An optimizer" : fmt::format("{} optimizers", facts.idle_optimizers)));
  }
  const auto shared = std::find_if(plan.devices.begin(), plan.devices.end(),
                                   [](const PlannedDevice& device) { return device.process_count > 1; });
  if (shared != plan.devices.end()) {
    found.push_back(
        fmt::format("{} processes use GPU {}: what they held at once may be more where they run at another pace.",
                    shared->process_count, shared->gpu));
  }
  if (facts.reads != 0) {
    found.push_back(fmt::format(
        "The program read {} from the GPU that the plan does not know and takes for zero: where sizes or "
        "steps depend on {}, a real run differs.",
        facts.reads == 1 ? "a result" : format_count(facts.reads) + " results", facts.reads == 1 ? "it" : "them"));
  }
  const std::pair<std::uint64_t, const char*> workspaces[] = {{facts.cudnn_estimates, "cuDNN"},
                                                              {facts.cusolver_estimates, "cuSOLVER"},
                                                              {facts.cufft_estimates, "cuFFT"},
                                                              {facts.cusparse_estimates, "cuSPARSE"}};
  for (const auto& [count, library] : workspaces) {
    if (count == 0) continue;
    found.push_back(fmt::format("{} of {} {} estimated, not measured.",
                                count == 1 ? "A workspace" : format_count(count) + " workspaces", library,
                                count == 1 ? "was" : "were"));
  }
  if (facts.kernel_estimates != 0) {
    found.push_back(
        fmt::format("The machine code of {} is not known for this GPU; workspaces that depend on it are estimates.",
                    facts.kernel_estimates == 1 ? "a kernel" : format_count(facts.kernel_estimates) + " kernels"));
  }
  if (!facts.unanswered.empty()) {
    found.push_back(
        fmt::format("The simulated GPU does not implement {}; these calls failed, so a real run may "
                    "differ.",
                    list_of(facts.unanswered)));
  }
  return found;
}

}  // namespace tidemark
