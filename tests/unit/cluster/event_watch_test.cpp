#include "cluster/event_watch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/units.h"

namespace tidemark {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class EventWatchTest : public ::testing::Test {
 protected:
  void rank(std::int64_t pid, std::uint32_t rank) {
    found_.ranks.push_back({pid, rank, {}, {}, ""});
    WatchedProcess& process = now_.state.processes.emplace_back();
    process.pid = pid;
    process.name = "python train.py";
  }
  void take_incident(RecordedIncident incident) {
    MonitorEvent event;
    event.kind = MonitorEventKind::incident;
    event.incident = std::move(incident);
    watch_.take_events({event}, now_.state);
  }
  std::vector<std::string> take() {
    std::vector<std::string> texts;
    for (const JobEvent& event : watch_.take()) {
      EXPECT_EQ(event.node, "b");
      texts.push_back(std::string(name_in(kJobEventKindNames, event.kind)) + " " +
                      (event.rank ? std::to_string(*event.rank) : "-") + " " + event.text);
    }
    return texts;
  }

  MonitorSnapshot now_;
  NodeRanks found_;
  EventWatch watch_{"b"};
};

TEST_F(EventWatchTest, RanksComeAndGo) {
  rank(100, 4);
  watch_.take_ranks(now_, found_);
  EXPECT_THAT(take(), IsEmpty());  // they were there before
  rank(101, 5);
  watch_.take_ranks(now_, found_);
  watch_.take_ranks(now_, found_);
  EXPECT_THAT(take(), ElementsAre("rank_started 5 started: python train.py"));
  found_.ranks.erase(found_.ranks.begin());
  watch_.take_ranks(now_, found_);
  EXPECT_THAT(take(), ElementsAre("rank_ended 4 ended"));
}

TEST_F(EventWatchTest, IncidentsHaveTheirRank) {
  rank(100, 4);
  found_.strangers = {200};
  watch_.take_ranks(now_, found_);
  RecordedIncident failed;
  failed.pid = 100;
  failed.device = "1";
  failed.bytes = 64 * kMiB;
  take_incident(failed);
  failed.pid = 200;  // of another job
  take_incident(failed);
  RecordedIncident dump;
  dump.kind = RecordedIncident::Kind::dump;
  dump.dump.paths = {"/data/run.tide", "/data/run.rank1.tide"};
  take_incident(dump);
  RecordedIncident killed;
  killed.kind = RecordedIncident::Kind::killed;
  killed.pid = 100;
  killed.process = "python";
  take_incident(killed);
  EXPECT_THAT(take(), ElementsAre("out_of_memory 4 out of memory on GPU 1: 64.0 MiB requested",
                                  "dump - dumped to /data/run.tide and 1 more",
                                  "out_of_memory 4 python was killed by the kernel's OOM killer"));
}

TEST_F(EventWatchTest, KillsAreCountedOnce) {
  now_.state.host.cgroup_oom_kills_at_start = 3;
  now_.state.host.cgroup_oom_kills = 3;
  watch_.take_events({}, now_.state);
  EXPECT_THAT(take(), IsEmpty());
  now_.state.host.cgroup_oom_kills = 5;
  watch_.take_events({}, now_.state);
  watch_.take_events({}, now_.state);
  EXPECT_THAT(take(), ElementsAre("out_of_memory - the kernel's OOM killer ended 2 processes in the control group"));
}

TEST_F(EventWatchTest, ChangesOfRiskHaveTheirReason) {
  rank(100, 4);
  watch_.take_ranks(now_, found_);
  MonitorEvent event;
  event.kind = MonitorEventKind::risk_changed;
  event.risk.emplace();
  event.risk->device = "1";
  event.risk->now.level = RiskLevel::high;
  event.risk->now.seconds_to_limit = Interval{90, 60, 120};
  event.risk->holder.emplace().process.pid = 100;
  watch_.take_events({event}, now_.state);
  EXPECT_THAT(take(), ElementsAre("risk 4 risk of GPU 1 high (was low), full in about 90 s"));
}

TEST_F(EventWatchTest, ALeakIsSaidOnceForAProcess) {
  rank(100, 4);
  watch_.take_ranks(now_, found_);
  LeakReport report;
  report.state = now_.state;
  report.recorded.emplace_back().recording.pid = 100;
  MemoryGrowth resident;
  resident.memory = GrowingMemory::process_host;
  resident.verdict = GrowthVerdict::growing;
  MemoryGrowth allocated = resident;
  allocated.memory = GrowingMemory::allocated;
  allocated.growth.emplace().bytes_per_minute.value = 12.0 * kMiB;
  MemoryGrowth host = resident;
  host.memory = GrowingMemory::host;
  report.growths = {host, resident, allocated};
  watch_.take_growths(report);
  watch_.take_growths(report);
  EXPECT_THAT(take(), ElementsAre("leak 4 allocated memory grows without end: 12.0 MiB a minute"));
  report.growths.clear();
  watch_.take_growths(report);
  report.growths = {allocated};
  watch_.take_growths(report);
  EXPECT_EQ(take().size(), 1U);
}

}  // namespace
}  // namespace tidemark
