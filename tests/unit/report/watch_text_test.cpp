// Output of monitors on recorded processes.
#include <gtest/gtest.h>

#include "base/units.h"
#include "report/common/text.h"

namespace tidemark {
namespace {

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST(WatchText, ProcessOnTheCpu) {
  ProfileReport report;
  RecordedProcess& process = report.recorded.emplace_back();
  process.recording.pid = 7;
  process.recording.command = "train.py";
  RecordedDevice& cpu = process.devices.emplace_back();
  cpu.allocated_bytes = 3 * kMiB;
  cpu.allocated.add(1'000'000'000, 3 * kMiB, 5 * kMiB);
  const std::string text = to_text(report, {});
  EXPECT_TRUE(has(text,
                  "  pid  device  allocated     peak  reserved  peak  unused  program\n"
                  "    7     cpu    3.0 MiB  5.0 MiB       n/a   n/a     n/a  train.py\n"
                  "  cpu: its recorded allocations"))
      << text;
  process.devices.front().reserved_bytes = 4 * kMiB;
  process.devices.front().device = {DeviceType::cuda, 0};
  EXPECT_FALSE(has(to_text(report, {}), "cpu: its recorded"));
}

TEST(WatchText, StacksThatGrowWhereNoMemoryAsAWholeDoes) {
  LeakReport report;
  report.threshold_bytes_per_minute = 10 * kMiB;
  EXPECT_TRUE(has(to_text(report, {}), "\nNo memory is known to grow by 10.0 MiB/min or more.\n"));
  report.recorded.emplace_back();
  RecordedLeaks& leaks = report.by_stack.emplace_back();
  leaks.sources.emplace_back();
  EXPECT_TRUE(has(to_text(report, {}),
                  "\nNo memory as a whole is known to grow by 10.0 MiB/min or more, but the stacks below do grow.\n"));
  leaks.modules.emplace_back();
  EXPECT_TRUE(has(to_text(report, {}), "or more, but the stacks and modules below do grow.\n"));
}

}  // namespace
}  // namespace tidemark
