#include "live/risk_notifier.h"

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

TEST(RiskNotifier, TellsEachRiseOnce) {
  RiskNotifier notifier;
  EXPECT_TRUE(notifier.observe(at(0, RiskLevel::low)).empty());
  const auto rise = notifier.observe(at(1, RiskLevel::high));
  ASSERT_EQ(rise.size(), 1U);
  EXPECT_EQ(rise[0].before, RiskLevel::low);
  EXPECT_EQ(rise[0].device, "0");
  EXPECT_TRUE(notifier.observe(at(2, RiskLevel::high)).empty());
  EXPECT_EQ(notifier.observe(at(3, RiskLevel::critical)).size(), 1U);
}

TEST(RiskNotifier, WhatGoesUpAndDownIsToldOnce) {
  RiskNotifier notifier;
  std::size_t told = 0;
  for (int second = 0; second < 100; ++second) {
    told += notifier.observe(at(second, second % 2 == 0 ? RiskLevel::medium : RiskLevel::low)).size();
  }
  EXPECT_EQ(told, 1U);
}

TEST(RiskNotifier, FallIsToldWhenItHasHeld) {
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
    // More rises than there is room for, while the listener does not come back.
    for (std::size_t n = 0; n < RiskNotifier::kMostWaiting + 10; ++n) {
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
    while (heard < static_cast<int>(RiskNotifier::kMostWaiting)) std::this_thread::sleep_for(1ms);
  }
  EXPECT_GE(heard, static_cast<int>(RiskNotifier::kMostWaiting));
  EXPECT_TRUE(elsewhere);
}

}  // namespace
}  // namespace tidemark
