#include "analyze/plan.h"

namespace tidemark {

void add_to_plan(Plan& plan, const Summary& summary) {
  for (const SummaryDevice& used : summary.devices) {
    if (used.totals.device.type != DeviceType::cuda || !used.totals.peak_allocated_at_ns) continue;
    PlannedDevice& device = plan.devices.emplace_back();
    device.recording = summary.recording;
    device.summary = used;
    const std::uint64_t memory = plan.facts.memory_bytes;
    const std::uint64_t reserved = used.totals.peak_reserved_bytes.value_or(used.totals.peak_allocated_bytes);
    const std::uint64_t with_context = reserved + plan.facts.context_bytes.value_or(0);
    device.fits = used.totals.out_of_memory_count == 0 && with_context <= memory;
    if (plan.facts.context_bytes) {
      device.device_used_bytes = with_context;
      device.headroom_bytes = device.fits ? memory - with_context : 0;
    }
    plan.fits = plan.fits && device.fits;
  }
}

}  // namespace tidemark
