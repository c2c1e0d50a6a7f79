// From a (fake) driver to the samples of a recording.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>
#include <thread>

#include "base/units.h"
#include "collect/recorder/sampling/sample_taker.h"
#include "collect/recorder/sampling/sample_writer.h"
#include "temporary_folder.h"
#include "trace_test_support.h"

namespace tidemark::testing {
namespace {

using namespace std::chrono_literals;
using nlohmann::json;
using ::testing::HasSubstr;
using Clock = std::chrono::steady_clock;

template <typename Kind>
std::vector<Kind> of_kind(const std::vector<SampleRecord>& records) {
  std::vector<Kind> found;
  for (const SampleRecord& record : records) {
    if (const auto* kind = std::get_if<Kind>(&record)) found.push_back(*kind);
  }
  return found;
}

template <typename Kind>
std::vector<Kind> of_kind(const std::vector<Reading>& readings) {
  std::vector<Kind> found;
  for (const Reading& reading : readings) {
    if (const auto* kind = std::get_if<Kind>(&reading.what)) found.push_back(*kind);
  }
  return found;
}

TEST(Pace, KeepsItsIntervalWhenThingsAreCheap) {
  Pace pace(100ms);
  const Clock::time_point start = Clock::time_point() + 1h;
  EXPECT_TRUE(pace.due(start));
  pace.done(start, 10us, 10us);
  EXPECT_FALSE(pace.due(start + 99ms));
  EXPECT_TRUE(pace.due(start + 100ms));
  pace.done(start + 103ms, 10us, 10us);
  EXPECT_EQ(pace.next(), start + 200ms) << "a little late does not shift the grid";
  pace.done(start + 950ms, 10us, 10us);
  EXPECT_EQ(pace.next(), start + 1050ms) << "what was missed is not made up for";
}

TEST(Pace, TakesAThousandthOfACore) {
  Pace pace(100ms);
  const Clock::time_point start = Clock::time_point() + 1h;
  pace.done(start, 5ms, 6ms);
  EXPECT_EQ(pace.next(), start + 100ms) << "the first time, which loads and connects, does not count";
  pace.done(start + 100ms, 5ms, 6ms);
  EXPECT_EQ(pace.next(), start + 100ms + 5s);
}

TEST(Pace, HurriesAsFarAsTheClockAllows) {
  const Clock::time_point start = Clock::time_point() + 1h;
  Pace quick(1s);
  quick.done(start, 10us, 200us);
  quick.done(start + 1s, 10us, 200us);
  EXPECT_EQ(quick.next(), start + 2s);
  quick.sample_soon();
  EXPECT_EQ(quick.next(), start + 1s + 200ms) << "waiting counts: others wait meanwhile";
  Pace slow(1s);
  slow.done(start, 10us, 5ms);
  slow.done(start + 1s, 10us, 5ms);
  slow.sample_soon();
  EXPECT_EQ(slow.next(), start + 2s) << "in its own time, and not later";
}

class SamplesTest : public ::testing::Test {
 protected:
  SamplesTest() {
    script_["devices"] = {{{"name", "Fake H100"},
                           {"uuid", "GPU-1"},
                           {"bus", 0x65},
                           {"memory", {{"total", 100 * kMiB}, {"reserved", kMiB}, {"used", 7 * kMiB}}},
                           {"utilization", 5},
                           {"lost_when", folder_.at("lost")},
                           {"processes", {{{"pid", "caller"}, {"bytes", 2 * kMiB}}, {{"pid", "parent"}}}}},
                          {{"name", "Fake H100"}, {"uuid", "GPU-2"}, {"bus", 0x66}}};
  }
  SampleOptions options(std::chrono::nanoseconds interval) {
    ::setenv("FAKES_NVML", folder_.write("nvml.json", script_.dump()).c_str(), 1);
    return {true, interval, {"", FAKES_NVML_NEW}};
  }
  /// The samples from the readings in the recording of this process.
  std::vector<SampleRecord> written(const std::vector<Reading>& readings, std::uint64_t start_ticks = 0) {
    Bytes bytes;
    const auto writer = write_to(&bytes);
    SampleWriter samples(*writer, clock_, ::getpid(), start_ticks);
    for (const Reading& reading : readings) samples.add(reading);
    EXPECT_TRUE(writer->finish({0, true}).ok());
    auto reader = TraceReader::from_memory(bytes, "memory");
    std::vector<SampleRecord> records;
    (*reader)->observe_samples([&](const SampleRecord& record) { records.push_back(record); });
    losses_ = read_all(std::move(reader)).definitions.losses;
    return records;
  }

