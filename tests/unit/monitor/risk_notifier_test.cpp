#include "monitor/risk_notifier.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <thread>
#include <vector>

namespace tidemark {
namespace {

using namespace std::chrono_literals;

MachineState at(double seconds, RiskLevel level) {
  MachineState state;
  WatchedDevice& device = state.devices.emplace_back();
  device.key = "0";
  device.risk.level = level;
  device.assessed_at_ns = static_cast<std::uint64_t>(seconds * 1e9);
  return state;
}

TEST(RiskNotifier, ReportsEachRiseOnce) {
  RiskNotifier notifier;
  EXPECT_TRUE(notifier.observe(at(0, RiskLevel::low)).empty());
  const auto rise = notifier.observe(at(1, RiskLevel::high));
  ASSERT_EQ(rise.size(), 1U);
  EXPECT_EQ(rise[0].before, RiskLevel::low);
  EXPECT_EQ(rise[0].device, "0");
  EXPECT_TRUE(notifier.observe(at(2, RiskLevel::high)).empty());
  EXPECT_EQ(notifier.observe(at(3, RiskLevel::critical)).size(), 1U);
}

// The clock is set forward by an hour after the first rise; `assessed_at_ns` is half a second before the update.
TEST(RiskNotifier, WallTimesUseTheClockAtTheUpdate) {
  constexpr std::uint64_t kSecond = 1'000'000'000;
  constexpr std::uint64_t kWall = 1'700'000'000 * kSecond;
  RiskNotifier notifier;
  MachineState state = at(1, RiskLevel::high);
  state.began_wall_ns = kWall;
  state.now_ns = 3 * kSecond / 2;
  state.now_wall_ns = kWall + state.now_ns;
  state.host.assessed_at_ns = kSecond;
  state.host.risk.level = RiskLevel::medium;
  for (const RiskChange& change : notifier.observe(state)) EXPECT_EQ(change.wall_ns, kWall + kSecond);
  state.devices[0].risk.level = state.host.risk.level = RiskLevel::critical;
  state.now_wall_ns += 3600 * kSecond;
  const auto changes = notifier.observe(state);
  ASSERT_EQ(changes.size(), 2U);
  for (const RiskChange& change : changes) EXPECT_EQ(change.wall_ns, kWall + 3601 * kSecond);
}

TEST(RiskNotifier, OscillationIsReportedOnce) {
  RiskNotifier notifier;
  std::size_t told = 0;
  for (int second = 0; second < 100; ++second) {
    told += notifier.observe(at(second, second % 2 == 0 ? RiskLevel::medium : RiskLevel::low)).size();
  }
  EXPECT_EQ(told, 1U);
}

TEST(RiskNotifier, FallIsReportedAfterItHasHeld) {
  RiskNotifier notifier;
  (void)notifier.observe(at(0, RiskLevel::high));
  EXPECT_TRUE(notifier.observe(at(1, RiskLevel::low)).empty());
  EXPECT_TRUE(notifier.observe(at(30, RiskLevel::low)).empty());
  const auto fall = notifier.observe(at(31, RiskLevel::low));
  ASSERT_EQ(fall.size(), 1U);
  EXPECT_EQ(fall[0].before, RiskLevel::high);
  EXPECT_EQ(notifier.observe(at(32, RiskLevel::high)).size(), 1U);
}

TEST(RiskNotifier, ListenersMayTakeTheirTime) {
  std::mutex mutex;
  std::condition_variable changed;
  bool go = false;
  std::atomic<int> heard = 0;
  const auto observer = std::this_thread::get_id();
  std::atomic<bool> elsewhere = true;
  {
    RiskNotifier notifier;
    notifier.add([&](const RiskChange&) {
      if (std::this_thread::get_id() == observer) elsewhere = false;
      std::unique_lock lock(mutex);
      changed.wait(lock, [&] { return go; });
      ++heard;
    });
    // More rises than there is room for, while the listener does not return.
    for (std::size_t n = 0; n < RiskNotifier::kMaxWaiting + 10; ++n) {
      MachineState state = at(1, RiskLevel::high);
      state.devices[0].key = std::to_string(n);
      EXPECT_EQ(notifier.observe(state).size(), 1U);
    }
    EXPECT_GE(notifier.dropped(), 9U);
    EXPECT_LE(notifier.dropped(), 10U);
    {
      const std::lock_guard lock(mutex);
      go = true;
      changed.notify_all();
    }
    while (heard < static_cast<int>(RiskNotifier::kMaxWaiting)) std::this_thread::sleep_for(1ms);
  }
  EXPECT_GE(heard, static_cast<int>(RiskNotifier::kMaxWaiting));
  EXPECT_TRUE(elsewhere);
}

}  // namespace
}  // namespace tidemark
