// What the reading commands share: FILE arguments, --format, --device, --at, and the loop over several recordings.
#pragma once

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <optional>
#include <string>
#include <vector>

#include "analyze/common/moment.h"
#include "base/result.h"
#include "cli/command.h"
#include "cli/progress.h"
#include "import/open.h"
#include "report/json/json.h"
#include "report/text/terminal.h"
#include "report/text/text.h"
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
  /// --at. Fails where it names a mark that is not there.
  [[nodiscard]] Result<Moment> moment(const Overview& overview) const { return find_moment(overview, at); }
};

/// FILE..., and --device.
void add_files(CLI::App& app, ReadingOptions& options);
/// --format; `formats` as "text|json".
void add_format(CLI::App& app, ReadingOptions& options, const std::string& formats);
/// --at.
void add_moment(CLI::App& app, ReadingOptions& options);
/// "text|json" as its words.
std::vector<std::string> split_choices(const std::string& choices);
/// Makes an option take one of the words of `choices`, given as "text|json".
void limit_to(CLI::Option& option, const std::string& choices);

/// Fails, saying what to do, for what is no regular file.
Result<void> check_recording_path(const std::string& path);

/// Loads each file by `load` (open_store or open_overview) and collects what `analyze(recording, symbols)` gives.
template <typename T, typename Load, typename Analyze>
Result<std::vector<T>> analyze_files(const std::vector<std::string>& files, const Load& load, const Analyze& analyze) {
  std::vector<T> results;
  for (const std::string& file : files) {
    if (auto fine = check_recording_path(file); !fine) return fine.error();
    const auto recording = load(file, make_progress(file));
    if (!recording) return recording.error();
    Symbols symbols(recording->definitions);
    Result<T> result = analyze(*recording, symbols);
    if (!result) return result.error();
    results.push_back(std::move(*result));
  }
  return results;
}

/// Text for stdout: of one result as it is, of several under a heading each.
template <typename T>
std::string join_texts(const std::vector<T>& results, bool text_has_title) {
  const Terminal terminal = detect_terminal(STDOUT_FILENO);
  std::string text;
  for (const T& result : results) {
    if (!text.empty()) text += "\n";
    if (results.size() > 1 && !text_has_title) {
      text += paint(terminal, Tone::heading, recording_title(result.recording)) + "\n";
    }
    text += to_text(result, terminal);
  }
  return text;
}

}  // namespace tidemark::cli
