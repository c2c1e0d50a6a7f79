#include "monitor/state_builder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>

#include "base/units.h"
#include "collect/ring/layout.h"
#include "monitor/device_keys.h"

namespace tidemark {
namespace {

using ::testing::ElementsAre;

DeviceInfo gpu(std::uint32_t index, std::optional<std::uint32_t> instance_of = {}, const char* vendor = "nvidia") {
  DeviceInfo info;
  info.vendor = vendor;
  info.index = index;
  info.instance_of = instance_of;
  info.name = "Fake";
  info.uuid = std::string(instance_of ? "MIG-" : "GPU-") + std::to_string(index);
  info.total_bytes = 100 * kMiB;
  return info;
}

class StateBuilderTest : public ::testing::Test {
 protected:
  explicit StateBuilderTest(WatchedChoice choice = {}) : builder_(std::move(choice), clock_), start_(clock_.now()) {}

  template <typename What>
  void add(double seconds, What what) {
    builder_.add(Reading{start_ + static_cast<std::uint64_t>(seconds * 1e9), std::move(what)});
  }
  void found(std::vector<DeviceInfo> devices) { builder_.add(Reading{0, DevicesFound{std::move(devices), {}}}); }
  static DeviceSample used(std::uint32_t device, std::uint64_t bytes) {
    DeviceSample sample;
    sample.device = {device};
    sample.used_bytes = bytes;
    return sample;
  }
  static HostReading host(std::vector<ProcessMemory> processes = {}) {
    HostReading reading;
    reading.machine = {1000, 400};
    reading.processes = std::move(processes);
    return reading;
  }
  const MachineState& updated() {
    builder_.update();
    return builder_.state();
  }

