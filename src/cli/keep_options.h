// What `tidemark run` keeps where it keeps the last part only, and when it writes that: --keep and --dump.
#pragma once

#include <optional>
#include <string>

#include "base/result.h"
#include "cli/command_line.h"
#include "collect/recorder/session/dump.h"

namespace tidemark::cli {

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
