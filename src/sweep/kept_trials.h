// The trials of a sweep, in a file from which the next call continues.
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
  std::string folder;               ///< of its files, below the sweep's folder
  TrialResult result;
};

/// FOLDER/trials.jsonl: a line with the settings shared by the trials, then a line for each, in the order of their
/// ends. Each line is on disk when append() returns; an incomplete line is removed when the file is opened next. Locked
/// while this object exists. Move-only, not thread-safe.
class KeptTrials {
 public:
  /// Opens or creates it, and the folder. Fails if another sweep is running there, if the file's first line differs
  /// from `common` (any text on one line), and if another line is not a trial: the file is never overwritten.
  static Result<KeptTrials> open(const std::string& folder, const std::string& common);

  /// In the order of their ends; if a configuration has several, the last one counts.
  [[nodiscard]] const std::vector<KeptTrial>& trials() const { return trials_; }
  Result<void> append(KeptTrial trial);
  /// A new name for the folder of the next trial: "trials/0001".
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
