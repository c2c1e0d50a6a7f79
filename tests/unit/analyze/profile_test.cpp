#include "analyze/common/profile.h"

#include <gtest/gtest.h>

#include "unit/store/store_scenario.h"

namespace tidemark {
namespace {

using testing::kCpu;
using testing::kGpu;
using testing::Scenario;

class ProfileTest : public ::testing::Test {
 protected:
  ProfileTest() {
    one_ = scenario_.stack({scenario_.python("one", "a.py", 1)});
    two_ = scenario_.stack({scenario_.python("two", "a.py", 2)});
    scenario_.totals(kGpu, 24, 4096);
    scenario_.allocate(1, "a", 300, kGpu, one_);
    scenario_.free(2, "a");
    scenario_.allocate(3, "b", 200, kGpu, one_);
    scenario_.allocate(4, "c", 250, kGpu, two_);
    scenario_.allocate(5, "d", 64, kCpu);
  }

  Scenario scenario_;
  StackId one_;
  StackId two_;
};

TEST_F(ProfileTest, DistinguishesHeldFromAllocated) {
  const auto profiles = *analyze_profile(scenario_.store(), {});
  ASSERT_EQ(profiles.size(), 2U);
  const ProfileDevice& gpu = profiles[0];
  EXPECT_EQ(gpu.device, kGpu);
  EXPECT_EQ(gpu.at_ns, 4U);
  EXPECT_EQ(gpu.held_bytes, 450U);
  EXPECT_EQ(gpu.unrecorded_bytes, 24U);
  ASSERT_EQ(gpu.stacks.size(), 2U);
  EXPECT_EQ(gpu.stacks[0].stack, two_);
  EXPECT_EQ(gpu.stacks[0].held_bytes, 250U);
  EXPECT_EQ(gpu.stacks[0].allocated_bytes, 250U);
  EXPECT_EQ(gpu.stacks[1].stack, one_);
  EXPECT_EQ(gpu.stacks[1].held_bytes, 200U);
  EXPECT_EQ(gpu.stacks[1].held_blocks, 1U);
  EXPECT_EQ(gpu.stacks[1].allocated_bytes, 500U);
  EXPECT_EQ(gpu.stacks[1].allocated_blocks, 2U);
  EXPECT_FALSE(profiles[1].stacks[0].stack.valid());
}

TEST_F(ProfileTest, LooksAtOneDeviceAtATime) {
  const auto profiles = *analyze_profile(scenario_.store(), {"cuda:0", *parse_moment("1ns")});
  ASSERT_EQ(profiles.size(), 1U);
  EXPECT_EQ(profiles[0].held_bytes, 300U);
  EXPECT_EQ(profiles[0].stacks[0].stack, one_);
  EXPECT_EQ(profiles[0].stacks[1].held_blocks, 0U);
  EXPECT_EQ(profiles[0].stacks[1].allocated_blocks, 1U);
}

TEST_F(ProfileTest, RefusesADeviceThatIsNotThere) {
  EXPECT_FALSE(analyze_profile(scenario_.store(), {"cuda:5", {}}).ok());
}

}  // namespace
}  // namespace tidemark
