// What the reading commands share: FILE arguments, --format, --device, --at, and the loop over several recordings.
#pragma once

#include <unistd.h>

#include <optional>
#include <string>
#include <vector>

#include "analyze/common/analysis_options.h"
#include "analyze/common/moment.h"
#include "base/result.h"
#include "cli/command.h"
#include "cli/progress.h"
#include "import/open.h"
#include "store/store.h"
#include "store/symbols.h"

namespace tidemark::cli {

struct ReadingOptions {
  std::vector<std::string> files;
  std::string format = "text";
  std::string at = "peak";
  std::string device;

  [[nodiscard]] std::optional<std::string> only_device() const {
    return device.empty() ? std::nullopt : std::optional(device);
  }
};

/// FILE..., and --device.
void add_files(CommandLine& app, ReadingOptions& options);
/// --format; `formats` as "text|json".
void add_format(CommandLine& app, ReadingOptions& options, const std::string& formats);
/// --at.
void add_moment(CommandLine& app, ReadingOptions& options);

/// Fails, saying what to do, for what is no regular file.
Result<void> check_recording_path(const std::string& path);

/// Loads each file by `load` (open_store or open_overview) and hands it to `take(recording, symbols)`. Stops at the
/// first error.
template <typename Load, typename Take>
Result<void> read_files(const std::vector<std::string>& files, const Load& load, const Take& take) {
  for (const std::string& file : files) {
    if (auto fine = check_recording_path(file); !fine) return fine;
    const auto recording = load(file, make_progress(file));
    if (!recording) return recording.error();
    Symbols symbols(recording->definitions);
    if (Result<void> taken = take(*recording, symbols); !taken) return taken;
  }
  return {};
}

}  // namespace tidemark::cli
