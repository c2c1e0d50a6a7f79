#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/units.h"
#include "report/common/text_parts.h"

namespace tidemark {
namespace {

std::vector<std::string> lines(const HostUsage& host) {
  std::vector<std::string> lines;
  for (const Fact& fact : host_facts(host)) lines.push_back(std::string(fact.label) + ": " + fact.value);
  return lines;
}

TEST(HostFacts, NameWhatTheJobAndTheControlGroupHeld) {
  HostUsage host;
  EXPECT_TRUE(lines(host).empty());
  host.rss = SampledBytes{700 * kMiB, 2'000'000'000, 600 * kMiB};
  host.most_job_processes = 1;
  host.job_pss = SampledBytes{kGiB, 1'000'000'000, kGiB};
  host.cgroup_usage = SampledBytes{3 * kGiB, 1'000'000'000, 2 * kGiB};
  EXPECT_THAT(lines(host), ::testing::ElementsAre("peak RSS: 700.0 MiB at 2.000 s, 600.0 MiB at end"))
      << "one process is the job, and a group without a limit is the machine";
  host.rss->end.reset();
  host.rss->last_at_ns = 2'000'000'000;
  EXPECT_THAT(lines(host), ::testing::ElementsAre("peak RSS: 700.0 MiB at 2.000 s, n/a (last read at 2.000 s) at end"));
  host.rss->end = 600 * kMiB;
  host.most_job_processes = 3;
  host.cgroup_limit_bytes = 4 * kGiB;
  host.cgroup_oom_kills = 1;
  EXPECT_THAT(lines(host), ::testing::ElementsAre(
                               "peak RSS: 700.0 MiB at 2.000 s, 600.0 MiB at end", "job processes: at most 3",
                               "job peak PSS: 1.0 GiB at 1.000 s, 1.0 GiB at end",
                               "control group: peak 3.0 GiB at 1.000 s, 2.0 GiB at end, limit 4.0 GiB, 1 OOM kill"));
}

}  // namespace
}  // namespace tidemark
