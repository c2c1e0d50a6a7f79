// Names of the recordings of a job: the first process without a rank gets the name asked for, others a name made from
// it.
#pragma once

#include <memory>
#include <set>
#include <string>

#include "base/result.h"
#include "trace/definitions.h"
#include "trace/sink.h"

namespace tidemark {

class OutputFiles {
 public:
  /// `first` is a path; with `overwrite` existing files are replaced.
  OutputFiles(std::string first, bool overwrite) : first_(std::move(first)), overwrite_(overwrite) {}

  struct File {
    std::string path;
    std::unique_ptr<Sink> sink;
  };

  /// Opens the file of one more process: FILE.rank0.tide for the first of a rank, FILE.rank0.pid4712.tide for others of
  /// it; without a rank FILE.tide for the first, FILE.pid4711.tide for others. A number is added where a name is taken.
  Result<File> open_next(const ProcessInfo& process);

 private:
  std::string first_;
  bool overwrite_;
  std::set<std::string> used_;
};

}  // namespace tidemark
