// Shared by commands that read recordings: FILE arguments, --device, --format, --at and -o, reading each file, and
// writing the output.
#pragma once

#include <unistd.h>

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "analyze/attribution/filter.h"
#include "analyze/common/analysis_options.h"
#include "base/result.h"
#include "cli/command.h"
#include "query/recording.h"
#include "report/common/terminal.h"
#include "store/store.h"
#include "store/symbols.h"

namespace tidemark::cli {

/// The options of a reading command; commands derive their own from it.
struct ReadingOptions {
  std::vector<std::string> files;
  std::string device;
  std::string formats;  ///< supported by the command: "text|json"
  std::string format;   ///< --format; empty: by the name of the output file, else text
  std::string output;   ///< -o; empty or "-": stdout
  std::string at = "peak";

  [[nodiscard]] std::optional<std::string> only_device() const {
    return device.empty() ? std::nullopt : std::optional(device);
  }
};

/// Selects the shared arguments of a command, besides FILE and --device.
struct ReadingArguments {
  std::string formats;  ///< for --format and -o, as "text|json"; empty: neither
  bool at = false;      ///< --at
};
void add_reading(CommandLine& app, ReadingOptions& options, const ReadingArguments& arguments);

/// Without FILE: selects the newest recording (*.tide) in the current folder, and names it on stderr. Fails if there is
/// none.
Result<void> choose_files(std::vector<std::string>& files);

// Single arguments, for commands that take others than add_reading() adds.
void add_device(CommandLine& app, std::string& device);
void add_format(CommandLine& app, std::string& format, const std::string& formats);
void add_option(CommandLine& app, const AnalysisOption& option, AnalysisOptions& chosen);
void add_moment(CommandLine& app, std::string& at);
/// -o for files that are not for terminals; see check_output().
void add_output(CommandLine& app, std::string& output);

/// Fails if `output` is one of the input files, or a terminal: always if it is empty, for "-" only if `binary`. `what`
/// describes the output, `example` is a file name for it.
Result<void> check_output(std::span<const std::string> inputs, const std::string& output, bool binary,
                          const std::string& what, const std::string& example);

/// --format, or the format of the output file's name. Fails for an unknown one, and for a PNG on a terminal.
Result<std::string> output_format(const ReadingOptions& options);

/// Writes to the file, which appears complete or not at all, and reports its name and size, or to stdout if `path` is
/// "" or "-". Returns the exit code. `hint`: text after the report.
int write_output(const std::string& path, const std::string& bytes, std::string_view hint = "");
/// Reports on stderr that a file was written: "wrote blocks.csv, 1.2 MiB".
void say_written(const std::string& path, std::uint64_t bytes, std::string_view hint = "");

/// --module, --component, --category and --phase; and --component-rules.
struct OwnerArguments {
  FilterOptions filter;
  std::string rules;  ///< file
};
void add_owners(CommandLine& app, OwnerArguments& owners);

/// Loads each file by `load` (open_attributed or open_overview) and hands it to `take(recording, symbols)`. Stops at
/// the first error.
template <typename Load, typename Take>
Result<void> read_files(const std::vector<std::string>& files, const Load& load, const Take& take) {
  for (const std::string& file : files) {
    if (auto status = check_recording_path(file); !status) return status;
    const auto recording = load(file, make_progress(file));
    if (!recording) return recording.error();
    Symbols symbols(recording->definitions);
    if (Result<void> taken = take(*recording, symbols); !taken) return taken;
  }
  return {};
}

}  // namespace tidemark::cli
