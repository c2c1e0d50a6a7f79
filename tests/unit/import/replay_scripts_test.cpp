// Short traces with totals computed by hand: the allocator's behaviour, and contradictory traces.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <vector>

#include "import/pytorch_snapshot/load_snapshot.h"
#include "unit/import/replay_support.h"

namespace tidemark::pytorch::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr std::uint64_t kBase = std::uint64_t{0x7f00} << 32;
constexpr std::uint64_t kMax = std::numeric_limits<std::uint64_t>::max();

TEST(ReplayScripts, RestOfAMebibyteStaysWithALargeBlock) {
  Script script;
  script.segment(kBase, 20 * kMiB).alloc(kBase, 19 * kMiB);
  script.final_segment(kBase, 20 * kMiB).block(20 * kMiB, 19 * kMiB);
  CheckingSink sink;
  const ReplaySummary summary = replay_checked(script.snapshot, sink);
  EXPECT_EQ(summary.end, (MemoryTotals{20 * kMiB, 20 * kMiB, 20 * kMiB, 19 * kMiB, 0}));
  EXPECT_TRUE(summary.quality.exact());
  EXPECT_THAT(summary.quality.issues(), IsEmpty());
}

// torch before 2.3 does not write its settings.
TEST(ReplayScripts, SaysThatSettingsAreNotKnown) {
  Script script;
  script.segment(kBase, 20 * kMiB).alloc(kBase, 19 * kMiB);
  script.final_segment(kBase, 20 * kMiB).block(20 * kMiB, 19 * kMiB);
  script.snapshot.settings.reset();
  CheckingSink sink;
  const ReplaySummary summary = replay_checked(script.snapshot, sink);
  EXPECT_EQ(summary.end.allocated, 20 * kMiB);
  EXPECT_FALSE(summary.quality.exact());
  EXPECT_THAT(names_of(summary.quality), ElementsAre("no_settings"));
}

TEST(ReplayScripts, FreeNeighboursAreOneBlockAgain) {
  Script script;
  script.segment(kBase, 2 * kMiB).alloc(kBase, 100).alloc(kBase + 512, 600).alloc(kBase + 1536, 512);
  script.free(kBase, 100).free(kBase + 512, 600);  // entries 4 to 7: 1536 bytes free in front
  script.alloc(kBase, 1500).free(kBase, 1500).free(kBase + 1536, 512);
  script.final_segment(kBase, 2 * kMiB).block(2 * kMiB, 0);
  CheckingSink sink;
  const ReplaySummary summary = replay_checked(script.snapshot, sink);
  EXPECT_EQ(sink.after(3), (MemoryTotals{2048, 2048, 2 * kMiB, 1212, 2 * kMiB - 2048}));
  EXPECT_EQ(sink.after(7), (MemoryTotals{512, 512, 2 * kMiB, 512, 2 * kMiB - 512}));
  EXPECT_EQ(sink.after(8), (MemoryTotals{2048, 2048, 2 * kMiB, 2012, 2 * kMiB - 2048}));
  EXPECT_EQ(summary.end, (MemoryTotals{0, 0, 2 * kMiB, 0, 0}));
  EXPECT_TRUE(summary.quality.exact());
}

TEST(ReplayScripts, BlockThatAnotherStreamUsesStaysActive) {
  Script script;
  script.segment(kBase, 20 * kMiB).alloc(kBase, 4 * kMiB).request(kBase, 4 * kMiB);
  script.alloc(kBase + 4 * kMiB, 2 * kMiB).complete(kBase, 4 * kMiB);
  script.final_segment(kBase, 20 * kMiB).block(4 * kMiB, 0).block(2 * kMiB, 2 * kMiB).block(14 * kMiB, 0);
  CheckingSink sink;
  const ReplaySummary summary = replay_checked(script.snapshot, sink);
  EXPECT_EQ(sink.after(2), (MemoryTotals{0, 4 * kMiB, 20 * kMiB, 4 * kMiB, 16 * kMiB}));
  EXPECT_EQ(summary.peak, (MemoryTotals{4 * kMiB, 6 * kMiB, 20 * kMiB, 6 * kMiB, 18 * kMiB}));
  EXPECT_TRUE(summary.quality.exact());
}

