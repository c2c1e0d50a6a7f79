// The trials that a sweep has run, in a file that the next call goes on from.
#pragma once

#include <cstddef>
#include <string>
#include <unordered_set>
#include <vector>

#include "analyze/sweep/trial.h"
#include "base/result.h"
#include "base/scoped_fd.h"

namespace tidemark {

struct KeptTrial {
  std::string gpu;
  std::vector<std::string> values;  ///< by argument
  std::string folder;               ///< of its files, below that of the sweep
  TrialResult result;
};

/// FOLDER/trials.jsonl: a line with what the trials have in common, then a line for each, as they ended. Each line is
/// on disk when append() returns; a line that was not written whole is taken away when the file is opened next. Locked
/// while this object exists. Move-only, not thread-safe.
class KeptTrials {
 public:
  /// Opens or creates it, and the folder. Fails where another sweep is under way there, where the file's first line is
  /// another one than `common` (any text on one line), and where another line is no trial: nothing of it is lost.
  static Result<KeptTrials> open(const std::string& folder, const std::string& common);

  /// In the order in which they ended; of one configuration there may be several, of which the last counts.
  [[nodiscard]] const std::vector<KeptTrial>& trials() const { return trials_; }
  Result<void> append(KeptTrial trial);
  /// A name for the folder of the next trial, which is that of no other one: "trials/0001".
  [[nodiscard]] std::string new_folder();

 private:
  KeptTrials() = default;
  Result<void> read(const std::string& common);
  Result<void> write_line(const std::string& line);

  std::string path_;
  ScopedFd fd_;
  std::vector<KeptTrial> trials_;
  std::unordered_set<std::string> folders_;  // of all trials
  std::size_t number_ = 0;                   // of the latest new folder
};

}  // namespace tidemark
