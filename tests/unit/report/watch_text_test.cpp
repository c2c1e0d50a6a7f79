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
                  "\nNo memory as a whole is known to grow by 10.0 MiB/min or more, but parts of it grow.\n"));
}

TEST(WatchText, WhatRecordingsShowComesBeforeWhatSamplesShow) {
  LeakReport report;
  report.threshold_bytes_per_minute = 10 * kMiB;
  LiveRecording& recording = report.recorded.emplace_back().recording;
  recording.pid = 7;
  recording.command = "python train.py";
  recording.path = "/tmp/run.tide";
  RecordedLeaks& leaks = report.by_stack.emplace_back();
  leaks.leaks.verdict = LeakVerdict::leak;
  leaks.leaks.recording.path = recording.path;
  leaks.leaks.leak_count = 1;
  leaks.leaks.bytes_per_step = 4096;
  LeakObject& leak = leaks.leaks.objects.emplace_back();
  leak.mistake = {UsualMistake::losses_with_graph, Confidence::exact, "__main__.losses"};
  leak.growth.bytes_per_step.value = 4096;
  report.state.processes.emplace_back().pid = 7;
  report.state.processes.emplace_back().pid = 8;
  for (const std::size_t process : {0U, 1U}) {
    MemoryGrowth& growth = report.growths.emplace_back();
    growth.memory = GrowingMemory::process_host;
    growth.process = process;
    growth.verdict = GrowthVerdict::none;
  }
  const std::string text = to_text(report, {});
  EXPECT_NE(text.find("contains the leak above  RSS of process 7"), std::string::npos) << text;
  EXPECT_NE(text.find("no lasting growth  RSS of process 8"), std::string::npos) << text;
  EXPECT_TRUE(
      text.starts_with("Process 7 (python train.py)\n"
                       "Leak: 1 call site grows by 4.0 KiB per step\n"
                       "Fix: __main__.losses: keep loss.item() or loss.detach()\n"
                       "  cause: losses are kept with their autograd graphs\n"))
      << text;
  EXPECT_TRUE(text.ends_with("Next: tidemark report /tmp/run.tide  # a page with the growth over time\n")) << text;
}

TEST(WatchText, AListOfSmallTensorsIsNamedWhereTheHostGrows) {
  LeakReport report;
  report.recorded.emplace_back();
  RecordedLeaks& leaks = report.by_stack.emplace_back();
  leaks.leaks.verdict = LeakVerdict::no_leak;
  leaks.leaks.host_growth.emplace_back();
  leaks.objects.emplace().storages.resize(20);
  GrowingType& type = leaks.types.emplace_back();
  GrowingHolder& holder = type.holders.emplace_back();
  holder = {"__main__.losses", "__main__.losses[9]", 19, 76};
  EXPECT_TRUE(has(to_text(report, {}), "Likely cause: __main__.losses grows (19 of 20 new storages)."));
  holder.storages = 5;
  EXPECT_FALSE(has(to_text(report, {}), "Likely cause")) << "most of the new storages are elsewhere";
}

}  // namespace
}  // namespace tidemark
