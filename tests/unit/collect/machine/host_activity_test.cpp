#include "collect/machine/host_activity.h"

#include <gtest/gtest.h>
#include <sys/statvfs.h>

#include <chrono>
#include <string>

#include "temporary_folder.h"

namespace tidemark {
namespace {

using namespace std::chrono_literals;

constexpr char kDevices[] =
    "Inter-|   Receive                                                |  Transmit\n"
    " face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs drop fifo colls carrier "
    "compressed\n"
    "    lo: 900 9 0 0 0 0 0 0 900 9 0 0 0 0 0 0\n"
    "  eth0:1000 10 0 0 0 0 0 0 200 2 0 0 0 0 0 0\n"
    "  eth1: 30 1 0 0 0 0 0 0 4 1 0 0 0 0 0 0\n";

// user nice system idle iowait irq softirq steal guest guest_nice: the guests' ticks are included in user's.
TEST(HostActivity, CountsBusyProcessorsAndTheNetwork) {
  const testing::TemporaryFolder root;
  root.write("proc/stat", "cpu  100 10 40 800 50 0 0 0 60 0\ncpu0 1 1 1 1\n");
  root.write("proc/net/dev", kDevices);
  const HostActivity before = read_host_activity(root.path(), root.path());
  EXPECT_EQ(before.cpu_total_ticks, 1000U);
  EXPECT_EQ(before.cpu_busy_ticks, 150U);
  EXPECT_EQ(before.received_bytes, 1030U);  // without the loopback
  EXPECT_EQ(before.sent_bytes, 204U);
  root.write("proc/stat", "cpu  160 10 55 820 55 0 0 0 90 0\n");
  const HostActivity now = read_host_activity(root.path(), root.path());
  EXPECT_DOUBLE_EQ(cpu_percent(before, now).value_or(-1), 75);  // 75 of 100 ticks
  EXPECT_EQ(cpu_percent(now, now), std::nullopt);
  EXPECT_EQ(cpu_percent(now, before), std::nullopt);
}

TEST(HostActivity, MissingValuesAreUnknown) {
  const testing::TemporaryFolder root;
  const HostActivity nothing = read_host_activity(root.at("nowhere"), root.path());
  EXPECT_EQ(nothing.cpu_total_ticks, std::nullopt);
  EXPECT_EQ(nothing.received_bytes, std::nullopt);
  EXPECT_EQ(nothing.disk_total_bytes, std::nullopt);
  EXPECT_EQ(disk_percent(nothing), std::nullopt);
  root.write("proc/stat", "cpu  1\n");
  root.write("proc/net/dev", "eth0: 1 2 3\n");
  const HostActivity cut = read_host_activity(root.path(), root.path());
  EXPECT_EQ(cut.cpu_total_ticks, std::nullopt);
  EXPECT_EQ(cut.sent_bytes, std::nullopt);
}

TEST(HostActivity, DiskIsThatOfThePath) {
  const testing::TemporaryFolder folder;
  struct statvfs space {};
  ASSERT_EQ(::statvfs(folder.path().c_str(), &space), 0);
  EXPECT_EQ(read_host_activity(folder.path()).disk_total_bytes, space.f_frsize * space.f_blocks);
  HostActivity quarter;
  quarter.disk_used_bytes = 25;
  quarter.disk_available_bytes = 75;  // of a larger disk: the rest is root's
  quarter.disk_total_bytes = 105;
  EXPECT_DOUBLE_EQ(disk_percent(quarter).value_or(-1), 25);
}

TEST(HostActivity, TheProcessIsMeasuredInProcessors) {
  HostActivity before;
  before.process_cpu_ns = 1'000'000'000;
  HostActivity now;
  now.at = before.at + 2s;
  now.process_cpu_ns = 4'000'000'000;
  EXPECT_DOUBLE_EQ(process_cpu_percent(before, now).value_or(-1), 150);
}

}  // namespace
}  // namespace tidemark