  TickClock clock_{ring::Clock::monotonic};
  StateBuilder builder_;
  std::uint64_t start_;
};

// 16 times this share of an H100's memory, summed, is no longer 16 times it.
TEST(RunningValue, MeanOfEqualNumbersIsTheirHighest) {
  RunningValue value;
  EXPECT_EQ(value.mean(), std::nullopt);
  for (int n = 0; n < 16; ++n) value.add(100.0 * 1'028'456'448 / 85'520'809'984);
  EXPECT_EQ(value.mean(), value.most());
  value.add(0);
  EXPECT_NEAR(*value.mean(), 100.0 * 1'028'456'448 / 85'520'809'984 * 16 / 17, 1e-12);
}

TEST(RunningValue, OfTwoHasTheMeanOfAllNumbers) {
  RunningValue all;
  RunningValue some;
  for (const double number : {1.0, 2.0, 6.0}) some.add(number);
  all.add(7.0);
  all.add(some);
  all.add(RunningValue());
  EXPECT_EQ(all.count, 4U);
  EXPECT_DOUBLE_EQ(*all.mean(), 4.0);
  EXPECT_EQ(all.most(), 7.0);
}

TEST(DeviceKeys, NumbersOfTheFirstVendorAndNamesOfOthers) {
  EXPECT_THAT(device_keys({gpu(0), gpu(1), gpu(0, 1), gpu(1, {}, "amd"), gpu(0, {}, "intel")}),
              ElementsAre("0", "1", "1:0", "amd-1", "intel-0"));
  EXPECT_THAT(device_keys({gpu(1, {}, "amd")}), ElementsAre("1"));
}

TEST_F(StateBuilderTest, DevicesWithTheirUseAndItsPeak) {
  EXPECT_FALSE(builder_.state().devices_known);
  found({gpu(0), gpu(1)});
  add(1, used(0, 20 * kMiB));
  add(2, used(0, 60 * kMiB));
  add(3, used(0, 40 * kMiB));
  const WatchedDevice& device = updated().devices[0];
  EXPECT_EQ(device.used_bytes(), 40 * kMiB);
  EXPECT_EQ(device.used.peak_bytes(), 60 * kMiB);
  EXPECT_EQ(device.used_percent.mean(), 40.0);
  EXPECT_EQ(device.used_percent.most(), 60.0);
  EXPECT_EQ(device.free_bytes(), 60 * kMiB);
  EXPECT_TRUE(builder_.state().devices[1].used.empty());
  EXPECT_EQ(builder_.state().devices[1].used_bytes(), std::nullopt);
}

TEST_F(StateBuilderTest, DriverMemoryIsNotFree) {
  found({gpu(0)});
  DeviceSample sample = used(0, 30 * kMiB);
  sample.driver_reserved_bytes = 10 * kMiB;
  add(1, sample);
  EXPECT_EQ(updated().devices[0].limit_bytes(), 90 * kMiB);
  EXPECT_EQ(updated().devices[0].free_bytes(), 60 * kMiB);
}

TEST_F(StateBuilderTest, LostDeviceKeepsOnlyItsHistory) {
  found({gpu(0)});
  add(1, used(0, 20 * kMiB));
  builder_.add(Reading{0, DeviceLost{{0}, "gone"}});
  const WatchedDevice& device = updated().devices[0];
  EXPECT_EQ(device.lost, "gone");
  EXPECT_EQ(device.used_bytes(), std::nullopt);
  EXPECT_EQ(device.used.peak_bytes(), 20 * kMiB);
}

TEST_F(StateBuilderTest, WithoutGpusTheHostIsTheDevice) {
  found({});
  add(1, host());
  EXPECT_TRUE(updated().no_gpu);
  ASSERT_EQ(builder_.state().devices.size(), 1U);
  const WatchedDevice& device = builder_.state().devices[0];
  EXPECT_EQ(device.key, "cpu");
  EXPECT_EQ(device.info.total_bytes, 1000U);
  EXPECT_EQ(device.used_bytes(), 600U);
}

TEST_F(StateBuilderTest, LimitOfTheControlGroupCountsWithoutCachedFiles) {
  found({});
  HostReading reading = host();
  reading.sample.cgroup_limit_bytes = 500;
  reading.sample.cgroup_usage_bytes = 450;
  reading.cgroup_inactive_file_bytes = 200;
  add(1, reading);
  EXPECT_TRUE(updated().host.limited_by_cgroup());
  EXPECT_EQ(builder_.state().host.limit_bytes(), 500U);
  EXPECT_EQ(builder_.state().host.used_bytes(), 250U);
  EXPECT_EQ(builder_.state().devices[0].used_bytes(), 250U);
}

TEST_F(StateBuilderTest, GoneGroupKeepsItsLastValues) {
  found({});
  HostReading reading = host();
  reading.cgroup_folder = "/sys/fs/cgroup/job";
  reading.cgroup_pid = 42;
  reading.sample.cgroup_limit_bytes = 500;
  reading.sample.cgroup_usage_bytes = 450;
  add(1, reading);
  reading.sample = {};
  add(2, reading);
  const WatchedHost& watched = updated().host;
  EXPECT_EQ(watched.cgroup_pid, 42);
  EXPECT_EQ(watched.limit_bytes(), 500U);
  EXPECT_EQ(watched.used.peak_bytes(), 450U) << "not the 600 of the machine";
  EXPECT_EQ(watched.used.sample_count(), 1U);
}

TEST_F(StateBuilderTest, ProcessesComeAndGo) {
  found({gpu(0)});
  add(1, DeviceProcessesSample{0, {0}, {{7, ProcessKind::other, 5 * kMiB, "python a.py"}}});
  add(1, host({{7, "python a.py", 900, 800}}));
  const WatchedProcess& process = updated().processes[0];
  EXPECT_EQ(process.device_bytes(), 5 * kMiB);
  EXPECT_EQ(process.rss_bytes, 900U);
  EXPECT_EQ(process.pss_bytes, 800U);
  add(2, DeviceProcessesSample{0, {0}, {}});
  add(2, host());
  EXPECT_FALSE(updated().processes[0].ended) << "it may be on its way from one list to another";
  EXPECT_EQ(builder_.state().processes[0].device_bytes(), std::nullopt);
  add(5, host());
  EXPECT_TRUE(updated().processes[0].ended);
  EXPECT_EQ(builder_.state().processes[0].devices[0].used.peak_bytes(), 5 * kMiB);
  add(6, host({{7, "bash", 10, {}}}));
  ASSERT_EQ(updated().processes.size(), 2U) << "another one with the same number";
  EXPECT_EQ(builder_.state().processes[1].name, "bash");
}

TEST_F(StateBuilderTest, TheRecorderIsNotListed) {
  found({});
  HostReading reading = host({{7, "tidemark", 10, {}}, {8, "python a.py", 900, 800}});
  reading.processes[0].is_recorder = true;
  add(1, reading);
  ASSERT_EQ(updated().processes.size(), 1U);
  EXPECT_EQ(builder_.state().processes[0].pid, 8);
}

TEST_F(StateBuilderTest, RolesOfProcesses) {
  found({});
  add(1, host({{7, "python a.py", 900, 800}}));
  EXPECT_FALSE(updated().processes[0].on_host);
  HostPartsSample parts;
  HostProcess& worker = parts.processes.emplace_back();
  worker.pid = 7;
  worker.role = ProcessRole::data_worker;
  worker.pages.anon_bytes = 600;
  parts.processes.emplace_back().pid = 8;
  add(1, parts);
  ASSERT_EQ(updated().processes.size(), 1U) << "no list has the other one";
  ASSERT_TRUE(builder_.state().processes[0].on_host);
  EXPECT_EQ(builder_.state().processes[0].on_host->pages.anon_bytes, 600U);
  add(5, host());
  EXPECT_TRUE(updated().processes[0].ended);
  EXPECT_EQ(builder_.state().processes[0].on_host->role, ProcessRole::data_worker);
  EXPECT_EQ(builder_.state().processes[0].on_host->pages.anon_bytes, std::nullopt);
}

TEST_F(StateBuilderTest, PidsOfAnotherNamespaceAreOtherProcesses) {
  found({gpu(0)});
  add(1, host({{7, "bash", 10, {}}}));
  add(1, DeviceProcessesSample{0, {0}, {{7, ProcessKind::other_namespace, 5, ""}}});
  ASSERT_EQ(updated().processes.size(), 2U);
  EXPECT_EQ(builder_.state().processes[0].name, "bash");
  EXPECT_EQ(builder_.state().processes[0].device_bytes(), std::nullopt);
  EXPECT_EQ(builder_.state().processes[1].device_bytes(), 5U);
}

TEST_F(StateBuilderTest, WallTimesUseTheCurrentClock) {
  const auto wall_clock = [] {
    return static_cast<std::uint64_t>(std::chrono::system_clock::now().time_since_epoch() /
                                      std::chrono::nanoseconds(1));
  };
  constexpr std::uint64_t kHour = 3'600'000'000'000;
  builder_.state().began_wall_ns += 5 * kHour;  // it has been set back since
  const std::uint64_t before = wall_clock();
  const MachineState& state = updated();
  EXPECT_GE(state.now_wall_ns, before);
  EXPECT_LE(state.now_wall_ns, wall_clock());
  EXPECT_EQ(state.wall_ns(state.now_ns), state.now_wall_ns);
  EXPECT_EQ(state.wall_ns(state.now_ns + kHour), state.now_wall_ns + kHour);
  EXPECT_EQ(state.wall_ns(0), state.now_wall_ns - state.now_ns);
}

TEST_F(StateBuilderTest, EndedProcessesAreForgottenWhenThereAreMany) {
  found({});
  for (int pid = 1; pid <= 400; ++pid) add(pid * 10, host({{pid, "p", 10, {}}}));
  EXPECT_LE(updated().processes.size(), 256U);
  EXPECT_EQ(builder_.state().processes.size() + builder_.state().forgotten_processes, 400U);
}

class ChosenDevicesTest : public StateBuilderTest {
 protected:
  ChosenDevicesTest() : StateBuilderTest(WatchedChoice{{"1", "GPU-2", "cpu", "9"}, {}}) {}
};

TEST_F(ChosenDevicesTest, ByKeyAndUuid) {
  found({gpu(0), gpu(1), gpu(2)});
  add(1, used(0, 5));
  add(1, used(2, 6));
  const MachineState& state = updated();
  ASSERT_EQ(state.devices.size(), 3U);
  EXPECT_EQ(state.devices[0].key, "1");
  EXPECT_EQ(state.devices[1].key, "2");
  EXPECT_EQ(state.devices[1].used_bytes(), 6U);
  EXPECT_TRUE(state.devices[2].is_host);
  EXPECT_THAT(state.missing_keys, ElementsAre("9"));
  EXPECT_THAT(state.all_keys, ElementsAre("0", "1", "2", "cpu"));
}

class ChosenProcessTest : public StateBuilderTest {
 protected:
  ChosenProcessTest() : StateBuilderTest(WatchedChoice{{}, 7}) {}
};

TEST_F(ChosenProcessTest, OnlyItAndItsDescendants) {
  found({gpu(0)});
  add(1, host({{7, "torchrun", 10, {}}, {8, "python", 20, {}}}));
  EXPECT_EQ(updated().watched_pid, WatchedPid::not_listed);
  add(1, DeviceProcessesSample{0, {0}, {{8, ProcessKind::other, 5, "python"}, {9, ProcessKind::other, 6, "Xorg"}}});
  EXPECT_EQ(updated().watched_pid, WatchedPid::running);
  EXPECT_EQ(builder_.state().processes.size(), 2U);
  EXPECT_EQ(builder_.state().devices[0].processes->size(), 2U) << "who else uses the device";
  add(2, host());
  EXPECT_EQ(updated().watched_pid, WatchedPid::ended);
}

TEST_F(ChosenProcessTest, MayBeInAnotherNamespace) {
  found({gpu(0)});
  add(1, host({{7, "python", 10, {}}}));
  add(1, DeviceProcessesSample{0, {0}, {{4711, ProcessKind::other_namespace, 5, ""}}});
  EXPECT_EQ(updated().watched_pid, WatchedPid::hidden);
}

}  // namespace
}  // namespace tidemark