TEST(ReplayScripts, MappedPiecesJoin) {
  Script script;
  script.add(Action::segment_map, kBase, 20 * kMiB).add(Action::segment_map, kBase + 20 * kMiB, 20 * kMiB);
  script.alloc(kBase, 25 * kMiB).free(kBase, 25 * kMiB).add(Action::segment_unmap, kBase, 20 * kMiB);
  script.final_segment(kBase + 20 * kMiB, 20 * kMiB, true).block(20 * kMiB, 0);
  CheckingSink sink;
  const ReplaySummary summary = replay_checked(script.snapshot, sink);
  EXPECT_EQ(sink.after(2), (MemoryTotals{25 * kMiB, 25 * kMiB, 40 * kMiB, 25 * kMiB, 0}));
  EXPECT_EQ(summary.end, (MemoryTotals{0, 0, 20 * kMiB, 0, 0}));
  EXPECT_TRUE(summary.quality.exact());
}

TEST(ReplayScripts, ReportsFailuresAndMarks) {
  Script script;
  script.add(Action::out_of_memory, 3 * kMiB, 64 * kMiB).add(Action::user_defined, 0, 0).add(Action::snapshot, 0, 0);
  CheckingSink sink;
  replay_checked(script.snapshot, sink);
  ASSERT_EQ(sink.ooms.size(), 1U);
  EXPECT_EQ(sink.ooms[0].requested, 64 * kMiB);
  EXPECT_EQ(sink.ooms[0].device_free, 3 * kMiB);
  EXPECT_THAT(sink.marks, ElementsAre(Action::user_defined, Action::snapshot));
}

TEST(ReplayScripts, ReportsAnnotatedBlocks) {
  Script script;
  script.add(Action::segment_alloc, 0, 2 * kMiB).add(Action::allocate, 0, 512).add(Action::allocate, 512, 512);
  script.add(Action::annotate, 512, 512).add(Action::free_requested, 512, 512).add(Action::annotate, 512, 512);
  script.add(Action::free_completed, 512, 512).add(Action::annotate, 512, 0).add(Action::annotate, kMiB, 0);
  CheckingSink sink;
  const ReplaySummary summary = replay_checked(script.snapshot, sink);
  EXPECT_THAT(sink.annotated_blocks, ElementsAre(1, 1)) << "in use, then pending; free memory is nobody's";
  EXPECT_EQ(summary.peak.allocated, 1024U) << "and nothing else changes";
}

// A block freed, and one never touched: both, and their segment, were there before.
TEST(ReplayScripts, FindsInitialBlocks) {
  Script script;
  script.free(kBase, 3 * kMiB);
  script.final_segment(kBase, 20 * kMiB).block(3 * kMiB, 0).block(8 * kMiB, 8 * kMiB - 1).block(9 * kMiB, 0);
  CheckingSink sink;
  const ReplaySummary summary = replay_checked(script.snapshot, sink);
  EXPECT_EQ(summary.start, (MemoryTotals{11 * kMiB, 11 * kMiB, 20 * kMiB, 11 * kMiB - 1, 9 * kMiB}));
  EXPECT_EQ(summary.end, (MemoryTotals{8 * kMiB, 8 * kMiB, 20 * kMiB, 8 * kMiB - 1, 12 * kMiB}));
  EXPECT_EQ(summary.quality.initial_blocks, 2U);
  EXPECT_EQ(summary.quality.uncertain_blocks, 0U);  // bounded by the other one
  const QualityIssue lost{QualityId::trace_start_lost, 1, {{"bytes", QualityBytes{11 * kMiB}}, {"blocks", 2U}}};
  EXPECT_THAT(summary.quality.issues(), ElementsAre(lost));
}

