// A recording of which several things are asked: what a handle of the Python package holds.
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "analyze/attribution/attributed_store.h"
#include "analyze/attribution/attribution.h"
#include "analyze/common/analysis_options.h"
#include "base/result.h"
#include "query/analyses/analysis.h"
#include "query/file_version.h"
#include "query/open_recording.h"

namespace tidemark {

struct ReadingChoice {
  bool with_blocks = true;  ///< otherwise as `tidemark summary` reads: in memory that does not grow with the recording
  ComponentRules rules = ComponentRules::built_in();
  ProgressFor progress = {};
  std::string python{};  ///< as choose_simulation() takes it
};

/// Safe to use from several threads.
class Recording {
 public:
  /// Reads the file. Errors name it.
  static Result<std::shared_ptr<Recording>> open(const std::string& path, ReadingChoice choice);

  [[nodiscard]] const std::string& path() const { return path_; }
  [[nodiscard]] const ReadingChoice& choice() const { return choice_; }

  /// Reads them now where they were not read; then fails where the file is not what it was when it was opened.
  Result<std::shared_ptr<const AttributedStore>> blocks();
  /// Whose they are: what the recording knows, or what can be told from stacks and lifetimes.
  Result<std::shared_ptr<const Attribution>> attribution();
  /// With the owners of what is in memory, or of what was read for them.
  const SampledOverview& overview();

 private:
  Recording(std::string path, ReadingChoice choice, FileVersion version)
      : path_(std::move(path)), choice_(std::move(choice)), version_(version) {}

  [[nodiscard]] Result<std::shared_ptr<const AttributedStore>> read_blocks() const;

  std::string path_;
  ReadingChoice choice_;
  FileVersion version_;
  std::recursive_mutex mutex_;  // of what follows: attribution() calls blocks()
  std::shared_ptr<const AttributedStore> blocks_;
  std::shared_ptr<const Attribution> attribution_;
  std::optional<SampledOverview> overview_;
};

/// Whether there is an option of this name: as on the command line, without the dashes. "device", "at", "module",
/// "component", "category" and "phase" are some too, where the analysis takes them.
[[nodiscard]] bool has_option(const AnalysisInfo& analysis, const std::string& name);

/// Values of such options. Fails for wrong ones, saying what is allowed.
Result<AnalysisOptions> choose_options(const AnalysisInfo& analysis,
                                       const std::vector<std::pair<std::string, std::string>>& given);

/// The results of all of the recordings, to write in any of Analysis::formats but "csv" of a timeline.
Result<std::shared_ptr<const AnalysisRun>> run_analysis(const Analysis& analysis,
                                                        std::span<const std::shared_ptr<Recording>> recordings,
                                                        AnalysisOptions options);

}  // namespace tidemark
