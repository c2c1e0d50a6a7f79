// Options of what is recorded and where to: those that `run` and `recorder` share; and what `run` keeps where it keeps
// the last part only, and when it writes that: --keep and --dump.
#pragma once

#include <optional>
#include <string>

#include "base/result.h"
#include "cli/command_line.h"
#include "collect/recorder/recorder.h"
#include "collect/recorder/session/dump.h"

namespace tidemark::cli {

struct RecordingOptions {
  RecorderOptions recorder;
  double sample_interval_ms = 100;
  bool no_samples = false;
  std::string attribute = "on";

  /// Must live as long as the command line.
  void add_to(CommandLine& app);
  /// After parsing.
  [[nodiscard]] RecorderOptions recorder_options() const;
};

/// Refuses a name that would cost somebody a file; `remedy` says what to do then. Names that are taken later get a
/// number instead.
[[nodiscard]] Result<void> check_free(const RecorderOptions& options, const std::string& remedy);

/// Why a recording could not be written to `path`, or an empty string.
[[nodiscard]] std::string unwritable_reason(const std::string& path);

/// "10min", "2GiB" or "10min,2GiB".
[[nodiscard]] Result<WindowLimits> parse_keep(const std::string& text);
/// "on-oom,on-signal".
[[nodiscard]] Result<DumpTriggers> parse_triggers(const std::string& text);

class KeepArguments {
 public:
  /// Must live as long as the command line.
  void add_to(CommandLine& app);
  /// After parsing; none without --keep. Fails for what cannot go together.
  [[nodiscard]] Result<std::optional<KeepOptions>> options(const CommandLine& app) const;

 private:
  std::string keep_;
  std::string dump_;
};

}  // namespace tidemark::cli
