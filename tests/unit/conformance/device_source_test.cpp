// Requirements for every DeviceSource.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "device_machines.h"

namespace tidemark::testing {
namespace {

using ::testing::HasSubstr;

class DeviceSourceTest : public ::testing::TestWithParam<MachineKind> {
 protected:
  DeviceSourceTest() : machine_(GetParam().make()) {}

  std::unique_ptr<DeviceMachine> machine_;
};

#define OPEN_OR_SKIP(source)                                     \
  const std::unique_ptr<DeviceSource> source = machine_->open(); \
  if (source == nullptr) GTEST_SKIP() << "no such GPU here"

TEST_P(DeviceSourceTest, NamesEachDeviceOnce) {
  OPEN_OR_SKIP(source);
  std::set<std::string> ids;
  for (const DeviceInfo& device : source->devices()) {
    EXPECT_EQ(device.vendor, source->devices().front().vendor);
    EXPECT_FALSE(device.name.empty());
    EXPECT_FALSE(device.bus_id.empty());
    EXPECT_TRUE(ids.insert(device.bus_id + device.uuid).second) << device.bus_id << device.uuid;
  }
  EXPECT_FALSE(ids.empty());
}

TEST_P(DeviceSourceTest, ListsDevices) {
  OPEN_OR_SKIP(source);
  const std::vector<ExpectedDevice> expected = machine_->expected();
  if (expected.empty()) GTEST_SKIP() << "nobody knows what a real machine should say";
  ASSERT_EQ(source->devices().size(), expected.size());
  for (std::size_t n = 0; n < expected.size(); ++n) {
    SCOPED_TRACE(expected[n].info.name);
    const DeviceInfo& info = source->devices()[n];
    EXPECT_EQ(info.vendor, expected[n].info.vendor);
    EXPECT_EQ(info.index, expected[n].info.index);
    EXPECT_EQ(info.name, expected[n].info.name);
    EXPECT_EQ(info.uuid, expected[n].info.uuid);
    EXPECT_EQ(info.bus_id, expected[n].info.bus_id);
    EXPECT_EQ(info.mig_enabled, expected[n].info.mig_enabled);
    EXPECT_EQ(info.instance_of, expected[n].info.instance_of);
    const auto sample = source->read(n);
    ASSERT_TRUE(sample.ok()) << sample.error().message;
    EXPECT_EQ(info.total_bytes, expected[n].info.total_bytes);
    EXPECT_EQ(sample->used_bytes, expected[n].sample.used_bytes);
    EXPECT_EQ(sample->driver_reserved_bytes, expected[n].sample.driver_reserved_bytes);
    EXPECT_EQ(sample->utilization_percent, expected[n].sample.utilization_percent);
    EXPECT_EQ(sample->temperature_celsius, expected[n].sample.temperature_celsius);
    EXPECT_EQ(sample->power_milliwatts, expected[n].sample.power_milliwatts);
    const auto processes = source->processes(n);
    ASSERT_TRUE(processes.ok()) << processes.error().message;
    EXPECT_EQ(*processes, expected[n].processes);
  }
}

TEST_P(DeviceSourceTest, ReadingsMakeSense) {
  OPEN_OR_SKIP(source);
  for (std::size_t n = 0; n < source->devices().size(); ++n) {
    const auto sample = source->read(n);
    ASSERT_TRUE(sample.ok()) << sample.error().message;
    const auto total_bytes = source->devices()[n].total_bytes;
    if (total_bytes && sample->used_bytes) {
      EXPECT_LE(*sample->used_bytes + sample->driver_reserved_bytes.value_or(0), *total_bytes);
    }
    EXPECT_LE(sample->utilization_percent.value_or(0), 100U);
    EXPECT_LT(sample->temperature_celsius.value_or(20), 150);
    EXPECT_LT(sample->power_milliwatts.value_or(0), 5'000'000U);
    const auto processes = source->processes(n);
    ASSERT_TRUE(processes.ok()) << processes.error().message;
    std::set<std::int64_t> pids;
    for (const SampledProcess& process : processes->value_or(std::vector<SampledProcess>())) {
      EXPECT_GT(process.pid, 0);
      EXPECT_TRUE(pids.insert(process.pid).second) << process.pid << " twice";
      EXPECT_LE(process.bytes.value_or(0), total_bytes.value_or(~std::uint64_t{0}));
    }
  }
}

TEST_P(DeviceSourceTest, DeviceThatWasNeverThere) {
  OPEN_OR_SKIP(source);
  EXPECT_FALSE(source->read(source->devices().size()).ok());
  EXPECT_FALSE(source->processes(1000).ok());
}

TEST_P(DeviceSourceTest, LostDeviceIsAnErrorAndTheOthersGoOn) {
  OPEN_OR_SKIP(source);
  ASSERT_TRUE(source->read(0).ok());
  if (!machine_->lose_first()) GTEST_SKIP() << "a real GPU is not taken away";
  const auto lost = source->read(0);
  ASSERT_FALSE(lost.ok());
  EXPECT_THAT(lost.error().message, HasSubstr("GPU " + std::to_string(source->devices()[0].index)));
  EXPECT_FALSE(source->processes(0).ok());
  EXPECT_TRUE(source->read(1).ok());
  EXPECT_TRUE(source->processes(1).ok());
}

TEST_P(DeviceSourceTest, MissingValuesAreUnknown) {
  if (!machine_->silence_first()) GTEST_SKIP() << "a real GPU answers what it wants";
  const auto source = machine_->open();
  ASSERT_NE(source, nullptr);
  const std::vector<ExpectedDevice> expected = machine_->expected();
  ASSERT_EQ(source->devices().size(), expected.size());
  const auto sample = source->read(0);
  ASSERT_TRUE(sample.ok()) << sample.error().message;
  EXPECT_EQ(source->devices()[0].total_bytes, std::nullopt);
  EXPECT_EQ(sample->used_bytes, std::nullopt);
  EXPECT_EQ(sample->driver_reserved_bytes, std::nullopt);
  EXPECT_EQ(sample->utilization_percent, std::nullopt);
  EXPECT_EQ(sample->temperature_celsius, std::nullopt);
  EXPECT_EQ(sample->power_milliwatts, std::nullopt);
  const auto processes = source->processes(0);
  ASSERT_TRUE(processes.ok());
  EXPECT_TRUE(processes->value_or(std::vector<SampledProcess>()).empty());
  EXPECT_EQ(source->devices()[1].total_bytes, expected[1].info.total_bytes) << "the others are as before";
  EXPECT_EQ(source->read(1)->used_bytes, expected[1].sample.used_bytes);
}

INSTANTIATE_TEST_SUITE_P(Machines, DeviceSourceTest, ::testing::ValuesIn(device_machines()),
                         [](const auto& param) { return std::string(param.param.name); });

}  // namespace
}  // namespace tidemark::testing
