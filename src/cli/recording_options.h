// Options for the content and place of a recording, shared by `run` and `recorder`; and --keep and --dump of `run`: the
// size of the kept part, and when it is written.
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

/// Refuses a name if a file would be overwritten; `remedy` is the advice in the error. Names that are taken later get a
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
  /// Call after parsing; nullopt without --keep. Fails for options that exclude each other.
  [[nodiscard]] Result<std::optional<KeepOptions>> options(const CommandLine& app) const;

 private:
  std::string keep_;
  std::string dump_;
};

}  // namespace tidemark::cli
