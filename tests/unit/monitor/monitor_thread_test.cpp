#include "monitor/monitor_thread.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <condition_variable>
#include <csignal>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace tidemark {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;

// Every machine has the host's memory.
EngineOptions host_only() {
  EngineOptions options;
  options.machine.interval = 20ms;
  options.machine.choice.devices = {"cpu"};
  options.follow = false;  // excludes other recordings on this machine
  return options;
}

TEST(MonitorThread, ReportsWhileItWatchesAndAfterwards) {
  MonitorThread watch(host_only());
  EXPECT_FALSE(watch.watching());
  const auto early = watch.profile();
  ASSERT_FALSE(early);
  EXPECT_THAT(early.error().message, HasSubstr("start_monitoring"));
  watch.start();
  watch.start();
  EXPECT_TRUE(watch.watching());
  const auto meanwhile = watch.profile();
  ASSERT_TRUE(meanwhile) << meanwhile.error().message;
  EXPECT_EQ(meanwhile->end, WatchEnd::not_yet);
  watch.stop();
  watch.stop();
  EXPECT_FALSE(watch.watching());
  const auto report = watch.profile();
  ASSERT_TRUE(report);
  EXPECT_EQ(report->end, WatchEnd::stopped);
  ASSERT_EQ(report->state.devices.size(), 1U);
  EXPECT_GT(report->state.devices.front().used_bytes(), 0U);
  EXPECT_GE(report->state.devices.front().used_percent.count, 1U);
  EXPECT_TRUE(watch.oom());
  EXPECT_TRUE(watch.leak());
  EXPECT_TRUE(watch.fragment());
  // Restart: earlier data is discarded.
  watch.start();
  EXPECT_TRUE(watch.watching());
}

TEST(MonitorThread, ReportsARiseOnce) {
  EngineOptions options = host_only();
  options.machine.forecast.threshold_percent = 0.001;  // any use is above it
  std::mutex mutex;
  std::condition_variable changed;
  std::vector<std::string> told;
  MonitorThread watch(options);
  watch.add_listener([&](const RiskChange& change) {
    const std::lock_guard lock(mutex);
    told.push_back(change.device);
    changed.notify_all();
  });
  watch.start();
  {
    std::unique_lock lock(mutex);
    ASSERT_TRUE(changed.wait_for(lock, 60s, [&] { return !told.empty(); }));
    EXPECT_EQ(told, std::vector<std::string>{"cpu"});
  }
  ASSERT_TRUE(watch.visit([](MonitorEngine&) {}));  // listeners are called during a tick, others when it has ended
  const auto changes = watch.take_changes();
  ASSERT_TRUE(changes);
  EXPECT_EQ(changes->size(), 1U);
  EXPECT_TRUE(watch.take_changes()->empty());
  const auto report = watch.oom();
  ASSERT_TRUE(report);
  EXPECT_EQ(report->changes.size(), 1U);
  EXPECT_EQ(report->changes.front().now.level, RiskLevel::medium);
}

TEST(MonitorThread, MissingDeviceIsAnError) {
  EngineOptions options = host_only();
  options.machine.choice.devices = {"77"};
  MonitorThread watch(options);
  watch.start();
  const auto report = watch.profile();
  ASSERT_FALSE(report);
  EXPECT_THAT(report.error().message, HasSubstr("there is no device 77 here"));
}

TEST(MonitorThread, EndsWithTheProcessThatIsWatched) {
  const pid_t child = ::fork();
  if (child == 0) {
    ::alarm(120);
    ::pause();
  }
  EngineOptions options = host_only();
  options.machine.choice.pid = child;
  MonitorThread watch(options);
  watch.start();
  ASSERT_TRUE(watch.profile());
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  for (int tries = 0; tries < 3000 && watch.watching(); ++tries) std::this_thread::sleep_for(10ms);
  EXPECT_FALSE(watch.watching());
  EXPECT_EQ(watch.profile()->end, WatchEnd::process_ended);
}

TEST(MonitorThread, AForkedChildDoesNotWatch) {
  MonitorThread watch(host_only());
  watch.start();
  const pid_t child = ::fork();
  if (child == 0) {
    ::alarm(30);
    bool right = !watch.watching() && !watch.profile();
    watch.stop();
    ::_exit(right ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_TRUE(watch.watching());
}

}  // namespace
}  // namespace tidemark
