#include <gtest/gtest.h>

#include "analyze/timeline/host_timeline.h"

namespace tidemark {
namespace {

HostSample sample(std::uint64_t time_ns, std::optional<std::uint64_t> rss, std::optional<std::uint64_t> pss,
                  std::optional<std::uint64_t> kills = {}) {
  HostSample sample;
  sample.time_ns = time_ns;
  sample.rss_bytes = rss;
  sample.pss_bytes = pss;
  sample.cgroup_oom_kills = kills;
  return sample;
}

TEST(HostUsage, KeepsTheFirstHighestAndTheLastSample) {
  HostUsageCollector collector;
  Samples samples;
  for (const HostSample& host :
       {sample(1, 100, 90, 4), sample(2, 300, {}), sample(3, 300, 80, 6), sample(4, 200, {})}) {
    collector.add(SampleRecord(host));
    samples.add(host);
  }
  collector.add(SampleRecord(SlowDriverCall{5, 1}));
  for (const HostUsage& host : {collector.result(), host_usage(samples.host)}) {
    ASSERT_TRUE(host.rss && host.pss);
    EXPECT_EQ(host.rss->peak, 300U);
    EXPECT_EQ(host.rss->peak_at_ns, 2U);
    EXPECT_EQ(host.rss->end, 200U);
    EXPECT_EQ(host.pss->peak, 90U);
    EXPECT_EQ(host.pss->end, 80U);
    EXPECT_EQ(host.cgroup_oom_kills, 2U) << "those before the recording do not count";
    EXPECT_FALSE(host.job_rss || host.cgroup_usage || host.cgroup_limit_bytes);
    EXPECT_FALSE(host.empty());
  }
  EXPECT_TRUE(HostUsageCollector().result().empty());
}

TEST(HostUsage, StaleReadingsDoNotDescribeTheEnd) {
  constexpr std::uint64_t kSecond = 1'000'000'000;
  HostUsageCollector collector;
  collector.add(sample(kSecond, 100, 90));
  collector.add(sample(11 * kSecond, 200, {}));
  EXPECT_EQ(collector.result().pss->end, 90U);
  collector.add(sample(12 * kSecond, 300, {}));
  const HostUsage host = collector.result();
  EXPECT_EQ(host.pss->end, std::nullopt);
  EXPECT_EQ(host.pss->last_at_ns, kSecond);
  EXPECT_EQ(host.pss->peak, 90U);
  EXPECT_EQ(host.rss->end, 300U);
}

}  // namespace
}  // namespace tidemark
