#include "cli/monitor_outputs.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <functional>
#include <mutex>
#include <utility>

#include "base/standard_streams.h"
#include "base/units.h"
#include "http/curl_api.h"
#include "http/endpoint.h"
#include "publish/actions/risk_actions.h"
#include "publish/history/history_writer.h"
#include "publish/metrics/families.h"
#include "publish/metrics/otlp.h"
#include "publish/metrics/prometheus.h"
#include "query/results/machine_results.h"
#include "query/words/printable.h"

namespace tidemark::cli {
namespace {

using SteadyTime = std::chrono::steady_clock::time_point;

constexpr std::chrono::seconds kMetricsInterval{1};
constexpr std::size_t kMaxProblemColumns = 500;

// Called by threads of outputs; names in it are untrusted.
void say_problem(const std::string& text) {
  say(shown(text, kMaxProblemColumns));
}

Result<RiskAction> parse_action(const std::string& text) {
  const std::size_t equals = text.find('=');
  const auto level = value_in(kRiskLevelNames, std::string_view(text).substr(0, equals));
  if (equals == std::string::npos || !level || equals + 1 == text.size()) {
    return Error{fmt::format("--on-risk {}: expected LEVEL=CMD, with medium, high or critical as the level", text)};
  }
  return RiskAction{*level, text.substr(equals + 1), ""};
}

Result<std::vector<RiskAction>> parse_actions(const OutputOptions& options) {
  std::vector<RiskAction> actions;
  for (const std::string& text : options.on_risk) {
    auto action = parse_action(text);
    if (!action) return action.error();
    actions.push_back(std::move(*action));
  }
  for (const std::string& command : options.on_critical) actions.push_back({RiskLevel::critical, command, ""});
  for (const std::string& url : options.webhooks) {
    if (const auto status = check_url(url); !status) return Error{"--webhook: " + status.error().message};
    actions.push_back({RiskLevel::high, "", url});
  }
  return actions;
}

// A problem of the file itself is shown during monitoring, and is no reason to stop.
Result<void> check_history(const std::string& path) {
  struct stat facts {};
  if (::stat(path.c_str(), &facts) == 0) {
    if (S_ISREG(facts.st_mode)) return {};
    return Error{fmt::format("--history {}: not a file", path)};
  }
  const std::string folder = std::filesystem::path(path).parent_path().string();
  if (::access(folder.empty() ? "." : folder.c_str(), W_OK | X_OK) == 0) return {};
  return Error{fmt::format("--history {}: cannot be created: {}", path, std::strerror(errno))};
}

const WatchedDevice* device_of(const MachineState& state, const std::string& key) {
  for (const WatchedDevice& device : state.devices) {
    if (device.key == key && !device.is_host) return &device;
  }
  return nullptr;
}

void add_metrics(CommandLine& app, OutputOptions& options) {
  app.add_option("--listen", options.listen,
                 "Serve metrics for Prometheus there, at /metrics. Addresses other than this machine's own need "
                 "--listen-token-file")
      ->type_name("ADDRESS:PORT");
  app.add_option("--listen-token-file", options.token_file,
                 "Bearer token file for /metrics (Authorization: Bearer TOKEN)")
      ->type_name("FILE");
  app.add_option("--otlp", options.otlp, "Push metrics to this OpenTelemetry collector (OTLP over HTTP, as JSON)")
      ->type_name("URL");
  app.add_option("--otlp-interval", options.otlp_seconds, "Time between two pushes, in seconds or as 1min")->seconds();
}

}  // namespace

struct MonitorOutputs::Parts {
  std::mutex mutex;
  std::shared_ptr<const MetricSet> latest;  ///< guarded by the mutex
  SteadyTime next_metrics;
  SteadyTime next_push;
  std::chrono::nanoseconds push_interval{};
  std::unique_ptr<RiskActions> actions;
  std::unique_ptr<HistoryWriter> history;
  std::unique_ptr<OtlpPush> otlp;
  std::unique_ptr<Endpoint> endpoint;

