// A plan, and how it compares with a real run.
#include "query/words/plan.h"

#include <optional>
#include <string>
#include <vector>

#include "query/results/common.h"
#include "query/results/results.h"

namespace tidemark {

template <typename Visitor>
void describe(Visitor& v, const PlannedLibrary& library) {
  v.type("PlannedLibrary", "A library that takes memory of the GPU besides PyTorch's allocator.");
  v.field("name", library.name, "of its file");
  v.field("peak_bytes", library.peak_bytes);
}

template <typename Visitor>
void describe(Visitor& v, const PlannedDevice& device, const std::vector<std::string>& uncertain) {
  const DeviceSummary& totals = device.summary.totals;
  v.type("PlannedDevice", "A GPU on which a process allocates.");
  v.field("file", device.recording.path, "the process's recording");
  v.field("rank", device.recording.process.rank);
  v.field("device", to_string(totals.device));
  v.field("gpu_index", device.gpu, "among the planned GPUs");
  v.field("process_count", device.process_count, "on this GPU");
  v.field("steps", device.steps, "training steps of the process");
  v.field("fits", device.fits);
  v.field("peak_allocated_bytes", totals.peak_allocated_bytes);
  v.field("peak_reserved_bytes", totals.peak_reserved_bytes);
  v.field("peak_model_bytes", when(device.summary.peak_model_bytes != 0, device.summary.peak_model_bytes),
          "maximum of parameters, gradients and optimizer states at one time; null: not known");
  v.field("driver_bytes", device.driver_bytes, "an estimate for cuBLAS, cuDNN and the code of kernels");
  v.field("nccl_bytes", device.nccl_bytes, "an estimate for the process's communicators; 0 also where it is not known");
  v.field("libraries", device.libraries, "in device_used_bytes");
  v.field("device_used_bytes", device.device_used_bytes, "at most, by all processes of the GPU");
  v.field("headroom_bytes", device.headroom_bytes, "memory less that; 0 where it does not fit");
  v.field("out_of_memory_count", totals.out_of_memory_count);
  v.field("leak_bytes_per_step", when(device.leaks != nullptr, [&] { return device.leaks->bytes_per_step; }),
          "growth by all leaks of the process; null: none was found");
  v.field("uncertain", uncertain, "what the figures do not say for certain, one sentence each");
}

template <typename Visitor>
void describe(Visitor& v, const Plan& plan) {
  const PlanFacts& facts = plan.facts;
  v.type("Plan", "How much memory a program would take on a GPU.");
  v.field("fits", plan.fits, "on all GPUs");
  v.field(
      "verdict", [&] { return verdict_text(plan); }, "a sentence");
  v.field("gpu", facts.gpu);
  v.field("memory_bytes", facts.memory_bytes, "of each device, as its driver reports it");
  v.field("context_bytes", facts.context_bytes, "of the driver's context, an estimate");
  v.field("context_measured", facts.context_measured, "on this GPU; otherwise it is that of an H200");
  v.field("pinned_bytes", plan.pinned_bytes, "page-locked memory of the host: the sum of all processes' peaks");
  v.field("steps", plan.steps, "training steps that all ranks made");
  v.field("steps_by",
          when(plan.steps != 0, one_of<"marks", "optimizers">(plan.steps_by_marks ? "marks" : "optimizers")),
          "how these are counted");
  v.field("stopped", facts.stopped, "the plan ended the program after the last step that was asked for");
  v.field("torch_version", facts.torch_version);
  v.field("exit_code", facts.exit_code, "of the program; null when a signal ended it, or the plan after its last step");
  v.field("read_count", facts.reads, "results that the program read and the plan does not know: zeros here");
  v.field("cudnn_estimate_count", facts.cudnn_estimates, "operations whose workspace was estimated, as the next two");
  v.field("cusolver_estimate_count", facts.cusolver_estimates);
  v.field("cufft_estimate_count", facts.cufft_estimates);
  v.field("cusparse_estimate_count", facts.cusparse_estimates);
  v.field("kernel_estimate_count", facts.kernel_estimates, "kernels whose machine code for this GPU is not known");
  v.field("idle_optimizer_count", facts.idle_optimizers,
          "that made no step though they have parameters of their own on a GPU");
  v.field("unanswered_functions", facts.unanswered, "of CUDA, that the phantom GPU has no answer for");
  const std::vector<std::string> uncertain = uncertainties(plan);
  v.field("devices", in(plan.devices, uncertain), "those with least headroom first");
}
TIDEMARK_DESCRIBED(Plan);

template <typename Visitor>
void describe(Visitor& v, const VerifiedPeaks& peaks) {
  v.type("VerifiedPeaks", "Peaks and number of allocations.");
  v.field("peak_allocated_bytes", peaks.allocated);
  v.field("peak_reserved_bytes", peaks.reserved);
  v.field("allocation_count", peaks.allocations);
}

template <typename Visitor>
void describe(Visitor& v, const Event& event) {
  v.type("VerifiedEvent", "An event of the allocator.");
  v.field("kind", named<kEventKindNames>(event.kind));
  v.field("bytes", event.size);
  v.field("allocated_bytes", event.total_allocated, "after it, as the next");
  v.field("reserved_bytes", event.total_reserved);
}

template <typename Visitor>
void describe(Visitor& v, const EventDifference& difference) {
  v.type("EventDifference", "The first event that differs.");
  v.field("index", difference.index, "of the planned events, from 0");
  v.field("planned", difference.planned);
  v.field("real", difference.real);
}

template <typename Visitor>
void describe(Visitor& v, const VerifiedDevice& device) {
  v.type("VerifiedDevice", "A device of the plan, and of the real run.");
  v.field("rank", device.rank);
  v.field("device", to_string(device.device));
  v.field("within_tolerance", device.within_tolerance, "both peaks");
  v.field("event_count", device.event_count, "of the plan");
  v.field("planned", device.planned, "and real: up to that number of events");
  v.field("real", device.real);
  v.field("first_difference", device.difference, "null: all events are equal");
}

template <typename Visitor>
void describe(Visitor& v, const Verification& verification) {
  v.type("Verification", "A plan compared with a real run.");
  v.field("equal", verification.equal, "every event, on all devices");
  v.field("within_tolerance", verification.within_tolerance, "both peaks, on all devices");
  v.field("tolerance_share", kVerifyTolerance);
  v.field("devices", verification.devices);
}
TIDEMARK_DESCRIBED(Verification);

}  // namespace tidemark
