// The current owners of memory, compared with sums made by hand.
#include <gtest/gtest.h>

#include <string>

#include "monitor/recorded_peaks.h"
#include "unit/analyze/model_scenario.h"
#include "unit/store/store_scenario.h"

namespace tidemark::testing {
namespace {

std::optional<std::uint64_t> of(const RecordedOwners& owners, Category category) {
  return owners.categories[static_cast<std::size_t>(category)];
}

std::uint64_t sum_of(const RecordedOwners& owners) {
  std::uint64_t sum = 0;
  for (const auto& bytes : owners.categories) sum += bytes.value_or(0);
  return sum;
}

// A weight and its gradient, and a block with unknown owner; a block of the driver, which is not counted.
ModelScenario trained() {
  ModelScenario scenario;
  const NnModuleId model = scenario.root("Net");
  const NnModuleId attention = scenario.module(model, "layers.0.self_attn", "Attention");
  const StackId stack = scenario.stack({scenario.script(3)});
  scenario.allocate(1000, "weight", 4096, kGpu, stack);
  scenario.tensor(ModelTensor::Role::parameter, 2000, attention, "weight");
  scenario.allocate(3000, "gradient", 1024, kGpu, stack);
  scenario.tensor(ModelTensor::Role::gradient, 4000, attention, "weight");
  scenario.allocate(5000, "other", 512, kGpu, stack);
  scenario.allocate(5000, "driver", 1 << 20, kDriver, stack);
  return scenario;
}

TEST(RecordedOwners, AreTheCategoriesOfLiveMemory) {
  std::vector<RecordedOwners> owners;
  add_up_owners(owners, attribute(trained().store()));
  ASSERT_EQ(owners.size(), 1U);
  EXPECT_EQ(owners[0].device, kGpu);
  EXPECT_EQ(of(owners[0], Category::parameter), 4096U);
  EXPECT_EQ(of(owners[0], Category::gradient), 1024U);
  EXPECT_EQ(of(owners[0], Category::optimizer_state), std::nullopt);
  EXPECT_EQ(sum_of(owners[0]), 4096U + 1024U + 512U);
  EXPECT_EQ(owners[0].components[static_cast<std::size_t>(Component::attention)], 4096U + 1024U);
}

TEST(RecordedOwners, FreedMemoryIsZeroNotUnknown) {
  ModelScenario scenario = trained();
  std::vector<RecordedOwners> owners;
  add_up_owners(owners, attribute(scenario.store()));
  scenario.free(6000, "gradient");
  add_up_owners(owners, attribute(scenario.store()));
  ASSERT_EQ(owners.size(), 1U);
  EXPECT_EQ(of(owners[0], Category::gradient), 0U);
  EXPECT_EQ(of(owners[0], Category::parameter), 4096U);
}

TEST(RecordedOwners, NothingWithoutAttribution) {
  Scenario scenario;
  scenario.allocate(1000, "block", 64, kGpu);
  std::vector<RecordedOwners> owners;
  add_up_owners(owners, attribute(scenario.store()));
  EXPECT_TRUE(owners.empty());
}

}  // namespace
}  // namespace tidemark::testing
