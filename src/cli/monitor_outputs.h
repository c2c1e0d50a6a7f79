// What every command that watches a machine can do with what it sees: serve it, push it, keep it, act on it.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "cli/command_line.h"
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

class MonitorOutputs {
 public:
  using Say = std::function<void(const std::string&)>;
  using Recorded = std::function<std::vector<RecordedProcess>()>;

  /// An error for what cannot be done as it was asked for, before anything is watched. `say` gets a sentence when
  /// something goes wrong later, on another thread; empty: stderr does.
  static Result<std::unique_ptr<MonitorOutputs>> start(const OutputOptions& options, Say say = {});
  ~MonitorOutputs();
  MonitorOutputs(const MonitorOutputs&) = delete;
  MonitorOutputs& operator=(const MonitorOutputs&) = delete;

  /// After each turn of the engine, with what changed in it, by one thread. Never waits. `recorded` is asked when
  /// metrics are made.
  void update(const MachineState& state, const std::vector<RiskChange>& changes, const Recorded& recorded);
  void update(const MachineState& state, const std::vector<MonitorEvent>& events, const Recorded& recorded);
  /// The same after the last assessment: metrics are made and pushed though they are not due.
  void finish(const MachineState& state, const std::vector<MonitorEvent>& events, const Recorded& recorded);
  /// Whether something is made of recorded processes, with RecordedProcess::owners.
  [[nodiscard]] bool wants_recordings() const;
  /// Where metrics are served; empty: nowhere.
  [[nodiscard]] std::string url() const;

 private:
  struct Parts;
  explicit MonitorOutputs(std::unique_ptr<Parts> parts);

  std::unique_ptr<Parts> parts_;
};

}  // namespace tidemark::cli
