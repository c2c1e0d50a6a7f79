// Random runs of the allocator's model, complete and cut, against the replay; and snapshots of any values.
//
// Every run draws from its own number, which a failure names. TIDEMARK_RUNS: number of runs of each kind (default 150).
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "unit/import/allocator_model.h"
#include "unit/import/replay_support.h"

namespace tidemark::pytorch::testing {
namespace {

class Random {
 public:
  explicit Random(std::uint64_t seed) : engine_(seed) {}

  std::uint64_t below(std::uint64_t limit) { return engine_() % limit; }
  bool one_in(std::uint64_t n) { return below(n) == 0; }
  std::uint64_t pick(const std::vector<std::uint64_t>& from) { return from[below(from.size())]; }
  /// As many small sizes as large ones.
  std::uint64_t size(std::uint64_t bits) { return 1 + below(std::uint64_t{1} << (3 + below(bits - 3))); }

 private:
  std::mt19937_64 engine_;
};

/// Runs a property until it fails.
void for_each_run(const std::function<void(Random&)>& property) {
  const char* set = std::getenv("TIDEMARK_RUNS");
  const std::uint64_t runs = set != nullptr ? std::strtoull(set, nullptr, 10) : 150;
  for (std::uint64_t run = 0; run < runs && !::testing::Test::HasFailure(); ++run) {
    SCOPED_TRACE("run " + std::to_string(run));
    Random random(run);
    property(random);
  }
}

/// How far two totals are apart in one of their fields.
std::uint64_t apart(std::uint64_t a, std::uint64_t b) {
  return a > b ? a - b : b - a;
}

ModelSettings random_settings(Random& random) {
  ModelSettings settings;
  settings.expandable = random.one_in(2);
  if (random.one_in(3)) settings.max_split = (21 + random.below(40)) * kMiB;
  if (random.one_in(4)) settings.large_segment = 32 * kMiB;
  if (random.one_in(3)) settings.limit = (100 + random.below(200)) * kMiB;
  if (random.one_in(3)) {
    for (std::uint64_t mebibytes = 1; mebibytes <= 32768; mebibytes *= 2) {
      settings.divisions[mebibytes] = std::uint64_t{1} << random.below(5);
    }
  }
  settings.pools = static_cast<std::uint16_t>(1 + random.below(3));
  settings.entries_name_pools = random.one_in(2);
  return settings;
}

AllocatorModel random_run(Random& random) {
  const ModelSettings settings = random_settings(random);
  AllocatorModel model(settings);
  for (std::uint64_t i = 50 + random.below(350); i > 0; --i) {
    const std::uint64_t roll = random.below(100);
    const auto live = model.blocks(BlockState::active_allocated);
    const auto pending = model.blocks(BlockState::active_pending_free);
    if (roll < 52 || live.empty()) {
      const auto pool = random.one_in(4) ? random.below(settings.pools) : 0;
      const auto stream = random.one_in(5) ? random.below(3) : 0;
      model.allocate(random.size(25), static_cast<std::uint16_t>(stream), static_cast<std::uint16_t>(pool));
    } else if (roll < 95) {
      model.free(random.pick(live), roll >= 90);
    } else if (roll < 98 && !pending.empty()) {
      model.complete(random.pick(pending));
    } else if (roll == 98) {
      model.mark();
    } else if (random.one_in(4)) {
      model.empty_cache();
    }
  }
  return model;
}

TEST(ReplayProperty, EqualsTheAllocatorAfterEveryEntry) {
  for_each_run([](Random& random) {
    const AllocatorModel model = random_run(random);
    CheckingSink sink;
    const ReplaySummary summary = replay_checked(model.snapshot(), sink);
    MemoryTotals peak;
    for (std::uint32_t i = 0; i < model.totals().size(); ++i) {
      const MemoryTotals& expected = model.totals()[i];
      ASSERT_EQ(sink.after(i), expected) << "entry " << i;
      peak.allocated = std::max(peak.allocated, expected.allocated);
      peak.active = std::max(peak.active, expected.active);
      peak.reserved = std::max(peak.reserved, expected.reserved);
      peak.requested = std::max(peak.requested, expected.requested);
      peak.inactive_split = std::max(peak.inactive_split, expected.inactive_split);
    }
    EXPECT_EQ(summary.peak, peak);
    EXPECT_EQ(names_of(summary.quality), std::vector<std::string>{});
    EXPECT_TRUE(summary.quality.exact());
  });
}

TEST(ReplayProperty, WithoutItsBeginningReportsItsUncertainty) {
  for_each_run([](Random& random) {
    const AllocatorModel model = random_run(random);
    Snapshot snapshot = model.snapshot();
    std::vector<TraceEntry>& entries = snapshot.traces.front().entries;
    const std::uint64_t cut = random.below(entries.size());
    entries.erase(entries.begin(), entries.begin() + static_cast<std::ptrdiff_t>(cut));
    CheckingSink sink;
    const ReplaySummary summary = replay_checked(snapshot, sink);
    const std::uint64_t uncertain = summary.quality.uncertain_bytes;
    for (std::uint32_t i = 0; i < entries.size(); ++i) {
      const MemoryTotals& expected = model.totals()[cut + i];
      const MemoryTotals actual = sink.after(i);
      ASSERT_EQ(actual.reserved, expected.reserved) << "entry " << i;
      ASSERT_EQ(actual.requested, expected.requested) << "entry " << i;
      ASSERT_LE(apart(actual.allocated, expected.allocated), uncertain) << "entry " << i;
      ASSERT_LE(apart(actual.active, expected.active), uncertain) << "entry " << i;
      ASSERT_LE(apart(actual.inactive_split, expected.inactive_split), uncertain) << "entry " << i;
    }
    EXPECT_EQ(summary.end, model.totals().back());
  });
}

TEST(ReplayProperty, TakesAnything) {
  for_each_run([](Random& random) {
    // Few values, so that things meet; now and then any, or close to the end of memory.
    const auto address = [&] {
      const std::uint64_t any = random.size(64);
      return random.one_in(20) ? any : random.one_in(20) ? ~random.below(3000) : random.below(40) * kMiB / 2;
    };
    const auto size = [&] {
      const std::uint64_t any = random.size(64);
      return random.one_in(20) ? any : random.one_in(10) ? random.below(4096) : random.below(9) * kMiB / 2;
    };
    const auto index = [&] { return static_cast<std::uint16_t>(random.below(3)); };
    Snapshot snapshot;
    snapshot.streams = {0, 1};
    snapshot.pools.resize(2);
    AllocatorSettings& settings = snapshot.settings.emplace();
    settings.expandable_segments = random.one_in(2);
    if (random.one_in(2)) settings.max_split_size = static_cast<std::int64_t>(random.below(30 * kMiB)) - 1;
    if (random.one_in(2)) snapshot.settings.reset();
    snapshot.traces.emplace_back();
    for (std::uint64_t i = random.below(200); i > 0; --i) {
      const auto action = static_cast<Action>(random.below(static_cast<std::uint64_t>(Action::unknown) + 1));
      const auto time = static_cast<std::int64_t>(random.size(64));
      snapshot.traces.front().entries.push_back({address(), size(), time, StackId{}, index(), index(), action});
    }
    for (std::uint64_t i = random.below(6); i > 0; --i) {
      SnapshotSegment segment;
      segment.address = address();
      segment.total_size = size();
      segment.pool = index();
      segment.expandable = random.one_in(2);
      for (std::uint64_t j = random.below(4); j > 0; --j) {
        segment.blocks.push_back({address(), size(), size(), {}, static_cast<BlockState>(random.below(4))});
      }
      snapshot.segments.push_back(segment);
    }
    CheckingSink sink;
    replay_checked(snapshot, sink);
  });
}

}  // namespace
}  // namespace tidemark::pytorch::testing