TEST(ReplayScripts, ReportsUncertaintyOfTheBeginning) {
  Script script;
  script.free(kBase, 3 * kMiB);
  script.final_segment(kBase, 20 * kMiB).block(20 * kMiB, 0);
  CheckingSink sink;
  const ReplaySummary summary = replay_checked(script.snapshot, sink);
  EXPECT_EQ(summary.start.allocated, 3 * kMiB);
  EXPECT_EQ(summary.quality.uncertain_blocks, 1U);
  EXPECT_EQ(summary.quality.uncertain_bytes, kMiB);  // up to so much of the memory behind it may have been its own
}

TEST(ReplayScripts, TakesSizesFromTheFinalState) {
  Script script;
  script.segment(kBase, 20 * kMiB).alloc(kBase, 4 * kMiB);
  script.final_segment(kBase, 20 * kMiB).block(4 * kMiB + 512, 4 * kMiB).block(16 * kMiB - 512, 0);
  CheckingSink sink;
  const ReplaySummary summary = replay_checked(script.snapshot, sink);
  EXPECT_EQ(summary.end.allocated, 4 * kMiB + 512);
  EXPECT_EQ(summary.quality.sizes_corrected, 1U);
  EXPECT_EQ(summary.quality.final_blocks_different, 0U);
}

TEST(ReplayScripts, TracesMayHaveCompletionsOnly) {
  Script script;
  script.segment(kBase, 2 * kMiB).alloc(kBase, 512).complete(kBase, 512).alloc(kBase, 512).complete(kBase, 512);
  script.final_segment(kBase, 2 * kMiB).block(2 * kMiB, 0);
  CheckingSink sink;
  const ReplaySummary summary = replay_checked(script.snapshot, sink);
  EXPECT_EQ(summary.end, (MemoryTotals{0, 0, 2 * kMiB, 0, 0}));
  EXPECT_EQ(sink.implied, 2U);
  EXPECT_TRUE(summary.quality.exact());
}

TEST(ReplayScripts, TracesMayHaveRequestsOnly) {
  Script script;
  script.segment(kBase, 2 * kMiB).alloc(kBase, 512).request(kBase, 512).alloc(kBase, 512).request(kBase, 512);
  script.final_segment(kBase, 2 * kMiB).block(2 * kMiB, 0);
  CheckingSink sink;
  const ReplaySummary summary = replay_checked(script.snapshot, sink);
  EXPECT_EQ(summary.end, (MemoryTotals{0, 0, 2 * kMiB, 0, 0}));
  EXPECT_EQ(sink.implied, 2U);
  EXPECT_TRUE(summary.quality.exact());
}

TEST(ReplayScripts, CountsImpossibleFrees) {
  Script script;
  script.segment(kBase, 2 * kMiB).alloc(kBase, 512).alloc(kBase + 512, 512);
  script.request(kBase, 512).request(kBase, 512).complete(kBase, 512);  // requested twice
  script.complete(kBase + 512, 512);                                    // never requested
  script.free(kBase + 4096, 512);                                       // never allocated
  script.final_segment(kBase, 2 * kMiB).block(2 * kMiB, 0);
  CheckingSink sink;
  const ReplayQuality quality = replay_checked(script.snapshot, sink).quality;
  EXPECT_EQ(quality.double_frees, 1U);
  EXPECT_EQ(quality.implied_requests, 1U);
  EXPECT_EQ(quality.unknown_frees, 1U);
  EXPECT_EQ(quality.final_blocks_extra, 0U);
  EXPECT_FALSE(quality.exact());
}

TEST(ReplayScripts, CountsImpossibleAllocations) {
  Script script;
  script.segment(kBase, 2 * kMiB).alloc(kBase, 2048).alloc(kBase, 512);  // over a block in use
  script.alloc(kBase + 64 * kMiB, 3 * kMiB);                             // outside every segment
  script.alloc(kMax - 511, 4096);                                        // past the end of memory
  CheckingSink sink;
  const ReplaySummary summary = replay_checked(script.snapshot, sink);
  EXPECT_EQ(summary.quality.overlapping_blocks, 1U);
  EXPECT_EQ(summary.quality.missing_segments, 1U);
  EXPECT_EQ(summary.quality.impossible_ranges, 1U);
  EXPECT_EQ(summary.end, (MemoryTotals{512 + 3 * kMiB, 512 + 3 * kMiB, 5 * kMiB, 512 + 3 * kMiB, 2 * kMiB - 512}));
  EXPECT_FALSE(summary.quality.has_final_segments);
}

