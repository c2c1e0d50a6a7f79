// --follow: an analysis of a recording in progress, printed again while it grows: in place on a terminal, one block
// after the other elsewhere.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "analyze/common/analysis_options.h"
#include "base/result.h"
#include "cli/command.h"
#include "query/analyses/analysis.h"
#include "report/common/terminal.h"

namespace tidemark::cli {

struct FollowArguments {
  bool follow = false;
  double interval_ms = 2000;
  std::uint64_t pid = 0;  ///< 0: not given
};
void add_follow(CommandLine& app, FollowArguments& arguments);

/// What is done with each state of the recording.
struct FollowedAnalysis {
  const Analysis& analysis;
  AnalysisOptions& chosen;
  std::string format;
  std::string output;  ///< file, replaced each time; empty or "-": stdout
};

/// Until the recording ends, or a signal (SIGINT, SIGTERM) does it: then too with the state of that moment. `files`:
/// one recording, or none: that of the process, or the only one of this user in progress. The exit code.
int follow(const FollowedAnalysis& what, const FollowArguments& arguments, const std::vector<std::string>& files);

/// Not thread-safe. One at a time.
class LiveScreen {
 public:
  /// stdout, as it is.
  LiveScreen();
  /// The last text stays, whole, above the cursor.
  ~LiveScreen();
  LiveScreen(const LiveScreen&) = delete;
  LiveScreen& operator=(const LiveScreen&) = delete;

  [[nodiscard]] bool in_place() const { return in_place_; }
  /// For the next text: its width is that of now.
  [[nodiscard]] static Terminal terminal();

  /// Replaces what is shown. On a terminal, what does not fit below the first lines is left out, and counted. Fails
  /// where stdout cannot be written.
  Result<void> show(std::string text);

 private:
  bool in_place_;
  bool first_ = true;
  std::string latest_;  // in place only
};

/// What of `text` a screen of so many rows shows, in place of what was there.
[[nodiscard]] std::string screen_text(const std::string& text, std::size_t rows);

}  // namespace tidemark::cli
