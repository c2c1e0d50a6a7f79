// Names of the recordings of a job: ranks have their number, the first process without a rank gets the requested name,
// and others have their pid.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/scoped_fd.h"
#include "trace/definitions.h"
#include "trace/sink.h"

namespace tidemark {

/// The name for the recording of a first process with these ranks: FILE.rank3.tide, or FILE.tide for the only process
/// of a job and for processes without a rank.
[[nodiscard]] std::string first_output(const std::string& output, std::optional<std::int32_t> rank,
                                       std::optional<std::int32_t> world_size);

/// "run.3.tide" for 3 of "run.tide".
[[nodiscard]] std::string numbered_output(const std::string& output, int number);

class OutputFiles {
 public:
  /// `first` is a path; with `overwrite` existing files are replaced, except files that another run is writing.
  OutputFiles(std::string first, bool overwrite) : first_(std::move(first)), overwrite_(overwrite) {}

  struct File {
    std::string path;
    std::unique_ptr<Sink> sink;
    bool renamed = false;  ///< the requested name was taken
  };

  /// Opens the file of one more process: FILE.rank1.tide for one with a rank, FILE.tide for the first without,
  /// FILE.pid4711.tide for others. Until this run ends, no other run replaces those without a pid. A number is added if
  /// a name is taken (FILE.2.tide, and then FILE.2.pid4711.tide).
  Result<File> open_next(const ProcessInfo& process);

 private:
  std::string first_;
  bool overwrite_;
  bool first_given_ = false;
  std::set<std::string> used_;
  std::vector<ScopedFd> kept_;  ///< the locks of names without a pid, which other runs may use
};

}  // namespace tidemark
