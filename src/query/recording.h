// Opens recordings for analyses: with their blocks and owners, or as overviews with their samples. Also a recording for
// several queries, which backs a handle of the Python package.
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

/// Creates the progress of one pass over a file. `doing`: "Reading"; kept by reference. May be empty, and may return an
/// empty one.
using ProgressFor = std::function<Progress(const std::string& path, const char* doing)>;

/// Fails, with advice, if it is not a regular file.
Result<void> check_recording_path(const std::string& path);

/// The rules in the file, before the built-in ones; these without a file.
Result<ComponentRules> read_rules(const std::string& path);

/// As open_store(), with the recording's data on owners of blocks in the stacks.
Result<AttributedStore> open_attributed(const std::string& path, const Progress& progress = {},
                                        const ComponentRules& rules = ComponentRules::built_in());

/// As open_overview(), with its samples. Its load_blocks reads the file again.
Result<SampledOverview> open_sampled_overview(const std::string& path, const ProgressFor& progress,
                                              const ComponentRules& rules = ComponentRules::built_in());

/// The same of blocks that are in memory.
[[nodiscard]] SampledOverview sampled_overview(const std::shared_ptr<const AttributedStore>& store);

/// Reads the recording again for the owners of its blocks: adds them to its stacks, and returns the memory of each
/// category at the peak, and advice. Empty if the recording has no data for it, or too many events.
[[nodiscard]] PeakOwners take_owners(const std::string& path, const ProgressFor& progress, const ComponentRules& rules,
                                     Overview& overview);

/// Whether a file is still the one that was read.
struct FileVersion {
  std::uint64_t device = 0;
  std::uint64_t inode = 0;
  std::int64_t size = 0;
  std::int64_t changed_s = 0;
  std::int64_t changed_ns = 0;

  /// All 0 if there is no such file.
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
  std::string name{};    ///< name of the file in results; empty: its path
};

/// Safe to use from several threads.
class Recording {
 public:
  /// Reads the file. Errors name it.
  static Result<std::shared_ptr<Recording>> open(const std::string& path, ReadingChoice choice);

  [[nodiscard]] const std::string& path() const { return path_; }
  [[nodiscard]] const ReadingChoice& choice() const { return choice_; }

  /// Reads the blocks on the first call; fails if the file has changed since it was opened.
  Result<std::shared_ptr<const AttributedStore>> blocks();
  /// Owners of the blocks, from the recording's data, or from stacks and lifetimes.
  Result<std::shared_ptr<const Attribution>> attribution();
  /// With the owners of the blocks in memory, or of blocks read for this purpose.
  const SampledOverview& overview();

 private:
  Recording(std::string path, ReadingChoice choice, FileVersion version)
      : path_(std::move(path)), choice_(std::move(choice)), version_(version) {}

  [[nodiscard]] Result<std::shared_ptr<const AttributedStore>> read_blocks() const;

  std::string path_;
  ReadingChoice choice_;
  FileVersion version_;
  std::recursive_mutex mutex_;  // protects the following; recursive because attribution() calls blocks()
  std::shared_ptr<const AttributedStore> blocks_;
  std::shared_ptr<const Attribution> attribution_;
  std::optional<SampledOverview> overview_;
};

/// Whether there is an option of this name: as on the command line, without the dashes. "device", "at", "module",
/// "component", "category" and "phase" are included if the analysis accepts them.
[[nodiscard]] bool has_option(const AnalysisInfo& analysis, const std::string& name);

/// Values of such options. Fails for invalid ones, listing the allowed values.
Result<AnalysisOptions> choose_options(const AnalysisInfo& analysis,
                                       const std::vector<std::pair<std::string, std::string>>& given);

/// The results of all of the recordings, to write in any of Analysis::formats but "csv" of a timeline.
Result<std::shared_ptr<const AnalysisRun>> run_analysis(const Analysis& analysis,
                                                        std::span<const std::shared_ptr<Recording>> recordings,
                                                        AnalysisOptions options);

// The option --simulate: settings of the allocator that are worth trying, replayed for the advice of an analysis.

/// Sets AnalysisOptions::simulate from the option, if the analysis has it. `automatic`: whether "auto" means "pytorch":
/// starting an interpreter takes seconds, which is only acceptable on a terminal. `failed` receives the reason why a
/// requested replay is impossible. `python`: the interpreter with the PyTorch for the replay; empty: python3.
void choose_simulation(const Analysis& analysis, bool automatic, const ProgressFor& progress,
                       const std::function<void(const std::string&)>& failed, AnalysisOptions& chosen,
                       const std::string& python = "");

}  // namespace tidemark
