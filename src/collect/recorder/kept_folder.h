// The folder beside a recording where the parts of it lie that are kept until somebody wants them.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <string>

#include "base/result.h"
#include "trace/sink.h"

namespace tidemark {

/// For its owner only (0700). Removed with this object, if nothing is in it then.
class KeptFolder {
 public:
  /// A new one: "run.tide.kept" for "run.tide", or with a number where that is taken. The error names it.
  static Result<std::shared_ptr<KeptFolder>> create(const std::string& output);
  ~KeptFolder();
  KeptFolder(const KeptFolder&) = delete;
  KeptFolder& operator=(const KeptFolder&) = delete;

  [[nodiscard]] const std::string& path() const { return path_; }
  /// One more file, of the process; sets its path.
  Result<std::unique_ptr<Sink>> open_segment(pid_t pid, std::string& path);

 private:
  explicit KeptFolder(std::string path) : path_(std::move(path)) {}

  std::string path_;
  std::uint64_t opened_ = 0;
};

}  // namespace tidemark
