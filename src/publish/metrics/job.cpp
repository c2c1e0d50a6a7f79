// Metrics of a job on several machines: at most eight series a rank, without labels of modules or call sites.
#include <algorithm>
#include <array>
#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>

#include "publish/metrics/families.h"

namespace tidemark {
namespace {

constexpr Instrument kJobGauge = Instrument::gauge;
constexpr Instrument kJobSum = Instrument::up_down_counter;

enum JobFamily : std::size_t {
  kJobNodes,
  kJobRanks,
  kJobWorldSize,
  kJobRiskLevel,
  kJobTimeToLimit,
  kJobEvents,
  kNodeAge,
  kRankUsage,
  kRankAllocated,
  kRankReserved,
  kRankLimit,
  kRankRiskLevel,
  kRankTimeToLimit,
  kRankSteps,
  kRankStepDuration,
};
constexpr std::array<MetricFamily, kRankStepDuration + 1> kJobFamilies = {{
    {"tidemark.job.nodes", "{node}", kJobSum,
     "Nodes of the job, by state: current, old (not heard for a while) or left (its agent was stopped)."},
    {"tidemark.job.ranks", "{rank}", kJobSum, "Ranks of the job that current nodes report."},
    {"tidemark.job.world_size", "{rank}", kJobSum, "Ranks that the job has, by its ranks' environment."},
    {"tidemark.job.memory.risk_level", "{level}", kJobGauge,
     "Whether a memory of the job runs out: 0 low, 1 medium, 2 high, 3 critical; of the memory that decides it."},
    {"tidemark.job.memory.time_to_limit", "s", kJobGauge,
     "Time until that memory reaches its limit; none where it will not."},
    {"tidemark.job.events", "{event}", Instrument::counter,
     "Events of the job: out-of-memory errors, risks, leaks, dumps, ranks that start and end."},
    {"tidemark.node.state.age", "s", kJobGauge, "Age of the state that a node sent last."},
    {"tidemark.rank.memory.usage", "By", kJobSum,
     "Memory of its device that a rank holds, as the driver says; without a GPU, its resident memory."},
    {"tidemark.rank.memory.allocated", "By", kJobSum, "Memory of its device that a recorded rank holds in tensors."},
    {"tidemark.rank.memory.reserved", "By", kJobSum,
     "Memory of its device that the allocator of a recorded rank has taken from the driver."},
    {"tidemark.rank.memory.limit", "By", kJobSum, "What a rank has of its device and what is free there."},
    {"tidemark.rank.memory.risk_level", "{level}", kJobGauge,
     "Whether a rank's memory runs out: 0 low, 1 medium, 2 high, 3 critical."},
    {"tidemark.rank.memory.time_to_limit", "s", kJobGauge,
     "Time until a rank's memory reaches its limit; none where it will not."},
    {"tidemark.rank.steps", "{step}", Instrument::counter, "Training steps of a recorded rank."},
    {"tidemark.rank.step.duration", "s", kJobGauge, "Duration of a training step of a recorded rank, on average."},
}};

class JobBuilder {
 public:
  explicit JobBuilder(const JobReport& report) : report_(report) {
    for (const MetricFamily& family : kJobFamilies) set_.metrics.push_back({&family, {}});
    set_.unix_ns = report.now_wall_ns;
    set_.start_unix_ns = std::min(report.began_wall_ns, report.now_wall_ns);
  }

  MetricSet take() {
    add_job();
    for (const JobNode& node : report_.nodes) {
      add(kNodeAge, with(of_job(), "host.name", node.name), node.age_seconds);
    }
    for (const JobRank& rank : report_.ranks) {
      if (rank.current) add_rank(rank);
    }
    drop_empty(set_);
    return std::move(set_);
  }

 private:
  [[nodiscard]] MetricAttributes of_job() const { return {{"tidemark.job", report_.name}}; }

  void add(JobFamily family, MetricAttributes attributes, MetricValue value) {
    set_.metrics[family].points.push_back({std::move(attributes), value});
  }
  template <typename Value>
  void add_known(JobFamily family, const MetricAttributes& attributes, const std::optional<Value>& value) {
    if (!value) return;
    if constexpr (std::is_integral_v<Value>) {
      add(family, attributes, metric_integer(*value));
    } else {
      add(family, attributes, *value);
    }
  }
  void add_risk(JobFamily level, JobFamily time, const MetricAttributes& attributes, const RiskAssessment& risk) {
    add(level, attributes, std::int64_t{static_cast<int>(risk.level)});
    if (risk.seconds_to_limit) add(time, attributes, risk.seconds_to_limit->expected);
  }

  void add_job() {
    std::map<NodeCondition, std::int64_t> nodes;
    for (const auto& [condition, name] : kNodeConditionNames) nodes[condition] = 0;
    for (const JobNode& node : report_.nodes) ++nodes[node.condition];
    for (const auto& [condition, count] : nodes) {
      const std::string name(name_in(kNodeConditionNames, condition));
      add(kJobNodes, with(of_job(), "tidemark.node.state", name), count);
    }
    const auto current = std::ranges::count_if(report_.ranks, &JobRank::current);
    add(kJobRanks, of_job(), std::int64_t{current});
    add_known(kJobWorldSize, of_job(), report_.world_size);
    if (report_.risk) add_risk(kJobRiskLevel, kJobTimeToLimit, of_job(), report_.risk->risk);
    add(kJobEvents, of_job(), metric_integer(report_.earlier_events + report_.events.size()));
  }

  void add_rank(const JobRank& rank) {
    const JobNode& node = report_.nodes[rank.node];
    MetricAttributes of_rank = with(of_job(), "tidemark.rank", rank.rank ? std::to_string(*rank.rank) : "");
    of_rank.emplace_back("host.name", node.name);
    const bool has_device = rank.device && *rank.device < node.devices.size();
    const bool is_host = !has_device || node.devices[*rank.device].is_host;
    of_rank.emplace_back("hw.name", is_host ? "host" : "GPU " + node.devices[*rank.device].key);
    // A restarted rank is another process; ranks without a number are told apart by it.
    if (!rank.rank) of_rank.emplace_back("process.pid", std::to_string(rank.pid));
    add_known(kRankUsage, of_rank, rank.used_bytes);
    add_known(kRankAllocated, of_rank, rank.allocated_bytes);
    add_known(kRankReserved, of_rank, rank.reserved_bytes);
    add_known(kRankLimit, of_rank, rank.limit_bytes);
    if (rank.risk) add_risk(kRankRiskLevel, kRankTimeToLimit, of_rank, *rank.risk);
    add_known(kRankSteps, of_rank, rank.steps);
    add_known(kRankStepDuration, of_rank, rank.step_seconds);
  }

  const JobReport& report_;
  MetricSet set_;
};

}  // namespace

std::span<const MetricFamily> job_families() {
  return kJobFamilies;
}

MetricSet to_metrics(const JobReport& report) {
  MetricSet set = JobBuilder(report).take();
  for (Metric& metric : set.metrics) drop_doubles(metric);
  return set;
}

}  // namespace tidemark
