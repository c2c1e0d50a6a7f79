#include "query/words/fragmentation.h"

#include <cmath>
#include <optional>
#include <string>
#include <string_view>

#include "base/units.h"
#include "query/results/common.h"
#include "query/results/results.h"
#include "query/words/simulation.h"

namespace tidemark {
namespace {

template <typename Trend>
OneOf<"rises", "falls", "unclear"> verdict_of(const Trend& trend) {
  return {trend.rises() ? "rises" : trend.falls() ? "falls" : "unclear"};
}

// Data of the forecast.
struct UnusedForecast {
  const UnusedMemory* unused = nullptr;
};

}  // namespace

template <typename Visitor>
void describe(Visitor& v, const FragmentationMeasures& measures) {
  v.type("FragmentationMeasures", "How fragmented a device's memory is at one time.");
  v.field("time_ns", measures.time_ns);
  v.field("allocated_bytes", measures.allocated);
  v.field("reserved_bytes", measures.reserved);
  v.field("active_bytes", measures.active);
  v.field("unused_share", measures.unused_share(), "1 - allocated / reserved");
  v.field("free_bytes", measures.free, "reserved and not active");
  v.field("free_block_count", measures.free_blocks);
  v.field("largest_free_block_bytes", measures.largest_free,
          "the largest request that needs no memory from the driver");
  v.field("external_fragmentation", measures.external_share(), "1 - largest free block / free");
  v.field("releasable_bytes", measures.releasable, "free, in segments that are free as a whole");
  v.field("inactive_split_bytes", measures.inactive_split, "free, in other segments that cannot grow");
  v.field("rounding_bytes", measures.rounding, "allocated beyond what was requested");
}

template <typename Visitor>
void describe(Visitor& v, const ShareTrend& trend) {
  v.type("ShareTrend", "Whether a share rises or falls since the warm-up, with its 95% interval.");
  v.field("change", trend.over_recording.value);
  v.field("low", trend.over_recording.low);
  v.field("high", trend.over_recording.high);
  v.field("point_count", trend.points);
  v.field("begin_ns", trend.begin_ns);
  v.field("end_ns", trend.end_ns);
  v.field("verdict", verdict_of(trend));
}

template <typename Visitor>
void describe(Visitor& v, const ByteTrend& trend) {
  v.type("UnusedTrend", "Whether unused memory rises or falls since the warm-up, with its 95% interval.");
  v.field("change_bytes", std::llround(trend.change.value));
  v.field("low_bytes", std::llround(trend.change.low));
  v.field("high_bytes", std::llround(trend.change.high));
  v.field("mb_per_minute", trend.change.value / trend.seconds() * 60 / static_cast<double>(kMiB), "in MiB");
  v.field("begin_ns", trend.begin_ns);
  v.field("end_ns", trend.end_ns);
  v.field("verdict", verdict_of(trend));
}

namespace {

template <typename Visitor>
void describe(Visitor& v, const UnusedForecast& forecast) {
  static const UnusedMemory kUnknown;
  const UnusedMemory& unused = forecast.unused == nullptr ? kUnknown : *forecast.unused;
  const std::optional<Interval>& time = unused.seconds_to_limit;
  v.type("UnusedForecast", "When unused memory takes what the device has left; `null`: it does not, or is not known.");
  v.field("device_free_bytes", unused.device_free, "at the end; null: not sampled");
  v.field("predicted_oom_time_seconds", when(time.has_value(), [&] { return time->expected; }), "from the end");
  v.field("earliest_seconds", when(time.has_value(), [&] { return time->earliest; }));
  v.field("latest_seconds", time ? time->latest : std::nullopt, "null: perhaps never");
  v.field(
      "text", [&] { return unused_forecast_text(unused); }, "a sentence");
}

}  // namespace

template <typename Visitor>
void describe(Visitor& v, const UnusedMemory& unused) {
  const bool known = unused.known();
  const bool held = unused.pattern == UnusedPattern::held_peak;
  v.type("UnusedMemory", "How reserved memory goes on that is in no tensor even when most is allocated.");
  v.field("pattern", named<kUnusedPatternNames>(unused.pattern), "as in the table above");
  v.field("pattern_text", [&] { return unused_pattern_text(unused); });
  v.field(
      "verdict", [&] { return fragmentation_verdict(unused); }, "a sentence");
  v.field("is_fragmented", when(known, [&] { return is_fragmented(unused); }),
          "null, as the next, for an unknown pattern");
  v.field("change_count", unused.changes, "allocations and frees in the time looked at");
  v.field("since_ns", when(known, unused.since_ns), "since when the pattern holds");
  v.field("reserved_bytes", when(known, unused.reserved), "at the end");
  v.field("idle_since_ns", when(known, unused.idle_since_ns));
  v.field("idle_bytes", when(known, unused.idle),
          "of reserved_bytes, more than was allocated at any one time since then");
  v.field("idle_share", when(known, [&] { return unused.idle_share(); }), "of reserved_bytes");
  v.field("period_seconds", unused.period_seconds, "of a sawtooth");
  v.field("peak_allocated_bytes", when(held, unused.peak_allocated), "held_peak: what was reserved for");
  v.field("peak_at_ns", when(held, unused.peak_at_ns));
  v.field("later_allocated_bytes", when(held, unused.later_allocated), "held_peak: at most, since then");
  v.field("trend", unused.trend);
  v.field("forecast", UnusedForecast{&unused});
}

template <typename Visitor>
void describe(Visitor& v, const FragmentationAdvice& advice, const UnusedMemory& unused,
              const RecordingInfo& recording) {
  const auto text = [&](std::string FragmentationAdviceText::*part) {
    return [&, part] { return advice_text(advice, unused, recording).*part; };
  };
  v.type("FragmentationAdvice", "What may be done about it, with the measured reason and a command that checks it.");
  v.field("kind", named<kFragmentationAdviceNames>(advice.kind));
  v.field("change", text(&FragmentationAdviceText::change));
  v.field("reason", text(&FragmentationAdviceText::reason), "what was measured");
  v.field("avoidable_bytes", advice.bytes);
  v.field(
      "settings",
      [&] {
        const std::string settings = advice_text(advice, unused, recording).settings;
        return settings.empty() ? std::optional<std::string>() : std::optional(settings);
      },
      "as in PYTORCH_CUDA_ALLOC_CONF");
  v.field("check", text(&FragmentationAdviceText::check), "a command");
}

template <typename Visitor>
void describe(Visitor& v, const MapBlock& block) {
  v.type("SegmentBlock", "A stretch of a segment.");
  v.field("address", block.address);
  v.field("bytes", block.size);
  v.field("state", named<kBlockStateNames>(block.state));
}

template <typename Visitor>
void describe(Visitor& v, const MapSegment& segment) {
  v.type("Segment", "Memory that the allocator reserved from the driver in one piece.");
  v.field("address", segment.address);
  v.field("bytes", segment.size);
  v.field("free_bytes", segment.bytes(MapBlock::State::free));
  v.field("expandable", segment.expandable);
  v.field("blocks", segment.blocks, "in order of address");
}
TIDEMARK_DESCRIBED(MapSegment);

template <typename Visitor>
void describe(Visitor& v, const PinningStack& row) {
  v.type("Pinning", "What keeps free memory reserved: blocks in the same segments.");
  v.field("pinned_free_bytes", row.pinned_free_bytes, "in segments that only these blocks hold");
  v.field("segment_count", row.segments, "with free memory in them");
  v.field("block_count", row.blocks, "in these segments, as the next");
  v.field("bytes", row.bytes);
  v.part(holder(row.stack));
}

template <typename Visitor>
void describe(Visitor& v, const SizeClass& row) {
  v.type("SizeClass", "Blocks of `min_bytes` and more, below the next class.");
  v.field("min_bytes", row.from);
  v.field("allocation_count", row.allocations, "in the whole recording");
  v.field("live_block_count", row.live_blocks);
  v.field("live_bytes", row.live_bytes);
  v.field("free_block_count", row.free_blocks);
  v.field("free_bytes", row.free_bytes);
}

template <typename Visitor>
void describe(Visitor& v, const FragmentationDevice& device, const RecordingInfo& recording) {
  v.type("FragmentationDevice", "Fragmentation of one device.");
  v.field("device", to_string(device.totals.device));
  v.field("peak_unused_share", device.peak_share(), "1 - peak active / peak reserved");
  v.field("at_peak_allocated", device.at_peak_allocated, "null: there is no such peak");
  v.field("at_peak_reserved", device.at_peak_reserved);
  v.field("at_end", device.at_end);
  v.field("over_time", device.over_time, "equally far apart, the last one at the end");
  v.field("unused_share_trend", device.unused.share_trend, "null: too few known values");
  v.field("external_fragmentation_trend", device.external_trend);
  v.field("unused_memory", device.unused);
  v.field("advice", in(device.advice, device.unused, recording), "empty: nothing is wrong, or too little is known");
  v.field("at_moment", device.at_moment, "--at");
  v.field("segments", device.segments, "at the moment; those with both blocks and free memory, most of it first");
  v.field("other_segment_count", device.other_segments);
  v.field("other_segments_free_bytes", device.other_free_bytes);
  v.field("empty_segment_count", device.empty_segments);
  v.field("pinning_stacks", device.pinning, "at the moment, most pinned free bytes first");
  v.field("other_pinning_stack_count", device.other_pinning);
  v.field("pinning_categories", device.pinning_categories, "all categories, likewise");
  v.field("size_classes", device.sizes, "at the moment; those with anything in them");
}

template <typename Visitor>
void describe(Visitor& v, const Fragmentation& fragmentation) {
  v.type("Fragmentation", "Reserved memory that is not allocated, and the blocks that keep it reserved.");
  v.part(fragmentation.recording);
  v.field("devices", in(fragmentation.devices, fragmentation.recording));
  v.field("simulation",
          when(fragmentation.simulation.has_value(), [&] { return cited_simulation_text(*fragmentation.simulation); }),
          "what other settings of the allocator would do, in words");
}
TIDEMARK_DESCRIBED(Fragmentation);

}  // namespace tidemark
