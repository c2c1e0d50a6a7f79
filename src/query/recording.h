// Opening recordings for their analyses: with their blocks and their owners, or as overviews with their samples; and a
// recording of which several things are asked: what a handle of the Python package holds.
#pragma once

#include <sys/stat.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "analyze/attribution/attributed_store.h"
#include "analyze/attribution/attribution.h"
#include "analyze/attribution/component_rules.h"
#include "analyze/common/analysis_options.h"
#include "analyze/ledger/samples.h"
#include "analyze/usage/breakdown.h"
#include "base/result.h"
#include "import/open.h"
#include "query/analyses/analysis.h"
#include "store/store.h"

namespace tidemark {

/// Makes the progress of one pass over a file. `doing`: "Reading"; kept by reference. May be empty, and may return
/// none.
using ProgressFor = std::function<Progress(const std::string& path, const char* doing)>;

/// Fails, saying what to do, for what is no regular file.
Result<void> check_recording_path(const std::string& path);

/// The rules in the file, before the built-in ones; these without a file.
Result<ComponentRules> read_rules(const std::string& path);

/// As open_store(), with what the recording knows of its blocks' owners in the stacks.
Result<AttributedStore> open_attributed(const std::string& path, const Progress& progress = {},
                                        const ComponentRules& rules = ComponentRules::built_in());

/// As open_overview(), with its samples. Its load_blocks reads the file again.
Result<SampledOverview> open_sampled_overview(const std::string& path, const ProgressFor& progress,
                                              const ComponentRules& rules = ComponentRules::built_in());

/// The same of blocks that are in memory.
[[nodiscard]] SampledOverview sampled_overview(const std::shared_ptr<const AttributedStore>& store);

/// Reads the recording again for what it knows of its blocks' owners: its stacks then say so, and the result is what
/// each category held at the peak, and advice. Empty where it knows nothing, or has too many events.
[[nodiscard]] PeakOwners take_owners(const std::string& path, const ProgressFor& progress, const ComponentRules& rules,
                                     Overview& overview);

/// Whether a file is still the one that was read.
struct FileVersion {
  std::uint64_t device = 0;
  std::uint64_t inode = 0;
  std::int64_t size = 0;
  std::int64_t changed_s = 0;
  std::int64_t changed_ns = 0;

  /// All 0 where there is no such file.
  static FileVersion of(const std::string& path) {
    struct stat status {};
    if (::stat(path.c_str(), &status) != 0) return {};
    return {status.st_dev, status.st_ino, status.st_size, status.st_mtim.tv_sec, status.st_mtim.tv_nsec};
  }
  bool operator==(const FileVersion&) const = default;
};

struct ReadingChoice {
  bool with_blocks = true;  ///< otherwise as `tidemark summary` reads: in memory that does not grow with the recording
  ComponentRules rules = ComponentRules::built_in();
  ProgressFor progress = {};
  std::string python{};  ///< as choose_simulation() takes it
  std::string name{};    ///< what results call the file; empty: its path
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

// The option --simulate: settings of the allocator that are worth trying, replayed for the advice of an analysis.

/// Sets AnalysisOptions::simulate as the option says, where the analysis has it. `automatic`: whether "auto" is
/// "pytorch": starting an interpreter takes seconds, which only somebody at a terminal waits for. `failed` is told why
/// a replay that was asked for cannot be done. `python`: the interpreter whose PyTorch replays; empty: python3.
void choose_simulation(const Analysis& analysis, bool automatic, const ProgressFor& progress,
                       const std::function<void(const std::string&)>& failed, AnalysisOptions& chosen,
                       const std::string& python = "");

}  // namespace tidemark
