// The folder beside a recording that holds its segments until a dump is requested.
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
  std::uint64_t number = 0;  ///< increases in the order in which segments begin
  std::string window;        ///< as returned by add_window()

  [[nodiscard]] std::string path() const;
  /// Its path before it begins, as an empty file (open_segments()).
  [[nodiscard]] std::string path_before() const;
  bool operator==(const KeptSegment&) const = default;
};

/// Accessible only to its owner (0700). Removed with this object if it is empty.
class KeptFolder {
 public:
  /// Creates "run.tide.kept" for "run.tide", with a number added if that is taken. The error names the folder.
  static Result<std::shared_ptr<KeptFolder>> create(const std::string& output);
  ~KeptFolder();
  KeptFolder(const KeptFolder&) = delete;
  KeptFolder& operator=(const KeptFolder&) = delete;

  [[nodiscard]] const std::string& path() const { return path_; }
  /// The name for the files of one more process, "1.pid4711": a process that calls exec() has several.
  [[nodiscard]] std::string add_window(pid_t pid);
  /// One more file of a window, not created yet.
  [[nodiscard]] KeptSegment add_segment(const std::string& window);

 private:
  explicit KeptFolder(std::string path) : path_(std::move(path)) {}

  std::string path_;
  std::uint64_t segments_ = 0;
  std::uint64_t windows_ = 0;
};

/// Opens the files of one more process. The next file always exists already, empty and under another name: a reader can
/// open it before the files are deleted at the end of the job. It is deleted with the last copy of the returned
/// function, which also owns the folder. One thread at a time.
[[nodiscard]] WindowWriter::OpenSegment open_segments(std::shared_ptr<KeptFolder> folder, pid_t pid);

/// std::nullopt for paths of other files.
[[nodiscard]] std::optional<KeptSegment> kept_segment(const std::string& path);
/// The existing segments of its window that come after it, in order, including one that has not begun. Empty if the
/// folder is gone.
[[nodiscard]] std::vector<KeptSegment> later_segments(const KeptSegment& segment);
/// Whether two paths belong to one recording: the same file, or files of one window.
[[nodiscard]] bool same_recording(const std::string& left, const std::string& right);

}  // namespace tidemark
