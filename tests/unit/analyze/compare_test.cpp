#include "analyze/usage/compare.h"

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "analyze/common/holders.h"
#include "unit/store/store_scenario.h"

namespace tidemark {
namespace {

using testing::kCpu;
using testing::kGpu;
using testing::kGpu1;
using testing::Scenario;

Result<Comparison> try_compare(const Scenario& a, const Scenario& b, const CompareOptions& options = {}) {
  const ComparedRecording side_a = reduce_for_compare(a.store("a.tide"));
  const ComparedRecording side_b = reduce_for_compare(b.store("b.tide"));
  Symbols symbols_a(side_a.overview.definitions);
  Symbols symbols_b(side_b.overview.definitions);
  return analyze_compare(side_a, symbols_a, side_b, symbols_b, options);
}

Comparison compare(const Scenario& a, const Scenario& b, const CompareOptions& options = {}) {
  return *try_compare(a, b, options);
}

const ComparedStack* find(const ComparedDevice& device, const std::string& function) {
  for (const ComparedStack& row : device.rows) {
    if (!row.stack.frames.empty() && row.stack.frames.back().function == function) return &row;
  }
  return nullptr;
}

// model 1000 in both; old 300 in A alone; new 500 in B alone; loss 100 in A, three times 70 in B; temp 40 in two more
// rounds in B, never at the peak.
Scenario before() {
  Scenario scenario;
  scenario.allocate(1, "temp", 40, kCpu, scenario.stack({scenario.python("temp", "/x/train.py", 5)}));
  scenario.free(2, "temp");
  scenario.allocate(3, "model", 1000, kCpu, scenario.stack({scenario.python("model", "/x/train.py", 1)}));
  scenario.allocate(4, "old", 300, kCpu, scenario.stack({scenario.python("old", "/x/train.py", 2)}));
  scenario.allocate(5, "loss", 100, kCpu, scenario.stack({scenario.python("loss", "/x/train.py", 3)}));
  return scenario;
}
Scenario after() {
  Scenario scenario;
  const StackId loss = scenario.stack({scenario.python("loss", "/y/train.py", 3)});
  const StackId temp = scenario.stack({scenario.python("temp", "/y/train.py", 5)});
  for (int round = 0; round < 3; ++round) {
    scenario.allocate(1, "temp", 40, kCpu, temp);
    scenario.free(2, "temp");
  }
  scenario.allocate(3, "model", 1000, kCpu, scenario.stack({scenario.python("model", "/y/train.py", 1)}));
  for (const char* name : {"1", "2", "3"}) scenario.allocate(4, name, 70, kCpu, loss);
  scenario.allocate(5, "new", 500, kCpu, scenario.stack({scenario.python("new", "/y/train.py", 9)}));
  return scenario;
}

TEST(Compare, FindsWhatChangedAtThePeak) {
  const Comparison comparison = compare(before(), after());
  ASSERT_EQ(comparison.devices.size(), 1U);
  const ComparedDevice& cpu = comparison.devices[0];
  EXPECT_EQ(cpu.peak_allocated.a, 1400U);
  EXPECT_EQ(cpu.peak_allocated.b, 1710U);
  EXPECT_EQ(cpu.peak_allocated.change(), 310);
  EXPECT_EQ(cpu.allocations.change(), 4);
  EXPECT_FALSE(cpu.peak_reserved.change());
  ASSERT_EQ(cpu.rows.size(), 3U);
  EXPECT_EQ(cpu.rows[0].kind, ChangeKind::added);
  EXPECT_EQ(cpu.rows[0].peak_bytes, (ComparedValue{0, 500}));
  EXPECT_EQ(cpu.rows[0].stack.frames.at(0).function, "new");
  EXPECT_EQ(cpu.rows[1].kind, ChangeKind::removed);
  EXPECT_EQ(cpu.rows[1].peak_bytes.change(), -300);
  EXPECT_EQ(cpu.rows[1].stack.frames.at(0).function, "old");
  EXPECT_EQ(cpu.rows[2].kind, ChangeKind::grew);
  EXPECT_EQ(cpu.rows[2].peak_bytes, (ComparedValue{100, 210}));
  EXPECT_EQ(cpu.rows[2].peak_blocks, (ComparedValue{1, 3}));
  EXPECT_EQ(cpu.added.bytes, 500);
  EXPECT_EQ(cpu.removed.bytes, -300);
  EXPECT_EQ(cpu.grew.stacks, 1U);
  EXPECT_EQ(cpu.unchanged.stacks, 2U);  // model, and temp: not at the peak
}

TEST(Compare, FindsWhatChangedInTraffic) {
  CompareOptions options;
  options.by = CompareBy::traffic;
  const ComparedDevice cpu = compare(before(), after(), options).devices[0];
  ASSERT_EQ(cpu.rows.size(), 4U);
  const ComparedStack* temp = find(cpu, "temp");
  ASSERT_NE(temp, nullptr);
  EXPECT_EQ(temp->kind, ChangeKind::grew);
  EXPECT_EQ(temp->traffic_bytes, (ComparedValue{40, 120}));
  EXPECT_EQ(temp->allocations, (ComparedValue{1, 3}));
  EXPECT_EQ(temp->peak_bytes, (ComparedValue{0, 0}));
  EXPECT_EQ(cpu.traffic.change(), 500 - 300 + 110 + 80);
}

TEST(Compare, AsManyBytesInMoreBlocksAreAChange) {
  Scenario one;
  one.allocate(1, "a", 100);
  Scenario two;
  two.allocate(1, "a", 50);
  two.allocate(2, "b", 50);
  const ComparedDevice cpu = compare(one, two).devices[0];
  ASSERT_EQ(cpu.rows.size(), 1U);
  EXPECT_EQ(cpu.rows[0].kind, ChangeKind::grew);
  EXPECT_EQ(cpu.rows[0].peak_bytes.change(), 0);
}

TEST(Compare, ListsTheLargestAndAddsUpTheRest) {
  CompareOptions options;
  options.top = 1;
  const ComparedDevice cpu = compare(before(), after(), options).devices[0];
  EXPECT_EQ(cpu.rows.size(), 1U);
  EXPECT_EQ(cpu.other_rows, 2U);
  EXPECT_EQ(cpu.other_change, -300 + 110);
}

TEST(Compare, KeepsDevicesApart) {
  Scenario a = before();
  a.allocate(9, "gpu", 512, kGpu);
  Scenario b = after();
  b.allocate(9, "gpu", 1024, kGpu1);
  const Comparison comparison = compare(a, b);
  ASSERT_EQ(comparison.devices.size(), 3U);
  EXPECT_EQ(comparison.devices[0].device, kGpu);
  EXPECT_TRUE(comparison.devices[0].in_a);
  EXPECT_FALSE(comparison.devices[0].in_b);
  EXPECT_FALSE(comparison.devices[0].peak_allocated.b);
  EXPECT_FALSE(comparison.devices[0].peak_allocated.change());
  EXPECT_TRUE(comparison.devices[0].rows.empty());
  EXPECT_EQ(comparison.devices[1].device, kGpu1);
  EXPECT_FALSE(comparison.devices[1].in_a);
  EXPECT_EQ(comparison.devices[1].peak_allocated.b, 1024U);
  EXPECT_EQ(comparison.devices[2].device, kCpu) << "GPUs first";

  CompareOptions only;
  only.device = "cuda:1";
  EXPECT_EQ(compare(a, b, only).devices.size(), 1U);
  only.device = "cuda:7";
  const auto neither = try_compare(a, b, only);
  ASSERT_FALSE(neither.ok());
  EXPECT_EQ(neither.error().message, "no device 'cuda:7' in a.tide or b.tide (available: cuda:0, cuda:1, cpu)");
}

TEST(Compare, BlocksFromBeforeTheFirstEventAreHeldButNotAllocated) {
  const Scenario scenario = before();
  StoreBuilder builder;
  builder.add(scenario.events[0]);
  builder.begin();
  for (std::size_t index = 1; index < scenario.events.size(); ++index) builder.add(scenario.events[index]);
  const ComparedRecording cut = reduce_for_compare(std::move(builder).finish("cut.pickle", scenario.definitions));
  const ComparedRecording whole = reduce_for_compare(scenario.store());
  Symbols symbols_a(whole.overview.definitions);
  Symbols symbols_b(cut.overview.definitions);
  CompareOptions options;
  options.by = CompareBy::traffic;
  const ComparedDevice cpu = analyze_compare(whole, symbols_a, cut, symbols_b, options)->devices[0];
  ASSERT_EQ(cpu.rows.size(), 1U);
  EXPECT_EQ(cpu.rows[0].kind, ChangeKind::shrank);  // its block is in both
  EXPECT_EQ(cpu.rows[0].allocations, (ComparedValue{1, 0}));
  EXPECT_EQ(cpu.rows[0].traffic_bytes, (ComparedValue{40, 0}));
}

TEST(Compare, FailsOverTheBudget) {
  CompareOptions options;
  options.budget = *parse_budget("310");
  EXPECT_TRUE(compare(before(), after(), options).over_budget.empty());
  options.budget = *parse_budget("309");
  const Comparison comparison = compare(before(), after(), options);
  ASSERT_EQ(comparison.over_budget.size(), 1U);
  EXPECT_EQ(comparison.over_budget[0].a, 1400U);
  EXPECT_EQ(comparison.over_budget[0].b, 1710U);
  EXPECT_TRUE(compare(after(), before(), options).over_budget.empty());
}

TEST(Compare, ADeviceThatIsNotInACountsFromNothingUnlessACouldNotSeeIt) {
  CompareOptions options;
  options.budget = *parse_budget("1000%");
  Scenario a = before();
  Scenario b = before();
  b.allocate(9, "gpu", 1024, kGpu);
  const Comparison recordings = compare(a, b, options);
  ASSERT_EQ(recordings.over_budget.size(), 1U);
  EXPECT_EQ(recordings.over_budget[0].device, kGpu);
  EXPECT_FALSE(recordings.over_budget[0].a);

  Scenario gpu_only;
  gpu_only.allocate(1, "gpu", 1024, kGpu);
  ComparedRecording snapshot = reduce_for_compare(gpu_only.store());
  snapshot.overview.source.kind = SourceKind::pytorch_snapshot;
  const ComparedRecording recording = reduce_for_compare(b.store());
  Symbols symbols_a(snapshot.overview.definitions);
  Symbols symbols_b(recording.overview.definitions);
  EXPECT_TRUE(analyze_compare(snapshot, symbols_a, recording, symbols_b, options)->over_budget.empty());
}

// Stacks of a few frames out of a few functions, blocks of two devices with unrecorded memory beside them.
Scenario random_run(std::uint32_t seed) {
  std::mt19937 random(seed);
  Scenario scenario;
  scenario.totals(kGpu, random() % 5000, 1 << 20);
  std::vector<StackId> stacks = {StackId{}};
  for (int index = 0; index < 12; ++index) {
    std::vector<LocationId> frames;
    for (auto depth = 1 + random() % 3; depth != 0; --depth) {
      frames.push_back(
          scenario.python("f" + std::to_string(random() % 3), "a.py", static_cast<std::uint32_t>(1 + random() % 2)));
    }
    stacks.push_back(scenario.stack(frames));
  }
  std::vector<std::string> live;
  for (std::uint64_t index = 0; index < 150; ++index) {
    if (live.empty() || random() % 5 < 3) {
      live.push_back(std::to_string(index));
      scenario.allocate(index, live.back(), random() % 1000, random() % 2 == 0 ? kCpu : kGpu,
                        stacks[random() % stacks.size()]);
    } else {
      const std::size_t which = random() % live.size();
      scenario.free(index, live[which]);
      live.erase(live.begin() + static_cast<std::ptrdiff_t>(which));
    }
  }
  return scenario;
}

std::string text_of(const NamedStack& stack) {
  std::string text;
  for (const FrameName& frame : stack.frames) text += frame.function + ":" + std::to_string(frame.line) + " ";
  return text;
}

using Changes = std::map<std::tuple<std::string, std::string>, std::tuple<int, std::int64_t, std::int64_t>>;

Changes changes_of(const Comparison& comparison, int sign) {
  static const std::map<ChangeKind, int> kSigns = {
      {ChangeKind::added, 2}, {ChangeKind::removed, -2}, {ChangeKind::grew, 1}, {ChangeKind::shrank, -1}};
  Changes changes;
  for (const ComparedDevice& device : comparison.devices) {
    for (const ComparedStack& row : device.rows) {
      const auto [entry, is_new] =
          changes.try_emplace({to_string(device.device), text_of(row.stack)}, sign * kSigns.at(row.kind),
                              sign * row.peak_bytes.change(), sign * row.traffic_bytes.change());
      EXPECT_TRUE(is_new) << text_of(row.stack);
    }
  }
  return changes;
}

TEST(Compare, HoldsItsLawsOnRandomRuns) {
  for (std::uint32_t seed = 0; seed < 60; ++seed) {
    const Scenario a = random_run(2 * seed);
    const Scenario b = random_run(2 * seed + 1);
    for (const CompareBy by : {CompareBy::peak, CompareBy::traffic}) {
      CompareOptions options;
      options.by = by;
      options.top = 0;
      for (const ComparedDevice& device : compare(a, a, options).devices) {
        EXPECT_TRUE(device.rows.empty()) << seed;
        EXPECT_EQ(device.peak_allocated.change(), 0) << seed;
      }
      const Comparison forward = compare(a, b, options);
      EXPECT_EQ(changes_of(forward, 1), changes_of(compare(b, a, options), -1)) << seed;
      for (const ComparedDevice& device : forward.devices) {
        std::int64_t change = by == CompareBy::peak ? *device.unrecorded_at_peak.change() : 0;
        for (const ComparedStack& row : device.rows) {
          change += by == CompareBy::peak ? row.peak_bytes.change() : row.traffic_bytes.change();
        }
        EXPECT_EQ(change, by == CompareBy::peak ? device.peak_allocated.change() : device.traffic.change()) << seed;
      }
    }
  }
}

// Each block of the scenario with its category; only `only` is listed, or all.
ComparedRecording by_category(const Scenario& scenario, const std::vector<Category>& categories,
                              std::optional<Category> only = std::nullopt) {
  Store store = scenario.store();
  auto attribution = std::make_shared<Attribution>();
  std::vector<bool> chosen;
  for (const Category category : categories) {
    Owner& owner = attribution->blocks.emplace_back();
    owner.category = category;
    owner.category_confidence = Confidence::exact;
    chosen.push_back(category == only);
  }
  const Holders holders(only ? BlockFilter(std::move(chosen)) : BlockFilter(),
                        *OwnerGroups::create(store, *attribution, OwnerKind::category), attribution);
  return reduce_for_compare(std::move(store), holders);
}

// Categories are compared by name, regardless of stacks. Totals still cover all blocks.
TEST(Compare, Categories) {
  Scenario a;
  a.allocate(1, "weight", 1000, kGpu);
  a.allocate(2, "saved", 300, kGpu);
  Scenario b;
  b.allocate(1, "saved", 100, kGpu);
  b.allocate(2, "weight", 600, kGpu);
  b.allocate(3, "bias", 400, kGpu);
  b.allocate(4, "gradient", 50, kGpu);
  const std::vector<Category> of_a = {Category::parameter, Category::activation};
  const std::vector<Category> of_b = {Category::activation, Category::parameter, Category::parameter,
                                      Category::gradient};
  for (const std::optional<Category> only : {std::optional<Category>(), std::optional(Category::activation)}) {
    const ComparedRecording side_a = by_category(a, of_a, only);
    const ComparedRecording side_b = by_category(b, of_b, only);
    Symbols symbols_a(side_a.overview.definitions);
    Symbols symbols_b(side_b.overview.definitions);
    const Comparison comparison = *analyze_compare(side_a, symbols_a, side_b, symbols_b, {});
    EXPECT_EQ(comparison.owners, OwnerKind::category);
    const ComparedDevice& device = comparison.devices.at(0);
    EXPECT_EQ(device.peak_allocated.a, 1300U);
    EXPECT_EQ(device.peak_allocated.b, 1150U);
    ASSERT_EQ(device.rows.size(), only ? 1U : 3U);
    EXPECT_EQ(device.rows[0].stack.owner, (BlockOwner{OwnerKind::category, "activation"}));
    EXPECT_EQ(device.rows[0].peak_bytes, (ComparedValue{300, 100}));
    if (only) continue;
    EXPECT_EQ(device.rows[1].stack.owner, (BlockOwner{OwnerKind::category, "gradient"}));
    EXPECT_EQ(device.rows[1].kind, ChangeKind::added);
    EXPECT_EQ(device.rows[2].stack.owner, (BlockOwner{OwnerKind::category, "parameter"}));
    EXPECT_EQ(device.rows[2].peak_bytes, (ComparedValue{1000, 1000}));
    EXPECT_EQ(device.rows[2].peak_blocks, (ComparedValue{1, 2}));
  }
}

}  // namespace
}  // namespace tidemark