  TemporaryFolder folder_;
  TickClock clock_{ring::Clock::monotonic};
  json script_;
  std::vector<Loss> losses_;
};

TEST_F(SamplesTest, AllDriverValues) {
  SampleTaker taker(options(100ms), ::getppid(), clock_);
  std::vector<Reading> readings = {Reading{0, taker.found()}};
  const std::uint64_t before = clock_.now();
  taker.take(readings);
  const auto records = written(readings, before);

  const auto devices = of_kind<SampledDevice>(records);
  ASSERT_EQ(devices.size(), 2U);
  EXPECT_EQ(devices[0], (SampledDevice{"nvidia", 0, {}, 0, "Fake H100", "GPU-1", "0000:65:00.0", 100 * kMiB}));
  EXPECT_EQ(devices[1].cuda_index, 1U);
  const auto samples = of_kind<DeviceSample>(records);
  ASSERT_EQ(samples.size(), 2U);
  EXPECT_EQ(samples[0].used_bytes, 7 * kMiB);
  EXPECT_EQ(samples[0].driver_reserved_bytes, kMiB);
  EXPECT_EQ(samples[0].utilization_percent, 5U);
  EXPECT_EQ(samples[0].temperature_celsius, std::nullopt);
  EXPECT_EQ(samples[1].device.value, 1U);
  EXPECT_LT(samples[1].time_ns, 60'000'000'000U);

  const auto processes = of_kind<DeviceProcessesSample>(records);
  ASSERT_EQ(processes.size(), 2U);
  ASSERT_EQ(processes[0].processes.size(), 2U);
  EXPECT_EQ(processes[0].processes[0].pid, ::getpid());
  EXPECT_EQ(processes[0].processes[0].bytes, 2 * kMiB);
  EXPECT_EQ(processes[0].processes[1].bytes, std::nullopt);
  EXPECT_TRUE(processes[1].processes.empty());

  const auto hosts = of_kind<HostSample>(records);
  ASSERT_EQ(hosts.size(), 1U);
  EXPECT_GT(hosts[0].rss_bytes.value_or(0), kMiB);
  EXPECT_GE(hosts[0].job_rss_bytes.value_or(0), hosts[0].rss_bytes.value_or(0));
  EXPECT_LE(hosts[0].pss_bytes.value_or(0), hosts[0].rss_bytes.value_or(0));
  EXPECT_GE(hosts[0].job_processes.value_or(0), 1U);
}

TEST_F(SamplesTest, AProcessOfTheRecorderIsNotOfTheJob) {
  const pid_t child = ::fork();
  if (child == 0) {
    for (;;) ::pause();
  }
  for (const bool outsider : {false, true}) {
    SampleOptions these = options(100ms);
    if (outsider) these.outsider = child;
    SampleTaker taker(these, ::getpid(), clock_);
    std::vector<Reading> readings = {Reading{0, taker.found()}};
    taker.take(readings);
    const auto hosts = of_kind<HostReading>(readings);
    ASSERT_EQ(hosts.size(), 1U);
    EXPECT_EQ(hosts[0].processes.size(), outsider ? 0U : 1U);
  }
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
}

TEST_F(SamplesTest, JobOutsideTheRecorderIsItsFirstProcessAndDescendants) {
  const pid_t child = ::fork();
  if (child == 0) {
    for (;;) ::pause();
  }
  SampleOptions these = options(100ms);
  these.first_process = ::getpid();
  SampleTaker taker(these, child, clock_);
  std::vector<Reading> readings = {Reading{0, taker.found()}};
  taker.take(readings);
  const auto hosts = of_kind<HostReading>(readings);
  ASSERT_EQ(hosts.size(), 1U);
  EXPECT_EQ(hosts[0].sample.job_processes, 2U);
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
}

TEST_F(SamplesTest, ReadingsBeforeTheProcessAreIgnored) {
  SampleTaker taker(options(100ms), ::getppid(), clock_);
  std::vector<Reading> readings = {Reading{0, taker.found()}};
  taker.take(readings);
  const auto records = written(readings, clock_.now());
  EXPECT_EQ(records.size(), 2U) << "the devices alone";
}

TEST_F(SamplesTest, InvisibleDevicesAreIgnored) {
  DevicesFound found;
  found.devices.push_back({{"amd", 0, {}, {}, "MI300X", "", "0000:01:00.0", {}}, {}});
  found.devices.push_back(
      {{"nvidia", 0, {}, {}, "A100", "GPU-1", "0000:02:00.0", {}}, true});  // CUDA shows instances only
  const DeviceSample first{0, {0}, 5, {}, {}, {}, {}};
  const DeviceSample second{0, {1}, 5, {}, {}, {}, {}};
  const auto records = written({{0, found}, {1, second}, {0, DeviceLost{{1}, "gone"}}, {1, first}});
  ASSERT_EQ(records.size(), 2U);
  EXPECT_EQ(std::get<SampledDevice>(records[0]).vendor, "amd");
  EXPECT_EQ(std::get<DeviceSample>(records[1]).device.value, 0U);
  EXPECT_TRUE(losses_.empty());
}

TEST_F(SamplesTest, ProcessesOfADevice) {
  DevicesFound found;
  found.devices = {{{"nvidia", 0, {}, {}, "H100", "GPU-1", "", 100}, {}}};
  const DeviceProcessesSample listed{0,
                                     {0},
                                     {{::getpid(), ProcessKind::job, 1, "python a.py"},
                                      {5, ProcessKind::job, 2, "python b.py"},
                                      {6, ProcessKind::other, 3, "Xorg"},
                                      {7, ProcessKind::ended, 4, ""},
                                      {8, ProcessKind::other_namespace, {}, ""}}};
  const auto records = written({{0, found}, {1, listed}});
  const auto processes = of_kind<DeviceProcessesSample>(records).at(0).processes;
  EXPECT_EQ(processes, (std::vector<SampledProcess>{{::getpid(), ProcessKind::recorded, 1, "python a.py"},
                                                    {5, ProcessKind::job, 2, "python b.py"},
                                                    {6, ProcessKind::other, 3, "Xorg"},
                                                    {7, ProcessKind::ended, 4, ""},
                                                    {8, ProcessKind::other_namespace, {}, ""}}));
}

TEST_F(SamplesTest, LostDeviceIsNotedOnceAndTheOthersGoOn) {
  SampleTaker taker(options(1ns), ::getpid(), clock_);
  std::vector<Reading> readings = {Reading{0, taker.found()}};
  taker.take(readings);
  folder_.write("lost", "");
  const auto deadline = Clock::now() + 20s;
  const auto lost_and_more = [&] {
    const auto last = of_kind<DeviceSample>(readings);
    return !of_kind<DeviceLost>(readings).empty() &&
           std::count_if(last.begin(), last.end(), [](const auto& sample) { return sample.device.value == 1; }) >= 4;
  };
  while (!lost_and_more() && Clock::now() < deadline) taker.take(readings);
  EXPECT_TRUE(lost_and_more());
  EXPECT_GT(of_kind<DeviceSample>(written(readings)).size(), 4U);
  ASSERT_EQ(losses_.size(), 1U);
  EXPECT_EQ(losses_[0].kind, QualityId::device_lost);
  EXPECT_EQ(losses_[0].count, 1U);
  EXPECT_THAT(losses_[0].text, HasSubstr("GPU 0 (GPU-1) does not answer any more"));
}

TEST_F(SamplesTest, OnSeparateThread) {
  std::vector<Reading> readings;
  {
    Sampler sampler(options(2ms), ::getpid(), clock_);
    EXPECT_TRUE(sampler.collect().empty()) << "not started";
    sampler.start();
    sampler.start();
    const auto deadline = Clock::now() + 20s;
    while (of_kind<HostReading>(readings).size() < 3 && Clock::now() < deadline) {
      std::this_thread::sleep_for(1ms);
      for (Reading& reading : sampler.collect()) readings.push_back(std::move(reading));
    }
  }
  ASSERT_GE(of_kind<HostReading>(readings).size(), 3U);
  EXPECT_TRUE(std::holds_alternative<DevicesFound>(readings.front().what));
  EXPECT_EQ(of_kind<DevicesFound>(readings).size(), 1U);
}

TEST_F(SamplesTest, AtOnceWhenAsked) {
  Sampler sampler(options(1h), ::getppid(), clock_);
  sampler.start();
  std::vector<Reading> readings;
  const auto wait_for = [&](std::size_t count) {
    const Clock::time_point deadline = Clock::now() + 30s;
    while (of_kind<DeviceSample>(readings).size() < count && Clock::now() < deadline) {
      for (Reading& reading : sampler.collect()) readings.push_back(std::move(reading));
      std::this_thread::sleep_for(1ms);
    }
    return of_kind<DeviceSample>(readings).size();
  };
  ASSERT_EQ(wait_for(2), 2U) << "both devices, once an hour";
  sampler.sample_now();
  sampler.sample_now();
  EXPECT_EQ(wait_for(4), 4U);
}

TEST_F(SamplesTest, SwitchedOff) {
  SampleOptions off = options(1ms);
  off.enabled = false;
  Sampler sampler(off, ::getpid(), clock_);
  sampler.start();
  std::this_thread::sleep_for(20ms);
  EXPECT_TRUE(sampler.collect().empty());
}

}  // namespace
}  // namespace tidemark::testing