TEST(ReplayScripts, CountsImpossibleSegments) {
  Script script;
  script.segment(kBase, 2 * kMiB).alloc(kBase, 512);
  script.add(Action::segment_free, kBase, 2 * kMiB);                // with a block in it
  script.add(Action::segment_free, kBase, 2 * kMiB);                // not there any more
  script.segment(kBase, 2 * kMiB).segment(kBase + kMiB, 2 * kMiB);  // over another
  script.segment(kBase, 0);
  CheckingSink sink;
  const ReplaySummary summary = replay_checked(script.snapshot, sink);
  EXPECT_EQ(summary.quality.segments_in_use, 1U);
  EXPECT_EQ(summary.quality.unknown_segments, 1U);
  EXPECT_EQ(summary.quality.overlapping_segments, 1U);
  EXPECT_EQ(summary.quality.impossible_ranges, 1U);
  EXPECT_EQ(sink.live.size(), 0U);
}

// The clock steps back between the allocation and the free on device 0, while device 1 is in use.
TEST(ReplayEvents, KeepTheOrderOfADeviceWhereTheClockStepsBack) {
  Script script;
  script.segment(kBase, 2 * kMiB).alloc(kBase, 512).free(kBase, 512);
  std::vector<TraceEntry>& entries = script.trace().entries;
  entries[2].time_us = entries[0].time_us - 1000;
  entries[3].time_us = entries[0].time_us - 999;
  DeviceTrace other = script.trace();
  other.device = 1;
  other.entries.resize(2);
  script.snapshot.traces.push_back(other);
  std::vector<EventKind> kinds;
  std::uint64_t latest_ns = 0;
  replay_events(
      script.snapshot,
      [&](const ReplayedEvent& replayed) {
        EXPECT_GE(replayed.event.time_ns, latest_ns);
        latest_ns = replayed.event.time_ns;
        if (replayed.kind == ReplayedEvent::Kind::event && replayed.event.device.index == 0) {
          kinds.push_back(replayed.event.kind);
        }
      },
      [] {});
  EXPECT_THAT(kinds, ElementsAre(EventKind::allocate, EventKind::free));
}

TEST(ReplayScripts, CountsStepsBackOfTheClock) {
  Script script;
  script.add(Action::user_defined, 0, 0).add(Action::user_defined, 0, 0).add(Action::user_defined, 0, 0);
  script.trace().entries[1].time_us = std::numeric_limits<std::int64_t>::max();
  script.trace().entries[2].time_us = std::numeric_limits<std::int64_t>::min();
  CheckingSink sink;
  const ReplayQuality quality = replay_checked(script.snapshot, sink).quality;
  EXPECT_EQ(quality.clock_steps_back, 1U);
  EXPECT_EQ(quality.largest_step_back_us, kMax);
  const QualityIssue steps{
      QualityId::clock_steps_back, 1, {{"duration_ns", QualityDuration{18'446'744'073'709'551'000U}}}};
  EXPECT_THAT(quality.issues(), ElementsAre(steps));
}

TEST(ReplayScripts, DeviceWithoutATraceHasItsFinalState) {
  Script script;
  script.final_segment(kBase, 2 * kMiB).block(512, 400).block(2 * kMiB - 512, 0);
  script.snapshot.segments.back().device = 3;
  CheckingSink sink;
  const ReplaySummary summary = replay_checked(script.snapshot, sink, 3);
  EXPECT_EQ(summary.start, (MemoryTotals{512, 512, 2 * kMiB, 400, 2 * kMiB - 512}));
  EXPECT_EQ(summary.end, summary.start);
  EXPECT_EQ(sink.blocks.size(), 1U);
}

}  // namespace
}  // namespace tidemark::pytorch::testing
