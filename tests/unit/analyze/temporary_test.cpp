#include "analyze/usage/temporary.h"

#include <gtest/gtest.h>

#include <random>
#include <set>
#include <string>

#include "unit/store/store_scenario.h"

namespace tidemark {
namespace {

using testing::kCpu;
using testing::kGpu;
using testing::Scenario;

Temporary analyzed(const Store& store, const TemporaryOptions& options = {}) {
  Symbols symbols(store.definitions);
  return *analyze_temporary(store, symbols, options);
}

// kept holds 1000 throughout. near is freed at once, far after one other allocation (other), other after two (x, y).
Scenario small() {
  Scenario scenario;
  const StackId one = scenario.stack({scenario.python("one", "a.py", 1)});
  const StackId two = scenario.stack({scenario.python("two", "a.py", 2)});
  scenario.allocate(1, "kept", 1000, kCpu, one);
  scenario.allocate(2, "near", 300, kCpu, one);
  scenario.free(3, "near");
  scenario.allocate(4, "far", 500, kCpu, two);
  scenario.allocate(5, "other", 40, kCpu, two);
  scenario.free(6, "far");
  scenario.allocate(7, "x", 7, kCpu, one);
  scenario.allocate(8, "y", 8, kCpu, one);
  scenario.free(9, "other");
  return scenario;
}

TEST(Temporary, AreFreedAfterAtMostOneOtherAllocation) {
  const Temporary result = analyzed(small().store());
  ASSERT_EQ(result.devices.size(), 1U);
  const TemporaryDevice& cpu = result.devices[0];
  EXPECT_EQ(cpu.count, 2U);
  EXPECT_EQ(cpu.bytes, 800U);
  EXPECT_DOUBLE_EQ(*cpu.share, 800.0 / 1855);
  ASSERT_EQ(cpu.rows.size(), 2U);
  EXPECT_EQ(cpu.rows[0].stack.frames.at(0).function, "two");
  EXPECT_EQ(cpu.rows[0].bytes, 500U);
  EXPECT_EQ(cpu.rows[0].count, 1U);
  EXPECT_DOUBLE_EQ(*cpu.rows[0].share, 500.0 / 1855);
  EXPECT_EQ(cpu.rows[1].largest_bytes, 300U);
}

TEST(Temporary, ByOwnerAddsUp) {
  const Store store = small().store();
  Attribution attribution;
  attribution.blocks.resize(store.blocks.count());
  for (Owner& owner : attribution.blocks) owner.phase = Phase::forward;
  attribution.blocks[2].phase = Phase::backward;  // far
  TemporaryOptions options;
  options.by = OwnerKind::phase;
  options.attribution = &attribution;
  const Temporary result = analyzed(store, options);
  const TemporaryDevice& cpu = result.devices.at(0);
  EXPECT_EQ(cpu.bytes, 800U);
  ASSERT_EQ(cpu.rows.size(), 2U);
  EXPECT_EQ(cpu.rows[0].owner, (BlockOwner{OwnerKind::phase, "backward"}));
  EXPECT_EQ(cpu.rows[0].bytes, 500U);
  EXPECT_EQ(cpu.rows[1].owner, (BlockOwner{OwnerKind::phase, "forward"}));
  EXPECT_EQ(cpu.rows[1].bytes, 300U);
  options.by = OwnerKind::module;  // no block has one
  Symbols symbols(store.definitions);
  EXPECT_FALSE(analyze_temporary(store, symbols, options).ok());
}

TEST(Temporary, CountsWithinTheGivenNumber) {
  EXPECT_EQ(analyzed(small().store(), {0, std::nullopt, 20}).devices[0].bytes, 300U);
  EXPECT_EQ(analyzed(small().store(), {2, std::nullopt, 20}).devices[0].bytes, 840U);
}

// The peak is 1540 with far and other; without near and far, 1000 + other + x + y is most.
TEST(Temporary, ComputesThePeakWithoutThem) {
  const TemporaryDevice cpu = analyzed(small().store()).devices[0];
  EXPECT_EQ(cpu.totals.peak_allocated_bytes, 1540U);
  EXPECT_EQ(cpu.reduced_peak_bytes, 1055U);
  EXPECT_EQ(cpu.reduced_peak_at_ns, 8U);
  EXPECT_EQ(cpu.avoidable_peak_bytes(), 485U);
}

TEST(Temporary, LeavesWhatIsInNoRecordedBlockInThePeak) {
  Scenario scenario;
  scenario.totals(kGpu, 1000, 4096);
  scenario.allocate(1, "a", 100, kGpu);
  scenario.free(2, "a");
  scenario.free_unknown(3, kGpu, 200);
  const TemporaryDevice gpu = analyzed(scenario.store()).devices[0];
  EXPECT_EQ(gpu.totals.peak_allocated_bytes, 1100U);
  EXPECT_EQ(gpu.reduced_peak_bytes, 1000U);
  EXPECT_EQ(gpu.reduced_peak_at_ns, 1U);
}

TEST(Temporary, AnotherDevicesAllocationsDoNotCount) {
  Scenario scenario;
  scenario.allocate(1, "a", 100, kGpu);
  for (int index = 0; index < 5; ++index) scenario.allocate(2, "c" + std::to_string(index), 1, kCpu);
  scenario.free(3, "a");
  const Temporary result = analyzed(scenario.store(), {0, "cuda:0", 20});
  ASSERT_EQ(result.devices.size(), 1U);
  EXPECT_EQ(result.devices[0].count, 1U);
}

TEST(Temporary, ABlockFromBeforeTheFirstEventIsNone) {
  Scenario scenario;
  scenario.allocate(0, "before", 4000);
  scenario.allocate(1, "a", 100);
  scenario.free(2, "before");
  scenario.free(3, "a");
  StoreBuilder builder;
  builder.add(scenario.events[0]);
  builder.begin();
  for (std::size_t index = 1; index < scenario.events.size(); ++index) builder.add(scenario.events[index]);
  const TemporaryDevice cpu = analyzed(std::move(builder).finish("cut.pickle", scenario.definitions)).devices[0];
  EXPECT_EQ(cpu.count, 1U);
  EXPECT_EQ(cpu.bytes, 100U);
  EXPECT_DOUBLE_EQ(*cpu.share, 1.0);
  EXPECT_EQ(cpu.reduced_peak_bytes, 4000U);
}

TEST(Temporary, ABlockThatIsNeverFreedIsNone) {
  Scenario scenario;
  scenario.allocate(1, "a", 100);
  const TemporaryDevice cpu = analyzed(scenario.store()).devices[0];
  EXPECT_EQ(cpu.count, 0U);
  EXPECT_EQ(cpu.reduced_peak_bytes, 100U);
  EXPECT_EQ(cpu.avoidable_peak_bytes(), 0U);
}

TEST(Temporary, AddsUpWhatItDoesNotList) {
  const TemporaryDevice cpu = analyzed(small().store(), {2, std::nullopt, 1}).devices[0];
  ASSERT_EQ(cpu.rows.size(), 1U);
  EXPECT_EQ(cpu.rows[0].bytes, 540U);
  EXPECT_EQ(cpu.other_rows, 1U);
  EXPECT_EQ(cpu.other_count, 1U);
  EXPECT_EQ(cpu.other_bytes, 300U);
}

TEST(Temporary, ADeviceThatIsNotThereIsAnError) {
  const Store store = small().store();
  Symbols symbols(store.definitions);
  EXPECT_FALSE(analyze_temporary(store, symbols, {1, "cuda:3", 20}).ok());
}

// Blocks of two devices, allocated and freed at random; a device's totals hold more than the blocks.
struct Random {
  struct Change {
    bool birth = false;
    std::size_t block = 0;
  };
  std::vector<Change> changes;
  std::vector<std::uint64_t> sizes;
  std::vector<Device> devices;

