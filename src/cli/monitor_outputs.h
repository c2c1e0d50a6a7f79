// Outputs of all commands that monitor a machine: serve, push, keep and act on observations.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "cli/command_line.h"
#include "cluster/job_report.h"
#include "monitor/engine.h"

namespace tidemark::cli {

struct OutputOptions {
  std::string listen;
  std::string token_file;
  std::string otlp;
  double otlp_seconds = 10;
  std::vector<std::string> on_risk;  ///< LEVEL=CMD
  std::vector<std::string> on_critical;
  std::vector<std::string> webhooks;
  double action_seconds = 60;
  std::string history;
  std::string keep_history = "30d";
};
void add_outputs(CommandLine& app, OutputOptions& options);
/// Only those of metrics: --listen, --listen-token-file, --otlp and --otlp-interval.
void add_metric_outputs(CommandLine& app, OutputOptions& options);

class MonitorOutputs {
 public:
  using Say = std::function<void(const std::string&)>;
  using Recorded = std::function<std::vector<RecordedProcess>()>;

  /// Fails for impossible options before monitoring starts. `say` receives a sentence when a later error occurs, on
  /// another thread; empty: printed to stderr.
  static Result<std::unique_ptr<MonitorOutputs>> start(const OutputOptions& options, Say say = {});
  ~MonitorOutputs();
  MonitorOutputs(const MonitorOutputs&) = delete;
  MonitorOutputs& operator=(const MonitorOutputs&) = delete;

  /// Call after each turn of the engine, with its changes, on one thread. Never waits. `recorded` is called when
  /// metrics are computed.
  void update(const MachineState& state, const std::vector<RiskChange>& changes, const Recorded& recorded);
  void update(const MachineState& state, const std::vector<MonitorEvent>& events, const Recorded& recorded);
  /// Metrics of a job, when they are due; `report` is called then.
  void update(const std::function<JobReport()>& report);
  /// The same after the last assessment: metrics are made and pushed though they are not due.
  void finish(const MachineState& state, const std::vector<MonitorEvent>& events, const Recorded& recorded);
  /// Whether something is made of recorded processes, with RecordedProcess::owners.
  [[nodiscard]] bool wants_recordings() const;
  /// Address of the metrics; empty: not served.
  [[nodiscard]] std::string url() const;

 private:
  struct Parts;
  explicit MonitorOutputs(std::unique_ptr<Parts> parts);

  std::unique_ptr<Parts> parts_;
};

}  // namespace tidemark::cli
