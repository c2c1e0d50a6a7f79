// Metrics of a machine's state, and Prometheus's page.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <regex>
#include <set>
#include <string>

#include "publish/metrics/families.h"
#include "publish/metrics/prometheus.h"

namespace tidemark {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr MetricFamily kBytes{"a.b", "By", Instrument::up_down_counter, "Size."};

std::string page_of(const MetricFamily& family, MetricAttributes attributes, MetricValue value) {
  return prometheus_text({1, 2, {{&family, {{std::move(attributes), value}}}}});
}

// As in the table of OpenTelemetry's specification (compatibility/prometheus_and_openmetrics.md).
TEST(Prometheus, NamesHaveTheUnit) {
  EXPECT_EQ(prometheus_name({"hw.gpu.memory.usage", "By", Instrument::up_down_counter, ""}),
            "hw_gpu_memory_usage_bytes");
  EXPECT_EQ(prometheus_name({"hw.gpu.utilization", "1", Instrument::gauge, ""}), "hw_gpu_utilization_ratio");
  EXPECT_EQ(prometheus_name({"hw.status", "1", Instrument::up_down_counter, ""}), "hw_status");
  EXPECT_EQ(prometheus_name({"hw.temperature", "Cel", Instrument::gauge, ""}), "hw_temperature_celsius");
  EXPECT_EQ(prometheus_name({"hw.power", "W", Instrument::gauge, ""}), "hw_power_watts");
  EXPECT_EQ(prometheus_name({"x.kills", "{kill}", Instrument::counter, ""}), "x_kills_total");
  EXPECT_EQ(prometheus_name({"x.growth", "By/s", Instrument::gauge, ""}), "x_growth_bytes_per_second");
}

TEST(Prometheus, PageHasHelpTypeAndValues) {
  EXPECT_EQ(page_of(kBytes, {{"hw.id", "GPU-1"}, {"hw.name", "GPU 0"}}, std::int64_t{5}),
            "# HELP a_b_bytes Size.\n# TYPE a_b_bytes gauge\na_b_bytes{hw_id=\"GPU-1\",hw_name=\"GPU 0\"} 5\n");
  EXPECT_EQ(page_of({"c", "{x}", Instrument::counter, "C."}, {}, std::int64_t{7}),
            "# HELP c_total C.\n# TYPE c_total counter\nc_total 7\n");
}

TEST(Prometheus, TextIsEscaped) {
  const std::string page = page_of({"a", "{x}", Instrument::gauge, "one\\two\nthree \"four\""},
                                   {{"name", "back\\slash \"quote\"\nline"}}, std::int64_t{1});
  EXPECT_THAT(page, HasSubstr("# HELP a one\\\\two\\nthree \"four\"\n"));
  EXPECT_THAT(page, HasSubstr("a{name=\"back\\\\slash \\\"quote\\\"\\nline\"} 1\n"));
}

TEST(Prometheus, InvalidUtf8IsReplaced) {
  EXPECT_EQ(valid_utf8("a\xff\x80z"), "a\xef\xbf\xbd\xef\xbf\xbdz");
  EXPECT_EQ(valid_utf8("\xc3\xa9\xe2\x82"), "\xc3\xa9\xef\xbf\xbd\xef\xbf\xbd");  // é, and the beginning of a €
  EXPECT_THAT(page_of(kBytes, {{"name", "\xf0"}}, std::int64_t{1}), HasSubstr("name=\"\xef\xbf\xbd\""));
}

TEST(Prometheus, NamesDoNotControlATerminal) {
  const std::string page =
      page_of(kBytes, {{"name", "\x1b]0;title\x07\x7f \xc2\x9b \xc2\xa0 \xc3\xa9\tend\xc2"}}, std::int64_t{1});
  EXPECT_THAT(page, HasSubstr("name=\"?]0;title?? ? \xc2\xa0 \xc3\xa9?end\xef\xbf\xbd\""));
}

TEST(Prometheus, NonFiniteNumbers) {
  const MetricFamily gauge{"g", "s", Instrument::gauge, ""};
  EXPECT_THAT(page_of(gauge, {}, 0.25), HasSubstr("\ng_seconds 0.25\n"));
  EXPECT_THAT(page_of(gauge, {}, 1e300 * 1e300), HasSubstr("\ng_seconds +Inf\n"));
  EXPECT_THAT(page_of(gauge, {}, -(1e300 * 1e300)), HasSubstr("\ng_seconds -Inf\n"));
  EXPECT_THAT(page_of(kBytes, {}, std::int64_t{9007199254740993}), HasSubstr(" 9007199254740993\n"));
}

WatchedDevice gpu(const std::string& key) {
  WatchedDevice device;
  device.key = key;
  device.info.vendor = "nvidia";
  device.info.name = "NVIDIA H100 80GB HBM3";
  device.info.uuid = "GPU-" + key;
  device.info.total_bytes = 80;
  device.latest.used_bytes = 20;
  device.latest.driver_reserved_bytes = 4;
  device.latest.utilization_percent = 37;
  device.latest.temperature_celsius = 41;
  device.latest.power_milliwatts = 71'500;
  device.sampled_at_ns = 1;
  device.used.add(1, 20, 25);
  return device;
}

TEST(Metrics, TimesUseTheCurrentClock) {
  MachineState state;
  state.began_wall_ns = 1000;
  state.now_ns = 5;
  state.now_wall_ns = 8005;  // it was set forward by 7000
  EXPECT_EQ(to_metrics(state, {}, {}).unix_ns, 8005U);
  EXPECT_EQ(to_metrics(state, {}, {}).start_unix_ns, 1000U);
  state.now_wall_ns = 500;
  EXPECT_EQ(to_metrics(state, {}, {}).unix_ns, 500U);
  EXPECT_EQ(to_metrics(state, {}, {}).start_unix_ns, 500U) << "counters do not begin after now";
}

TEST(Metrics, OfAGpu) {
  MachineState state;
  state.devices.push_back(gpu("0"));
  const std::string page = prometheus_text(to_metrics(state, {}, {"1.2", {}}));
  const std::string labels = R"({hw_id="GPU-0",hw_name="GPU 0",hw_model="NVIDIA H100 80GB HBM3",hw_vendor="NVIDIA")";
  EXPECT_THAT(page, HasSubstr("hw_gpu_memory_limit_bytes" + labels + "} 80\n"));
  EXPECT_THAT(page, HasSubstr("hw_gpu_memory_usage_bytes" + labels + "} 20\n"));
  EXPECT_THAT(page, HasSubstr("hw_gpu_memory_utilization_ratio" + labels + "} 0.25\n"));
  EXPECT_THAT(page, HasSubstr("tidemark_gpu_memory_peak_bytes" + labels + "} 25\n"));
  EXPECT_THAT(page, HasSubstr("hw_gpu_utilization_ratio" + labels + ",hw_gpu_task=\"general\"} 0.37\n"));
  EXPECT_THAT(page, HasSubstr("hw_temperature_celsius" + labels + ",hw_type=\"gpu\"} 41\n"));
  EXPECT_THAT(page, HasSubstr("hw_power_watts" + labels + ",hw_type=\"gpu\"} 71.5\n"));
  EXPECT_THAT(page, HasSubstr(",hw_state=\"ok\"} 1\n"));
  EXPECT_THAT(page, HasSubstr("tidemark_build_info{version=\"1.2\"} 1\n"));
  // Unknown values are missing.
  EXPECT_THAT(page, Not(HasSubstr("risk_level")));
  EXPECT_THAT(page, Not(HasSubstr("cgroup")));
}

TEST(Metrics, LostGpuKeepsStateAndPeak) {
  MachineState state;
  state.devices.push_back(gpu("0"));
  state.devices.front().lost = "GPU 0: fell off the bus";
  const std::string page = prometheus_text(to_metrics(state, {}, {}));
  EXPECT_THAT(page, HasSubstr(",hw_state=\"failed\"} 1\n"));
  EXPECT_THAT(page, HasSubstr("tidemark_gpu_memory_peak_bytes"));
  EXPECT_THAT(page, Not(HasSubstr("hw_gpu_memory_usage_bytes")));
  EXPECT_THAT(page, Not(HasSubstr("tidemark_memory_limit_bytes")));
}

TEST(Metrics, OfProcessesEachOnce) {
  MachineState state;
  state.devices.push_back(gpu("0"));
  WatchedProcess process;
  process.pid = 42;
  process.name = "python train.py";
  process.rss_bytes = 7;
  process.devices.push_back({.device = 0, .held = true, .bytes = 12, .used = WatchedUsage{}});
  state.processes = {process, process};  // a driver may list a PID twice
  WatchedProcess ended = process;
  ended.pid = 43;
  ended.ended = true;
  state.processes.push_back(ended);
  const MetricSet set = to_metrics(state, {}, {});
  const std::string page = prometheus_text(set);
  EXPECT_THAT(page, HasSubstr("tidemark_process_gpu_memory_usage_bytes{process_pid=\"42\",process_command=\"python "
                              "train.py\",tidemark_process_kind=\"other\",hw_id=\"GPU-0\",hw_name=\"GPU 0\"} 12\n"));
  EXPECT_EQ(page.find("pid=\"42\"", page.find("process_memory_usage_bytes{") + 40), std::string::npos);
  EXPECT_THAT(page, Not(HasSubstr("pid=\"43\"")));
}

TEST(Metrics, OfRecordedProcesses) {
  MachineState state;
  state.devices.push_back(gpu("0"));
  RecordedProcess process;
  process.recording.pid = 42;
  process.recording.command = "python train.py";
  RecordedDevice& device = process.devices.emplace_back();
  device.device = {DeviceType::cuda, 1};
  device.key = "0";
  device.allocated_bytes = 7;
  device.reserved_bytes = 9;
  EXPECT_THAT(prometheus_text(to_metrics(state, {&process, 1}, {})), Not(HasSubstr("cuda_pinned_bytes{")));
  process.cuda_pinned_bytes = 5;
  const std::string page = prometheus_text(to_metrics(state, {&process, 1}, {}));
  const std::string labels =
      R"({process_pid="42",process_command="python train.py",tidemark_device="cuda:1",hw_id="GPU-0",hw_name="GPU 0"})";
  EXPECT_THAT(page, HasSubstr("tidemark_framework_memory_allocated_bytes" + labels + " 7\n"));
  EXPECT_THAT(page, HasSubstr("tidemark_framework_memory_reserved_bytes" + labels + " 9\n"));
  EXPECT_THAT(page, HasSubstr("tidemark_process_memory_cuda_pinned_bytes{process_pid=\"42\",process_command=\"python "
                              "train.py\"} 5\n"));
}

TEST(Metrics, ExcludeUnreadableRecordings) {
  RecordedProcess process;
  process.recording.pid = 42;
  process.devices.emplace_back().allocated_bytes = 7;
  process.owners.emplace_back().categories[static_cast<std::size_t>(Category::gradient)] = 5;
  EXPECT_THAT(prometheus_text(to_metrics({}, {&process, 1}, {})), HasSubstr("pid=\"42\""));
  process.problem = "run.tide: cannot be read";
  EXPECT_THAT(prometheus_text(to_metrics({}, {&process, 1}, {})), Not(HasSubstr("pid=\"42\"")));
}

TEST(Metrics, TellHowLateEventsAreRead) {
  RecordedProcess process;
  process.recording.pid = 42;
  process.devices.emplace_back().allocated_bytes = 7;
  const auto page = [&process] { return prometheus_text(to_metrics({}, {&process, 1}, {})); };
  EXPECT_THAT(page(), Not(HasSubstr("tidemark_recording_lag_seconds")));
  process.lag.behind_bytes = 1000;
  process.lag.behind_seconds = 12.5;
  process.lag.has_newest_totals = true;
  EXPECT_THAT(page(), HasSubstr("tidemark_recording_lag_seconds{process_pid=\"42\",process_command=\"\"} 12.5"));
  EXPECT_THAT(page(), HasSubstr("tidemark_framework_memory_allocated_bytes{"));
  process.lag.has_newest_totals = false;  // the allocated bytes are of that time
  EXPECT_THAT(page(), HasSubstr("tidemark_recording_lag_seconds{process_pid=\"42\",process_command=\"\"} 12.5"));
  EXPECT_THAT(page(), Not(HasSubstr("tidemark_framework_memory_allocated_bytes{")));
  process.lag = {};
  process.lag.skipped_until_ns = 5;
  EXPECT_THAT(page(), HasSubstr("tidemark_recording_lag_seconds{process_pid=\"42\",process_command=\"\"} 0"));
}

TEST(Metrics, OfRecordedProcessesByOwner) {
  MachineState state;
  state.devices.push_back(gpu("0"));
  RecordedProcess process;
  process.recording.pid = 42;
  process.recording.command = "python train.py";
  process.devices.emplace_back().device = {DeviceType::cuda, 1};
  process.devices.front().key = "0";
  process.owners.resize(2);
  process.owners[0].device = {DeviceType::cuda, 1};
  process.owners[0].categories[static_cast<std::size_t>(Category::optimizer_state)] = 5;
  process.owners[0].categories[static_cast<std::size_t>(Category::gradient)] = 0;
  process.owners[0].components[static_cast<std::size_t>(Component::mlp)] = 6;
  process.owners[1].device = {DeviceType::cpu, 0};
  process.owners[1].categories[static_cast<std::size_t>(Category::unknown)] = 8;
  const std::string page = prometheus_text(to_metrics(state, {&process, 1}, {}));
  const std::string begin = "_bytes{process_pid=\"42\",process_command=\"python train.py\",tidemark_device=";
  const std::string of_gpu = begin + R"("cuda:1",hw_id="GPU-0",hw_name="GPU 0",)";
  EXPECT_THAT(page,
              HasSubstr("tidemark_framework_memory_category" + of_gpu + "tidemark_category=\"optimizer_state\"} 5\n"));
  EXPECT_THAT(page, HasSubstr(of_gpu + "tidemark_category=\"gradient\"} 0\n"));
  EXPECT_THAT(page, HasSubstr("tidemark_framework_memory_component" + of_gpu + "tidemark_component=\"mlp\"} 6\n"));
  EXPECT_THAT(page, HasSubstr(begin + R"("cpu",hw_id="",hw_name="host",tidemark_category="unknown"} 8)"));
  EXPECT_THAT(page, Not(HasSubstr("tidemark_category=\"activation")));  // never any memory
}

TEST(Metrics, OfRisks) {
  MachineState state;
  state.devices.push_back(gpu("0"));
  RiskAssessment& risk = state.devices.front().risk;
  risk.level = RiskLevel::high;
  risk.pattern = UsagePattern::growth;
  risk.growth_bytes_per_second = 2.5;
  risk.seconds_to_limit = Interval{60, 45, std::nullopt};
  state.devices.front().assessed_at_ns = 1;
  const std::string page = prometheus_text(to_metrics(state, {}, {}));
  const std::string labels = R"({tidemark_memory="0",hw_id="GPU-0",hw_name="GPU 0")";
  EXPECT_THAT(page, HasSubstr("tidemark_memory_risk_level" + labels + "} 2\n"));
  EXPECT_THAT(page, HasSubstr("tidemark_memory_growth_bytes_per_second" + labels + "} 2.5\n"));
  EXPECT_THAT(page, HasSubstr("tidemark_memory_time_to_limit_seconds" + labels + ",tidemark_bound=\"expected\"} 60\n"));
  EXPECT_THAT(page, HasSubstr(",tidemark_bound=\"earliest\"} 45\n"));
  EXPECT_THAT(page, Not(HasSubstr("tidemark_bound=\"latest\"")));
  EXPECT_THAT(page, Not(HasSubstr("risk_confidence")));
  EXPECT_THAT(page, HasSubstr("tidemark_memory_limit_bytes" + labels + "} 76\n"));
}

// Two ranks on a GPU each, one of them on a node that is not heard, and one process without a rank.
TEST(Metrics, OfJobs) {
  JobReport job;
  job.name = "llama";
  job.world_size = 2;
  job.earlier_events = 3;
  job.events.resize(2);
  for (const char* name : {"a", "b"}) {
    JobNode& node = job.nodes.emplace_back();
    node.name = name;
    node.devices.emplace_back().key = "1";
  }
  job.nodes[1].condition = NodeCondition::old;
  job.nodes[1].age_seconds = 12.5;
  job.ranks.resize(3);
  job.ranks[0].rank = 0;
  job.ranks[0].device = 0;
  job.ranks[0].used_bytes = 700;
  job.ranks[0].steps = 41;
  job.ranks[0].risk.emplace().level = RiskLevel::critical;
  job.ranks[0].risk->seconds_to_limit = Interval{60, 45, std::nullopt};
  job.ranks[1].rank = 1;
  job.ranks[1].node = 1;
  job.ranks[1].current = false;
  job.ranks[1].used_bytes = 800;
  job.ranks[2].pid = 77;
  job.ranks[2].used_bytes = 5;
  job.risk.emplace().risk.level = RiskLevel::critical;
  const std::string page = prometheus_text(to_metrics(job));
  EXPECT_THAT(page, HasSubstr("tidemark_job_nodes{tidemark_job=\"llama\",tidemark_node_state=\"old\"} 1\n"));
  EXPECT_THAT(page, HasSubstr("tidemark_job_ranks{tidemark_job=\"llama\"} 2\n"));
  EXPECT_THAT(page, HasSubstr("tidemark_job_world_size{tidemark_job=\"llama\"} 2\n"));
  EXPECT_THAT(page, HasSubstr("tidemark_job_events_total{tidemark_job=\"llama\"} 5\n"));
  EXPECT_THAT(page, HasSubstr("tidemark_job_memory_risk_level{tidemark_job=\"llama\"} 3\n"));
  EXPECT_THAT(page, HasSubstr("tidemark_node_state_age_seconds{tidemark_job=\"llama\",host_name=\"b\"} 12.5\n"));
  const std::string rank = R"({tidemark_job="llama",tidemark_rank="0",host_name="a",hw_name="GPU 1"})";
  EXPECT_THAT(page, HasSubstr("tidemark_rank_memory_usage_bytes" + rank + " 700\n"));
  EXPECT_THAT(page, HasSubstr("tidemark_rank_memory_risk_level" + rank + " 3\n"));
  EXPECT_THAT(page, HasSubstr("tidemark_rank_memory_time_to_limit_seconds" + rank + " 60\n"));
  EXPECT_THAT(page, HasSubstr("tidemark_rank_steps_total" + rank + " 41\n"));
  EXPECT_THAT(page, HasSubstr("process_pid=\"77\"} 5\n"));
  EXPECT_THAT(page, Not(HasSubstr("tidemark_rank=\"1\"")));
}

TEST(Metrics, AlertsUseMetricsThatExist) {
  std::ifstream file(ALERTS_FILE);
  std::string rules;
  for (std::string line; std::getline(file, line);) {
    if (line.find(" expr: ") != line.npos) rules += line + "\n";
  }
  std::set<std::string> names;
  for (const auto& families : {metric_families(), job_families()}) {
    for (const MetricFamily& family : families) names.insert(prometheus_name(family));
  }
  const std::regex metric("(?:tidemark|hw)_[a-z_]+(?=[ {),])");
  const std::set<std::string> labels = {"tidemark_job"};
  std::size_t found = 0;
  for (std::sregex_iterator name(rules.begin(), rules.end(), metric), end; name != end; ++name) {
    if (labels.contains(name->str())) continue;
    EXPECT_TRUE(names.contains(name->str())) << name->str();
    ++found;
  }
  EXPECT_GE(found, 7U);
}

TEST(Metrics, AreAllDocumented) {
  std::ifstream file(METRICS_PAGE);
  const std::string page((std::istreambuf_iterator<char>(file)), {});
  for (const auto& families : {metric_families(), job_families()}) {
    for (const MetricFamily& family : families) {
      EXPECT_THAT(page, HasSubstr("`" + prometheus_name(family) + "`"));
      EXPECT_THAT(page, HasSubstr("`" + std::string(family.name) + "`"));
    }
  }
}

}  // namespace
}  // namespace tidemark
