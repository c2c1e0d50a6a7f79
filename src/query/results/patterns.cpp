#include <cstddef>
#include <cstdint>
#include <vector>

#include "query/results/common.h"
#include "query/results/results.h"

namespace tidemark {
namespace {

struct FoundSteps {
  TrainingSteps::Source source = TrainingSteps::Source::none;
  std::uint64_t count = 0;
};

template <typename Visitor>
void describe(Visitor& v, const FoundSteps& steps) {
  v.type("StepsFound", "How training steps were told, and how many there are.");
  v.field("source", named<kStepSourceNames>(steps.source));
  v.field("count", steps.count);
}

struct HeldForALifetime {
  Lifetime lifetime = Lifetime::never_freed;
  LifetimeUsage held;
};

template <typename Visitor>
void describe(Visitor& v, const HeldForALifetime& one) {
  v.type("LifetimeAtPeak", "What blocks of one kind of lifetime held at the peak.");
  v.field("lifetime", named<kLifetimeNames>(one.lifetime));
  v.field("bytes", one.held.bytes);
  v.field("block_count", one.held.blocks);
}

std::vector<HeldForALifetime> lifetimes_at_peak(const PatternsDevice& device) {
  std::vector<HeldForALifetime> list;
  for (std::size_t index = 0; index < kLifetimes; ++index) {
    if (device.held[index].blocks != 0) list.push_back({static_cast<Lifetime>(index), device.held[index]});
  }
  return list;
}

}  // namespace

template <typename Visitor>
void describe(Visitor& v, const PatternRow& row) {
  v.type("PatternRow", "A stack whose blocks have the pattern.");
  v.field("held_at_peak_bytes", row.peak_bytes, "and would not be");
  v.field("held_at_peak_block_count", row.peak_blocks);
  v.field("block_count", row.count, "in the whole recording, as the next");
  v.field("total_bytes", row.bytes);
  v.field("stack", known(row.stack));
}

template <typename Visitor>
void describe(Visitor& v, const Pattern& pattern, const PatternsDevice& device) {
  v.type("Pattern", "Blocks that were kept longer than they were needed, and the peak without that.");
  v.field("block_count", pattern.count, "in the whole recording");
  v.field("held_at_peak_bytes", pattern.peak_bytes);
  v.field("reduced_peak_bytes", pattern.reduced_peak_bytes, "had each of these blocks been freed earlier");
  v.field("reduced_peak_at_ns", pattern.reduced_peak_at_ns);
  v.field(
      "avoidable_peak_bytes", [&] { return device.avoidable_peak_bytes(pattern); }, "at most what that saves");
  v.field("rows", pattern.rows, "most bytes at the peak first");
  v.field("other_row_count", pattern.other_rows);
  v.field("other_held_at_peak_bytes", pattern.other_peak_bytes);
}

template <typename Visitor>
void describe(Visitor& v, const PatternsDevice& device) {
  const DeviceSummary& totals = device.totals;
  v.type("PatternsDevice", "The patterns of one device.");
  v.field("device", to_string(totals.device));
  v.field("peak_allocated_bytes", totals.peak_allocated_bytes);
  v.field("peak_allocated_at_ns", totals.peak_allocated_at_ns);
  v.field("unrecorded_at_peak_bytes", device.unrecorded_at_peak_bytes(), "in no recorded block");
  v.field("lifetimes_at_peak", lifetimes_at_peak(device), "those that held memory");
  v.field("advice", device.advice, "most saving first");
  v.field("kept_into_next_step", in(device.kept_into_next_step, device),
          "alive when the next block of the stack is allocated, a step later; null without steps");
  v.field("freed_after_allocation", in(device.freed_after_allocation, device),
          "freed right after another allocation: perhaps the input of an operation that could be in place");
}

template <typename Visitor>
void describe(Visitor& v, const Patterns& patterns) {
  v.type("Patterns", "Avoidable peak memory, by lifetime of the allocations.");
  v.part(patterns.recording);
  v.field("steps", FoundSteps{patterns.steps_source, patterns.steps}, "as in `leaks`");
  v.field("devices", patterns.devices);
}
TIDEMARK_DESCRIBED(Patterns);

}  // namespace tidemark
