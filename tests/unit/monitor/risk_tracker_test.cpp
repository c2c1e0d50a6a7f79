#include "monitor/risk_tracker.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "base/units.h"

namespace tidemark {
namespace {

// A device that fills by 64 MiB a second; the process with the most memory makes `per_second` steps a second.
class FillingDevice {
 public:
  FillingDevice() {
    WatchedDevice& device = state_.devices.emplace_back();
    device.key = "0";
    device.info.total_bytes = 80 * kGiB;
  }

  void run(RiskTracker& risks, std::uint64_t seconds, const std::vector<ProcessSteps>& began,
           std::uint64_t per_second) {
    state_.steps = began;
    for (const std::uint64_t end = second_ + seconds; second_ < end; ++second_) {
      state_.devices[0].used.add(second_ * 1'000'000'000, 20 * kGiB + second_ * 64 * kMiB);
      for (ProcessSteps& steps : state_.steps) steps.steps += per_second;
      risks.add(state_);
    }
    risks.assess(state_, true);
  }
  [[nodiscard]] const RiskAssessment& risk() const { return state_.devices[0].risk; }

 private:
  MachineState state_;
  std::uint64_t second_ = 0;
};

TEST(RiskTracker, GivesTheTimeInSteps) {
  RiskTracker risks{ForecastOptions{}};
  FillingDevice device;
  device.run(risks, 300, {{7, "0", 10, 1000}, {8, "1", 20, 9}, {9, "0", 5, 3}}, 4);
  ASSERT_TRUE(device.risk().seconds_to_limit.has_value());
  ASSERT_TRUE(device.risk().steps_to_limit.has_value());
  const double seconds = 60.0 * 1024 / 64 - 299;  // 60 GiB at 64 MiB a second, of which 299 s are over
  EXPECT_NEAR(device.risk().seconds_to_limit->expected, seconds, 0.02 * seconds);
  EXPECT_NEAR(device.risk().steps_to_limit->expected, 4 * seconds, 0.08 * seconds);
  EXPECT_LT(device.risk().steps_to_limit->earliest, device.risk().steps_to_limit->expected);
}

// Samples show 20 GiB, recorders the peaks between them: 64 MiB more each second.
TEST(RiskTracker, SpikesBetweenSamplesCount) {
  RiskTracker risks{ForecastOptions{}};
  MachineState state;
  WatchedDevice& device = state.devices.emplace_back();
  device.info.total_bytes = 80 * kGiB;
  for (std::uint64_t second = 0; second < 300; ++second) {
    device.used.add(second * 1'000'000'000, 20 * kGiB);
    risks.add(state);
    device.used.add_peak(20 * kGiB + second * 64 * kMiB);
  }
  risks.assess(state, true);
  EXPECT_EQ(device.risk.pattern, UsagePattern::growth);
  ASSERT_TRUE(device.risk.seconds_to_limit.has_value());
  const double seconds = 60.0 * 1024 / 64 - 299;
  EXPECT_NEAR(device.risk.seconds_to_limit->expected, seconds, 0.02 * seconds);
}

TEST(RiskTracker, GoesOnCountingWhereAnotherProcessHasMost) {
  RiskTracker risks{ForecastOptions{}};
  FillingDevice device;
  device.run(risks, 150, {{7, "0", 10, 100'000}}, 4);
  device.run(risks, 150, {{8, "0", 10, 5}}, 4);
  ASSERT_TRUE(device.risk().steps_to_limit.has_value());
  const RiskAssessment& risk = device.risk();
  EXPECT_NEAR(risk.steps_to_limit->expected / risk.seconds_to_limit->expected, 4, 0.1);
  EXPECT_GT(risk.growth_seconds, 250) << "what was seen before is not forgotten";
}

TEST(RiskTracker, LostDeviceIsUnknown) {
  RiskTracker risks{ForecastOptions{}};
  MachineState state;
  WatchedDevice& device = state.devices.emplace_back();
  device.info.total_bytes = 80 * kGiB;
  for (std::uint64_t second = 0; second < 60; ++second) {
    device.used.add(second * 1'000'000'000, 79 * kGiB);
    risks.add(state);
  }
  risks.assess(state, true);
  EXPECT_TRUE(device.assessed_at_ns);
  EXPECT_NE(device.risk.level, RiskLevel::low);
  device.lost = "it fell off the bus";
  risks.assess(state, true);
  EXPECT_FALSE(device.assessed_at_ns);
  EXPECT_FALSE(device.risk.confidence);
}

TEST(RiskTracker, NoStepsWithoutRecording) {
  RiskTracker risks{ForecastOptions{}};
  FillingDevice device;
  device.run(risks, 300, {{8, "1", 20, 9}}, 4);
  ASSERT_TRUE(device.risk().seconds_to_limit.has_value());
  EXPECT_EQ(device.risk().steps_to_limit, std::nullopt);
}

// Two processes on a device of 80 GiB: one takes 64 MiB a second, the other has 10 GiB.
TEST(ProcessRisks, GrowingProcessIsReported) {
  ProcessRisks risks{ForecastOptions{}};
  MachineState state;
  WatchedDevice& device = state.devices.emplace_back();
  device.key = "0";
  device.info.total_bytes = 80 * kGiB;
  for (const std::int64_t pid : {7, 8}) {
    WatchedProcess& process = state.processes.emplace_back();
    process.pid = pid;
    process.devices.emplace_back().held = true;
  }
  for (std::uint64_t second = 0; second < 300; ++second) {
    const std::uint64_t bytes = 20 * kGiB + second * 64 * kMiB;
    device.latest.used_bytes = bytes + 10 * kGiB;
    state.processes[0].devices[0].used.add(second * 1'000'000'000, bytes);
    state.processes[0].devices[0].bytes = bytes;
    state.processes[1].devices[0].used.add(second * 1'000'000'000, 10 * kGiB);
    state.processes[1].devices[0].bytes = 10 * kGiB;
    state.processes[0].rss.add(second * 1'000'000'000, kGiB);
    risks.add(state);
  }
  risks.assess(state, true);
  const auto& grows = state.processes[0].devices[0].risk;
  ASSERT_TRUE(grows && grows->risk.seconds_to_limit);
  EXPECT_EQ(grows->limit_bytes, 70 * kGiB) << "the other one has the rest";
  const double seconds = 50.0 * 1024 / 64 - 299;
  EXPECT_NEAR(grows->risk.seconds_to_limit->expected, seconds, 0.02 * seconds);
  EXPECT_EQ(grows->risk.level, RiskLevel::medium) << "it may end: it has grown for less than it has to go on";
  const auto& steady = state.processes[1].devices[0].risk;
  ASSERT_TRUE(steady);
  EXPECT_EQ(steady->risk.pattern, UsagePattern::steady);
  EXPECT_FALSE(state.processes[0].risk) << "nobody says how much memory the host has";

  state.processes[0].ended = true;
  WatchedProcess again;  // another one with its PID
  again.pid = 7;
  again.first_seen_ns = 300'000'000'000;
  ProcessOnDevice& on = again.devices.emplace_back();
  on.held = true;
  on.bytes = kGiB;
  on.used.add(300'000'000'000, kGiB);
  state.processes.push_back(again);
  risks.add(state);
  risks.assess(state, true);
  EXPECT_TRUE(state.processes[0].devices[0].risk->risk.seconds_to_limit) << "its last one";
  EXPECT_EQ(state.processes[2].devices[0].risk->risk.pattern, UsagePattern::unknown);
}

TEST(ProcessRisks, TracksSoManyMemories) {
  ProcessRisks risks{ForecastOptions{}};
  MachineState state;
  state.devices.emplace_back().info.total_bytes = 80 * kGiB;
  state.devices[0].latest.used_bytes = kGiB;
  for (std::size_t pid = 0; pid < 2 * ProcessRisks::kMaxMemories; ++pid) {
    WatchedProcess& process = state.processes.emplace_back();
    process.pid = static_cast<std::int64_t>(pid);
    ProcessOnDevice& on = process.devices.emplace_back();
    on.held = true;
    on.bytes = kMiB;
    on.used.add(1, kMiB);
  }
  risks.add(state);
  risks.assess(state, true);
  const auto assessed =
      std::count_if(state.processes.begin(), state.processes.end(),
                    [](const WatchedProcess& process) { return process.devices[0].risk.has_value(); });
  EXPECT_EQ(assessed, static_cast<std::ptrdiff_t>(ProcessRisks::kMaxMemories));
}

}  // namespace
}  // namespace tidemark
