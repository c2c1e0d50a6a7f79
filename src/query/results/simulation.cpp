#include "query/words/simulation.h"

#include <cstddef>
#include <string>
#include <vector>

#include "query/results/common.h"
#include "query/results/results.h"

namespace tidemark {

template <typename Visitor>
void describe(Visitor& v, const AllocatorState& state) {
  v.type("AllocatorState", "The allocator at one time.");
  v.field("allocated_bytes", state.allocated);
  v.field("reserved_bytes", state.reserved);
  v.field("largest_free_bytes", state.largest_free, "block in a segment");
  v.field("free_block_count", state.free_blocks);
}

template <typename Visitor>
void describe(Visitor& v, const AllocatorOutcome& outcome) {
  v.type("AllocatorOutcome", "What the allocator did.");
  v.field("peak_allocated_bytes", outcome.peak_allocated);
  v.field("peak_reserved_bytes", outcome.peak_reserved);
  v.field("peak_active_bytes", outcome.peak_active);
  v.field("peak_inactive_split_bytes", outcome.peak_inactive_split);
  v.field("retry_count", outcome.retries, "the cache was emptied for lack of memory");
  v.field("segment_count", outcome.segments, "reserved from the driver in all; those that grow do not count");
  v.field("end_segment_count", outcome.end_segments);
  v.field("at_recorded_peak", outcome.at_peak, "at the recorded peak of allocated memory");
  v.field("at_end", outcome.at_end);
}

namespace {

struct OutcomeOnDevice {
  Device device;
  AllocatorOutcome outcome;
};

template <typename Visitor>
void describe(Visitor& v, const OutcomeOnDevice& on) {
  v.type("DeviceOutcome", "What the allocator did on one device.");
  v.field("device", to_string(on.device));
  v.part(on.outcome);
}

std::vector<OutcomeOnDevice> by_device(const Simulation& simulation, const SimulatedSettings& run) {
  std::vector<OutcomeOnDevice> list;
  for (std::size_t index = 0; index < run.devices.size(); ++index) {
    list.push_back({simulation.devices[index].device, run.devices[index]});
  }
  return list;
}

}  // namespace

template <typename Visitor>
void describe(Visitor& v, const SimulatedSettings& run, const Simulation& simulation) {
  v.type("SimulatedRun", "The recording replayed under some settings of the allocator.");
  v.field("settings", run.settings, R"(as in PYTORCH_CUDA_ALLOC_CONF; "": the defaults)");
  v.field("peak_reserved_bytes", run.peak_reserved(), "of all devices");
  v.field("saved_bytes", simulation.saving(run), "negative: it takes more; null where memory ran out before the end");
  v.field("retry_count", run.retries());
  v.field("out_of_memory_at_ns", run.out_of_memory_ns, "where it did not in the recording: the replay ends there");
  v.field("passed_failure_count", run.passed_failures, "requests that failed when recorded, and did not here");
  v.field("devices", by_device(simulation, run));
}

template <typename Visitor>
void describe(Visitor& v, const SimulatedDevice& device) {
  v.type("SimulatedDevice", "A device as it was recorded.");
  v.field("device", to_string(device.device));
  v.field("limit_bytes", device.limit, "that the process can reserve; null: without a limit");
  v.field("recorded", device.recorded);
}

template <typename Visitor>
void describe(Visitor& v, const Simulation& simulation) {
  v.type("Simulation", "What other settings of the allocator would have done.");
  v.part(simulation.recording);
  v.field("replayed_by", one_of<"pytorch", "model">(simulation.torch_version.empty() ? "model" : "pytorch"));
  v.field("torch_version", known_text(simulation.torch_version), "whose allocator replayed");
  v.field("settings_known", simulation.settings_known, "the recorded ones; otherwise taken to be the defaults");
  v.field("sizes_known", simulation.exact_sizes, "the requested ones; otherwise those of the blocks");
  v.field("start_block_count", simulation.blocks_at_start, "blocks that were there before the first event");
  v.field("failed_request_count", simulation.recorded_failures);
  v.field("limit_by_fraction", simulation.limit_by_fraction, "as torch.cuda.set_per_process_memory_fraction() sets it");
  v.field("devices", simulation.devices);
  v.field("reserved_error_bytes", simulation.reserved_error(),
          "recorded peak reserved less the replayed one: 0 where the replay is exact");
  v.field("as_recorded", in(simulation.check, simulation), "under the recorded settings");
  v.field("runs", in(simulation.runs, simulation), "best first");
  v.field("notes", [&] { return simulation_sentences(simulation); });
}
TIDEMARK_DESCRIBED(Simulation);

}  // namespace tidemark
