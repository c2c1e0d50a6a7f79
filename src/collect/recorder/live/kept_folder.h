// The folder beside a recording where the parts of it lie that are kept until somebody wants them.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "trace/window_writer.h"

namespace tidemark {

/// A file of such a folder, by its path: "run.tide.kept/000012.1.pid4711.tide".
struct KeptSegment {
  std::string folder;
  std::uint64_t number = 0;  ///< those that were begun later have greater ones
  std::string window;        ///< as add_window() called it

  [[nodiscard]] std::string path() const;
  /// Where it lies, empty, before it is begun (open_segments()).
  [[nodiscard]] std::string path_before() const;
  bool operator==(const KeptSegment&) const = default;
};

/// For its owner only (0700). Removed with this object, if nothing is in it then.
class KeptFolder {
 public:
  /// A new one: "run.tide.kept" for "run.tide", or with a number where that is taken. The error names it.
  static Result<std::shared_ptr<KeptFolder>> create(const std::string& output);
  ~KeptFolder();
  KeptFolder(const KeptFolder&) = delete;
  KeptFolder& operator=(const KeptFolder&) = delete;

  [[nodiscard]] const std::string& path() const { return path_; }
  /// What the files of one more process are called, "1.pid4711": a process that calls exec() has several.
  [[nodiscard]] std::string add_window(pid_t pid);
  /// One more file of a window, which nobody has created yet.
  [[nodiscard]] KeptSegment add_segment(const std::string& window);

 private:
  explicit KeptFolder(std::string path) : path_(std::move(path)) {}

  std::string path_;
  std::uint64_t segments_ = 0;
  std::uint64_t windows_ = 0;
};

/// Opens the files of one more process. The next one is always there already, empty and under another name: all of them
/// go when the job ends, and who follows can have it open by then. It goes with the last copy of what is returned,
/// which keeps the folder. One thread at a time.
[[nodiscard]] WindowWriter::OpenSegment open_segments(std::shared_ptr<KeptFolder> folder, pid_t pid);

/// None for paths of other files.
[[nodiscard]] std::optional<KeptSegment> kept_segment(const std::string& path);
/// Those of its window that are there and come after it, in order, with one that is not begun. Empty where the folder
/// is gone.
[[nodiscard]] std::vector<KeptSegment> later_segments(const KeptSegment& segment);
/// Whether two paths are of one recording: the same file, or files of one window.
[[nodiscard]] bool same_recording(const std::string& left, const std::string& right);

}  // namespace tidemark
