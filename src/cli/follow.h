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

/// Action for each state of the recording.
struct FollowedAnalysis {
  const Analysis& analysis;
  AnalysisOptions& chosen;
  std::string format;
  std::string output;  ///< file, replaced each time; empty or "-": stdout
};

/// Follows until the recording ends, or a signal (SIGINT, SIGTERM) comes: then it also shows the state of that moment.
/// `files`: one recording, or none: the recording of the process, or the only one of this user in progress. Returns the
/// exit code.
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
  /// Terminal for the next text, with its current width.
  [[nodiscard]] static Terminal terminal();

  /// Replaces the shown text. On a terminal, lines that do not fit are left out, and counted. Fails if stdout cannot be
  /// written.
  Result<void> show(std::string text);

 private:
  bool in_place_;
  bool first_ = true;
  std::string latest_;  // in place only
};

/// The part of `text` for a screen with this number of rows, replacing the earlier screen.
[[nodiscard]] std::string screen_text(const std::string& text, std::size_t rows);

}  // namespace tidemark::cli
