// Reports of monitors on their observations: in words, text and JSON.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/units.h"
#include "query/results/machine_results.h"
#include "query/words/monitors.h"
#include "query/words/risks.h"
#include "report/common/text.h"

namespace tidemark {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

constexpr std::uint64_t kWatchSecond = 1'000'000'000;
constexpr std::uint64_t kWatchWall = 1'795'453'920 * kWatchSecond;  // 2026-11-23 17:12:00 UTC

// A GPU of 100 GiB that has used 90 GiB since watching began, ten seconds ago.
MachineState watched_machine() {
  MachineState state;
  state.devices_known = true;
  state.now_ns = state.latest_reading_ns = 10 * kWatchSecond;
  state.now_wall_ns = kWatchWall + state.now_ns;
  WatchedDevice& device = state.devices.emplace_back();
  device.key = "0";
  device.info.name = "Fake A100";
  device.info.total_bytes = 100 * kGiB;
  for (std::uint64_t second = 0; second <= 10; ++second) device.used.add(second * kWatchSecond, 90 * kGiB);
  device.sampled_at_ns = device.assessed_at_ns = 10 * kWatchSecond;
  device.latest.used_bytes = 90 * kGiB;
  device.risk.used_bytes = 90 * kGiB;
  device.risk.used_percent = 90;
  device.risk.level = RiskLevel::medium;
  device.risk.pattern = UsagePattern::steady;
  device.risk.confidence = 0.875;
  return state;
}

template <typename Report>
Report watch_report(MachineState state) {
  Report report;
  report.state = std::move(state);
  return report;
}

void add_bash(MachineState& state, std::uint64_t bytes) {
  WatchedProcess& process = state.processes.emplace_back();
  process.pid = 6953;
  process.name = "bash";
  process.devices.push_back({.device = 0, .held = true, .bytes = bytes});
}

TEST(WatchedTitle, IsThatOfTheKey) {
  MachineState state = watched_machine();
  EXPECT_EQ(watched_title(state.devices[0], state), "GPU 0: Fake A100");
  state.devices[0].key = "amd-1";
  EXPECT_EQ(watched_title(state.devices[0], state), "GPU amd-1: Fake A100");
  state.devices[0].info.instance_of = 3;
  state.devices[0].info.index = 1;
  EXPECT_EQ(watched_title(state.devices[0], state), "GPU 3 instance 1: Fake A100");
  state.devices[0].info.name.clear();
  EXPECT_EQ(watched_title(state.devices[0], state), "GPU 3 instance 1");
}

// Nothing is read between two samples, which does not count as silence.
TEST(WatchNotes, SilenceIsLongerThanTwoIntervals) {
  ProfileReport report = watch_report<ProfileReport>(watched_machine());
  report.state.latest_reading_ns = 5'020'000'000;
  EXPECT_THAT(watch_notes(report), ElementsAre("a driver has not answered for 4.98 s; what is shown is from before"));
  report.interval_seconds = 5;
  EXPECT_THAT(watch_notes(report), IsEmpty());
  report.state.now_ns = 16 * kWatchSecond;
  EXPECT_THAT(watch_notes(report), ElementsAre("a driver has not answered for 11 s; what is shown is from before"));
  report.state.no_gpu = true;
  EXPECT_THAT(watch_notes(report), Not(::testing::Contains(HasSubstr("driver"))));
}

TEST(WatchNotes, SayOfAnUnrecordedProcessThatItIs) {
  ProfileReport report = watch_report<ProfileReport>(watched_machine());
  report.pid = 6953;
  for (const WatchedPid there : {WatchedPid::running, WatchedPid::not_listed, WatchedPid::hidden}) {
    report.state.watched_pid = there;
    EXPECT_THAT(watch_notes(report), ::testing::Contains(HasSubstr("process 6953 is not recorded")));
  }
  report.recorded.emplace_back();
  EXPECT_THAT(watch_notes(report), Each(Not(HasSubstr("is not recorded"))));
}

// A session's report has the keys of both commands, of a device the risk last.
TEST(ProfileReport, OfASessionHasRisksAndMarks) {
  MachineState state = watched_machine();
  add_bash(state, 5 * kGiB);
  state.devices.emplace_back().key = "1";
  ProfileReport session = watch_report<ProfileReport>(state);
  using Json = nlohmann::ordered_json;
  Json expected = Json::parse(to_json(session));
  const Json risks = Json::parse(to_json(watch_report<OomReport>(state)));
  for (const char* device : {"0", "1"}) {
    expected["devices"][device]["risk_assessment"] = risks["devices"][device]["risk_assessment"];
  }
  expected["command"] = "interactive";
  expected["ended_by"] = nullptr;
  expected["marks"] = Json::array({{{"seconds", 1.5}, {"name", "1"}}, {{"seconds", 3.0}, {"name", "epoch"}}});
  session.has_risks = true;
  session.marks = {{3 * kWatchSecond / 2, "1"}, {3 * kWatchSecond, "epoch"}};
  EXPECT_EQ(to_json(session), expected.dump(2) + "\n");
}

TEST(OomReport, GrowthIsUnknownBeforeThereAreEnoughSamples) {
  MachineState state = watched_machine();
  const auto risk_of = [](const MachineState& of) {
    return nlohmann::json::parse(to_json(watch_report<OomReport>(of)))["devices"]["0"]["risk_assessment"];
  };
  EXPECT_EQ(risk_of(state)["growth_rate_mb_per_sec"], 0.0);
  EXPECT_EQ(risk_of(state)["growth_error_mb_per_sec"], 0.0);
  state.devices[0].risk.pattern = UsagePattern::unknown;
  EXPECT_EQ(risk_of(state)["growth_rate_mb_per_sec"], nullptr);
  EXPECT_EQ(risk_of(state)["growth_error_mb_per_sec"], nullptr);
}

// As the tracker leaves it: without an assessment.
TEST(OomReport, LostDevicesHaveOnlyTheReason) {
  OomReport report = watch_report<OomReport>(watched_machine());
  WatchedDevice& device = report.state.devices[0];
  device.lost = "GPU 0 (GPU-1) does not answer any more (NVML: GPU is lost (15))";
  device.risk = {};
  device.assessed_at_ns.reset();
  device.latest = {};
  const nlohmann::json risk = nlohmann::json::parse(to_json(report))["devices"]["0"]["risk_assessment"];
  EXPECT_EQ(risk["risk_level"], nullptr);
  EXPECT_EQ(risk["confidence"], nullptr);
  EXPECT_EQ(risk["recommendation"], "GPU 0 (GPU-1) does not answer any more (NVML: GPU is lost (15)).");
  const std::string text = to_text(report, Terminal{});
  EXPECT_THAT(text, HasSubstr("risk            n/a\n"));
  EXPECT_THAT(text, Not(HasSubstr("confidence")));
}

TEST(ProfileReport, UnknownValuesAreOneWord) {
  MachineState state = watched_machine();
  state.devices[0].used_percent.add(90);
  EXPECT_THAT(to_text(watch_report<ProfileReport>(state), Terminal{}), HasSubstr("utilization     n/a\n"));
  state.devices[0].utilization_percent.add(30);
  state.devices[0].utilization_percent.add(40);
  const std::string text = to_text(watch_report<ProfileReport>(state), Terminal{});
  EXPECT_THAT(text, HasSubstr("utilization     35.0% on average, 40.0% at most\n"));
  EXPECT_THAT(text, HasSubstr("used            90.0% on average, 90.0% at most, 11 samples\n"));
}

TEST(Recommendation, NamesTheHolderOfARealShareOnly) {
  MachineState state = watched_machine();
  add_bash(state, 500 * kMiB);
  EXPECT_THAT(recommendation_text(state.devices[0], state), Not(HasSubstr("6953")));
  state.processes[0].devices[0].bytes = 9 * kGiB;
  EXPECT_THAT(recommendation_text(state.devices[0], state), HasSubstr("Process 6953 (bash) has 9.0 GiB of it."));
}

// State at the time of the change, as in a report of that time.
TEST(RiskChangeJson, HasTheRecommendationOfAReport) {
  MachineState state = watched_machine();
  add_bash(state, 80 * kGiB);
  RiskNotifier notifier;
  const auto changes = notifier.observe(state);
  ASSERT_EQ(changes.size(), 1U);
  const nlohmann::json change = nlohmann::json::parse(to_json(changes[0]));
  const nlohmann::json report = nlohmann::json::parse(to_json(watch_report<OomReport>(state)));
  EXPECT_EQ(change["risk_assessment"], report["devices"]["0"]["risk_assessment"]);
  EXPECT_EQ(
      change["risk_assessment"]["recommendation"],
      "90.0% of 100.0 GiB is used; steady. 10.0 GiB is free: what needs more at a time, such as a larger batch or "
      "another process, fails. Process 6953 (bash) has 80.0 GiB of it.");
  EXPECT_EQ(change["change"], "2026-11-23 17:12:10 UTC GPU 0: medium (was low): 90.0% used; steady");
}

TEST(RiskChangeJson, OfTheHostContainsKilledProcesses) {
  MachineState state = watched_machine();
  state.devices.clear();
  state.host.memory = {.total_bytes = 100 * kGiB, .available_bytes = 10 * kGiB};
  state.host.used.add(0, 90 * kGiB);
  state.host.assessed_at_ns = 10 * kWatchSecond;
  state.host.risk.level = RiskLevel::medium;
  state.host.risk.pattern = UsagePattern::steady;
  state.host.risk.used_percent = 90;
  state.host.cgroup_oom_kills_at_start = 2;
  state.host.cgroup_oom_kills = 3;
  RiskNotifier notifier;
  const auto changes = notifier.observe(state);
  ASSERT_EQ(changes.size(), 1U);
  EXPECT_EQ(recommendation_text(changes[0]), host_recommendation_text(state));
  EXPECT_THAT(recommendation_text(changes[0]), HasSubstr("the kernel killed a process of this control group"));
}

TEST(FragmentReport, GivesTheReasonForUnknownDevices) {
  FragmentReport report = watch_report<FragmentReport>(watched_machine());
  const auto why = [&] { return nlohmann::json::parse(to_json(report))["devices"]["0"]["unknown_because"]; };
  EXPECT_THAT(why().get<std::string>(), HasSubstr("record the program with `tidemark run`"));
  RecordedProcess& process = report.recorded.emplace_back();
  EXPECT_EQ(why(), "no recorded process has reserved memory of it while it was watched");
  RecordedDevice& on = process.devices.emplace_back();
  on.device = {DeviceType::cuda, 0};
  EXPECT_THAT(why().get<std::string>(), HasSubstr("it cannot be told which GPU"));
  on.key = "0";
  on.unused_share.add(0.25);
  EXPECT_EQ(why(), nullptr);
  process.devices.clear();
  report.state.devices[0].is_host = true;
  EXPECT_THAT(to_text(report, Terminal{}),
              HasSubstr("unused          n/a: PyTorch's allocator of the CPU reserves nothing"));
}

TEST(LagText, ReportsHaveItOnlyWhereThereIsSome) {
  ProfileReport report;
  RecordedProcess& process = report.recorded.emplace_back();
  process.recording.pid = 42;
  EXPECT_THAT(to_json(report), Not(HasSubstr("behind")));
  EXPECT_THAT(to_text(report, {}), Not(HasSubstr("faster than they can be read")));
  process.lag.skipped_events = 5;
  process.lag.skipped_until_ns = 7;
  process.lag.has_newest_totals = true;
  EXPECT_THAT(to_text(report, {}), HasSubstr("faster than they can be read: 5 events were skipped"));
  const auto row = nlohmann::json::parse(to_json(report))["recorded"][0];
  EXPECT_EQ(row["behind_seconds"], 0.0);
  EXPECT_EQ(row["behind_bytes"], 0);
  EXPECT_EQ(row["skipped_events"], 5);
  EXPECT_EQ(row["skipped_until_ns"], 7);
}

TEST(LagText, SaysWhatWasSkippedAndHowLateTheRestIs) {
  RecordedProcess process;
  process.recording.pid = 42;
  process.recording.command = "python train.py";
  EXPECT_EQ(lag_text(process), "");
  process.lag.behind_bytes = 1000;
  process.lag.behind_seconds = 0.4;
  EXPECT_EQ(lag_text(process), "") << "that is no more than usual";
  process.lag.behind_seconds = 30;
  EXPECT_EQ(lag_text(process),
            "process 42 (python train.py) makes events faster than they can be read: what is known of it is 30 s "
            "behind");
  process.lag.has_newest_totals = true;
  EXPECT_EQ(lag_text(process),
            "process 42 (python train.py) makes events faster than they can be read: they are read 30 s behind. What "
            "its allocator holds is exact; stacks and steps are those of the events that were read");
  process.lag.skipped_events = 1'234'567;
  process.lag.skipped_until_ns = 61'500'000'000;
  process.lag.behind_seconds = 0.1;
  EXPECT_EQ(
      lag_text(process),
      "process 42 (python train.py) makes events faster than they can be read: 1,234,567 events were skipped, the "
      "last of them 61.5 s after its start. What its allocator holds is exact; stacks and steps are those of the "
      "events that were read");
}

}  // namespace
}  // namespace tidemark
