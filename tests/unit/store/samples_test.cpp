#include "store/samples.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "store/store.h"
#include "temporary_folder.h"
#include "trace/writer.h"

namespace tidemark::testing {
namespace {

using Bytes = std::optional<std::uint64_t>;

TEST(SampleColumns, ByDeviceInOrderOfTime) {
  Samples samples;
  samples.add(SampledDevice{"nvidia", 0, {}, 0, "H100", "", "", 80});
  samples.add(SampledDevice{"nvidia", 1, {}, 1, "H100", "", "", 80});
  samples.add(DeviceSample{100, {1}, 7, 1, 50, 40, 30});
  samples.add(DeviceSample{200, {0}, 8, {}, {}, {}, {}});
  samples.add(DeviceSample{150, {1}, {}, 2, {}, {}, {}});
  samples.add(DeviceSample{140, {1}, 9, 3, {}, {}, {}});  // the clock stepped back
  samples.add(DeviceProcessesSample{160, {1}, {{5, ProcessKind::recorded, 3, "python"}}});
  samples.add(HostSample{170, 1, {}, 3, 4, {}, 6, {}, 8});
  ASSERT_EQ(samples.devices.size(), 2U);
  EXPECT_EQ(samples.devices[0].time_ns, std::vector<std::uint64_t>{200});
  const DeviceSeries& second = samples.devices[1];
  EXPECT_EQ(second.device.index, 1U);
  EXPECT_EQ(second.time_ns, (std::vector<std::uint64_t>{100, 150, 150}));
  EXPECT_EQ(second.used_bytes, (std::vector<Bytes>{7, std::nullopt, 9}));
  EXPECT_EQ(second.driver_reserved_bytes, (std::vector<Bytes>{1, 2, 3}));
  ASSERT_EQ(second.processes.size(), 1U);
  EXPECT_EQ(second.processes[0].processes[0].bytes, 3U);
  EXPECT_EQ(samples.host.job_rss_bytes, std::vector<Bytes>{4});
  EXPECT_EQ(samples.host.cgroup_limit_bytes, std::vector<Bytes>{std::nullopt});
}

TEST(SampleColumns, LatestUntil) {
  EXPECT_EQ(latest_until({}, 5), std::nullopt);
  EXPECT_EQ(latest_until({10, 20, 20, 30}, 9), std::nullopt);
  EXPECT_EQ(latest_until({10, 20, 20, 30}, 10), 0U);
  EXPECT_EQ(latest_until({10, 20, 20, 30}, 29), 2U) << "the last of those at the same time";
  EXPECT_EQ(latest_until({10, 20, 20, 30}, 99), 3U);
}

TEST(SampleColumns, LoadedWithARecording) {
  const TemporaryFolder folder;
  auto sink = open_file_sink(folder.at("run.tide"), false);
  ASSERT_TRUE(sink.ok());
  auto writer = TraceWriter::create(std::move(*sink), {});
  ASSERT_TRUE(writer.ok());
  (*writer)->sample(SampledDevice{"nvidia", 0, {}, 0, "H100", "", "", 80});
  (*writer)->sample(DeviceSample{100, {0}, 7, 1, 50, 40, 30});
  ASSERT_TRUE((*writer)->finish({100, true}).ok());
  const auto store = load_store(folder.at("run.tide"));
  ASSERT_TRUE(store.ok());
  ASSERT_EQ(store->samples.devices.size(), 1U);
  EXPECT_EQ(store->samples.devices[0].used_bytes, std::vector<Bytes>{7});
}

}  // namespace
}  // namespace tidemark::testing