  explicit Random(std::uint32_t seed) {
    std::mt19937 random(seed);
    std::vector<std::size_t> live;
    for (int index = 0; index < 200; ++index) {
      if (live.empty() || random() % 5 < 3) {
        live.push_back(sizes.size());
        changes.push_back({true, sizes.size()});
        sizes.push_back(1 + random() % 1000);
        devices.push_back(random() % 3 == 0 ? kCpu : kGpu);
      } else {
        const std::size_t which = live.size() - 1 - random() % std::min<std::size_t>(live.size(), 4);
        changes.push_back({false, live[which]});
        live.erase(live.begin() + static_cast<std::ptrdiff_t>(which));
      }
    }
  }
  [[nodiscard]] Scenario scenario(const std::set<std::size_t>& without) const {
    Scenario scenario;
    scenario.totals(kGpu, 512, 1 << 20);
    scenario.allocate(0, "first on the GPU", 1, kGpu);
    scenario.allocate(0, "first on the CPU", 1, kCpu);
    for (std::size_t index = 0; index < changes.size(); ++index) {
      const auto [birth, block] = changes[index];
      if (without.contains(block)) continue;
      if (birth) scenario.allocate(index + 1, std::to_string(block), sizes[block], devices[block]);
      if (!birth) scenario.free(index + 1, std::to_string(block));
    }
    return scenario;
  }
  // The definition, word by word.
  [[nodiscard]] std::set<std::size_t> temporary(std::uint64_t within) const {
    std::set<std::size_t> found;
    for (std::size_t birth = 0; birth < changes.size(); ++birth) {
      const std::size_t block = changes[birth].block;
      if (!changes[birth].birth) continue;
      std::uint64_t others = 0;
      for (std::size_t later = birth + 1; later < changes.size(); ++later) {
        const auto [is_birth, other] = changes[later];
        if (other == block && others <= within) found.insert(block);
        if (other == block) break;
        if (is_birth && devices[other] == devices[block]) ++others;
      }
    }
    return found;
  }
};

TEST(Temporary, EqualsARecordingWithoutTheseBlocks) {
  for (std::uint32_t seed = 0; seed < 60; ++seed) {
    const Random random(seed);
    const std::uint64_t within = seed % 6;
    const std::set<std::size_t> temporary = random.temporary(within);
    const Store without = random.scenario(temporary).store();
    const Temporary result = analyzed(random.scenario({}).store(), {within, std::nullopt, 0});
    ASSERT_EQ(result.devices.size(), 2U);
    for (std::size_t device = 0; device < 2; ++device) {
      const TemporaryDevice& found = result.devices[device];
      std::uint64_t count = 0;
      std::uint64_t bytes = 0;
      for (const std::size_t block : temporary) {
        if (random.devices[block] != found.totals.device) continue;
        ++count;
        bytes += random.sizes[block];
      }
      EXPECT_EQ(found.count, count) << seed;
      EXPECT_EQ(found.bytes, bytes) << seed;
      EXPECT_EQ(found.reduced_peak_bytes, without.devices[device].peak_allocated_bytes) << seed;
      EXPECT_EQ(found.reduced_peak_at_ns, without.devices[device].peak_allocated_at_ns) << seed;
    }
  }
}

}  // namespace
}  // namespace tidemark
