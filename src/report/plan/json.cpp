#include "report/common/json.h"

#include <utility>

#include "analyze/plan/plan.h"
#include "report/common/json_parts.h"
#include "report/plan/words.h"

namespace tidemark {

std::string to_json(const Plan& plan) {
  const PlanFacts& facts = plan.facts;
  const std::vector<std::string> uncertain = uncertainties(plan);
  Json object = {{"fits", plan.fits},
                 {"verdict", verdict_text(plan)},
                 {"gpu", facts.gpu},
                 {"memory_bytes", facts.memory_bytes},
                 {"context_bytes", facts.context_bytes},
                 {"context_measured", facts.context_measured},
                 {"steps", plan.steps},
                 {"steps_by", plan.steps == 0 ? Json(nullptr) : Json(plan.steps_by_marks ? "marks" : "optimizers")},
                 {"stopped", facts.stopped},
                 {"torch_version", facts.torch_version},
                 {"exit_code", nullable(facts.exit_code)},
                 {"read_count", facts.reads},
                 {"cudnn_estimate_count", facts.cudnn_estimates},
                 {"cusolver_estimate_count", facts.cusolver_estimates},
                 {"cufft_estimate_count", facts.cufft_estimates},
                 {"kernel_estimate_count", facts.kernel_estimates},
                 {"idle_optimizer_count", facts.idle_optimizers},
                 {"unanswered_functions", facts.unanswered},
                 {"devices", Json::array()}};
  for (const PlannedDevice& device : plan.devices) {
    const DeviceSummary& totals = device.summary.totals;
    Json libraries = Json::array();
    for (const PlannedLibrary& library : device.libraries) {
      libraries.push_back({{"name", library.name}, {"peak_bytes", library.peak_bytes}});
    }
    object["devices"].push_back({{"file", device.recording.path},
                                 {"rank", nullable(device.recording.process.rank)},
                                 {"device", to_string(totals.device)},
                                 {"gpu_index", device.gpu},
                                 {"process_count", device.process_count},
                                 {"steps", device.steps},
                                 {"fits", device.fits},
                                 {"peak_allocated_bytes", totals.peak_allocated_bytes},
                                 {"peak_reserved_bytes", nullable(totals.peak_reserved_bytes)},
                                 {"driver_bytes", device.driver_bytes},
                                 {"nccl_bytes", device.nccl_bytes},
                                 {"libraries", std::move(libraries)},
                                 {"device_used_bytes", device.device_used_bytes},
                                 {"headroom_bytes", device.headroom_bytes},
                                 {"out_of_memory_count", totals.out_of_memory_count},
                                 {"uncertain", uncertain}});
  }
  return print_json({std::move(object)});
}

}  // namespace tidemark