  [[nodiscard]] MonitorFacts facts() const {
    MonitorFacts made{TIDEMARK_VERSION, {}};
    if (otlp) made.dropped.emplace_back("otlp", otlp->dropped());
    if (history) made.dropped.emplace_back("history", history->dropped());
    if (actions) made.dropped.emplace_back("action", actions->dropped());
    return made;
  }
  [[nodiscard]] bool has_metrics() const { return endpoint != nullptr || otlp != nullptr; }
  void update_metrics(const MachineState& state, const Recorded& recorded) {
    const SteadyTime now = std::chrono::steady_clock::now();
    if (!has_metrics() || now < next_metrics || !state.devices_known) return;
    hand_on(now, to_metrics(state, recorded(), facts()));
  }
  void update_metrics(const std::function<JobReport()>& report) {
    const SteadyTime now = std::chrono::steady_clock::now();
    if (has_metrics() && now >= next_metrics) hand_on(now, to_metrics(report()));
  }
  void hand_on(SteadyTime now, MetricSet set) {
    next_metrics = now + kMetricsInterval;
    auto made = std::make_shared<const MetricSet>(std::move(set));
    if (otlp && now >= next_push) {
      next_push = now + push_interval;
      otlp->push(made);
    }
    const std::lock_guard lock(mutex);
    latest = std::move(made);
  }
  std::string page() {
    std::shared_ptr<const MetricSet> shown_now;
    {
      const std::lock_guard lock(mutex);
      shown_now = latest;
    }
    return shown_now ? prometheus_text(*shown_now) : "";
  }
};

void add_metric_outputs(CommandLine& app, OutputOptions& options) {
  app.group("Metrics");
  add_metrics(app, options);
}

void add_outputs(CommandLine& app, OutputOptions& options) {
  app.group("Metrics, history and actions");
  add_metrics(app, options);
  app.add_option("--history", options.history,
                 "Keep what was seen in this file (SQLite); `tidemark history` reads it. Continues one that is there")
      ->type_name("FILE");
  app.add_option("--keep-history", options.keep_history,
                 "How long that goes back; what is older than an hour is kept in less detail")
      ->time_span();
  app.add_option("--on-critical", options.on_critical,
                 "Run this with sh when a risk becomes critical, with the assessment as JSON on its stdin. Repeatable")
      ->one_at_a_time()
      ->type_name("CMD");
  app.add_option("--on-risk", options.on_risk,
                 "The same from a level on: medium, high or critical (high='notify-send GPU'). Repeatable")
      ->one_at_a_time()
      ->type_name("LEVEL=CMD");
  app.add_option("--webhook", options.webhooks,
                 "POST the assessment to this URL when a risk becomes high or critical. Repeatable")
      ->one_at_a_time()
      ->type_name("URL");
  app.add_option("--action-interval", options.action_seconds,
                 "In this time the same action is not repeated for the same device and level; seconds, or 10min")
      ->seconds();
}

MonitorOutputs::MonitorOutputs(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}
MonitorOutputs::~MonitorOutputs() = default;

Result<std::unique_ptr<MonitorOutputs>> MonitorOutputs::start(const OutputOptions& options, Say say) {
  if (!say) say = say_problem;
  constexpr double kMinSeconds = 0.1;
  constexpr double kMaxSeconds = 86'400;
  auto parts = std::make_unique<Parts>();
  const auto in_range = [](double seconds) { return seconds >= kMinSeconds && seconds <= kMaxSeconds; };
  const auto nanoseconds = [](double seconds) {
    return std::chrono::nanoseconds(static_cast<std::int64_t>(seconds * 1e9));
  };
  if (!in_range(options.otlp_seconds)) return Error{"--otlp-interval: from 0.1 to 86400 seconds"};
  if (!in_range(options.action_seconds)) return Error{"--action-interval: from 0.1 to 86400 seconds"};

  auto actions = parse_actions(options);
  if (!actions) return actions.error();
  if (!options.otlp.empty() || !options.webhooks.empty()) {
    if (const auto loaded = curl::load(); !loaded) return loaded.error();
  }
  if (!actions->empty()) {
    parts->actions = std::make_unique<RiskActions>(RiskActionOptions{
        .actions = std::move(*actions), .interval = nanoseconds(options.action_seconds), .problem = say});
  }
  if (!options.history.empty()) {
    if (const auto status = check_history(options.history); !status) return status.error();
    const std::chrono::seconds kept(std::llround(parse_time(options.keep_history, kSecond).value_or(0)));
    parts->history = std::make_unique<HistoryWriter>(HistoryOptions{options.history, kept, say});
  }
  if (!options.otlp.empty()) {
    if (const auto status = check_url(options.otlp); !status) return Error{"--otlp: " + status.error().message};
    parts->push_interval = nanoseconds(options.otlp_seconds);
    parts->otlp = std::make_unique<OtlpPush>(options.otlp, otlp_resource(TIDEMARK_VERSION), say);
  }
  if (options.listen.empty()) {
    if (!options.token_file.empty()) return Error{"--listen-token-file: needs --listen ADDRESS:PORT"};
    return std::unique_ptr<MonitorOutputs>(new MonitorOutputs(std::move(parts)));
  }
  auto endpoint = parse_endpoint(options.listen);
  if (!endpoint) return Error{"--listen: " + endpoint.error().message};
  if (!options.token_file.empty()) {
    auto token = read_token_file(options.token_file);
    if (!token) return Error{"--listen-token-file: " + token.error().message};
    endpoint->token = std::move(*token);
  }
  auto started =
      Endpoint::start(*endpoint, std::string(kPrometheusContentType), [held = parts.get()] { return held->page(); });
  if (!started) return Error{"--listen: " + started.error().message};
  parts->endpoint = std::move(*started);
  return std::unique_ptr<MonitorOutputs>(new MonitorOutputs(std::move(parts)));
}

void MonitorOutputs::finish(const MachineState& state, const std::vector<MonitorEvent>& events,
                            const Recorded& recorded) {
  parts_->next_metrics = parts_->next_push = {};
  update(state, events, recorded);
}

void MonitorOutputs::update(const MachineState& state, const std::vector<MonitorEvent>& events,
                            const Recorded& recorded) {
  std::vector<RiskChange> changes;
  for (const MonitorEvent& event : events) {
    if (event.risk) changes.push_back(*event.risk);
  }
  update(state, changes, recorded);
}

void MonitorOutputs::update(const MachineState& state, const std::vector<RiskChange>& changes,
                            const Recorded& recorded) {
  for (const RiskChange& change : changes) {
    if (parts_->actions) parts_->actions->act_on(change, [&] { return to_json(change); });
    if (parts_->history) parts_->history->add(change, device_of(state, change.device), to_json(change));
  }
  if (parts_->history) parts_->history->add(state);
  parts_->update_metrics(state, recorded);
}

void MonitorOutputs::update(const std::function<JobReport()>& report) {
  parts_->update_metrics(report);
}

bool MonitorOutputs::wants_recordings() const {
  return parts_->has_metrics();
}

std::string MonitorOutputs::url() const {
  return parts_->endpoint ? parts_->endpoint->url() : "";
}

}  // namespace tidemark::cli
