#include "collect/recorder/live/kept_folder.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <string_view>
#include <system_error>
#include <utility>

#include "base/locked_file.h"
#include "base/scoped_fd.h"
#include "trace/sink.h"

namespace tidemark {
namespace {

constexpr std::string_view kEnding = ".tide";
constexpr std::string_view kEndingBefore = ".next";

std::optional<KeptSegment> parse(std::string_view folder, std::string_view name, std::string_view ending) {
  if (!name.ends_with(ending)) return std::nullopt;
  const std::string_view whole = name;
  name.remove_suffix(ending.size());
  KeptSegment segment{std::string(folder), 0, ""};
  const auto [rest, error] = std::from_chars(name.data(), name.data() + name.size(), segment.number);
  name.remove_prefix(static_cast<std::size_t>(rest - name.data()));
  if (error != std::errc() || !name.starts_with('.') || name.find(".pid") == std::string_view::npos) {
    return std::nullopt;
  }
  segment.window = name.substr(1);
  const std::string again = ending == kEnding ? segment.path() : segment.path_before();
  return std::string_view(again).substr(folder.size() + 1) == whole ? std::optional(std::move(segment)) : std::nullopt;
}

class SegmentOpener {
 public:
  SegmentOpener(std::shared_ptr<KeptFolder> folder, pid_t pid)
      : folder_(std::move(folder)), window_(folder_->add_window(pid)) {}
  ~SegmentOpener() {
    if (next_fd_) ::unlink(next_.path_before().c_str());
  }
  SegmentOpener(const SegmentOpener&) = delete;
  SegmentOpener& operator=(const SegmentOpener&) = delete;

  Result<std::unique_ptr<Sink>> open(std::string& path) {
    const bool ready = next_fd_ && ::rename(next_.path_before().c_str(), next_.path().c_str()) == 0;
    if (!ready) next_ = folder_->add_segment(window_);
    path = next_.path();
    auto sink = ready ? make_file_sink(std::move(next_fd_), path) : open_file_sink(path, false);
    prepare();
    return sink;
  }

 private:
  /// If this fails, the next file is created when it is needed.
  void prepare() {
    next_ = folder_->add_segment(window_);
    auto created = create_locked_file(next_.path_before(), false);
    next_fd_ = created ? std::move(*created) : ScopedFd();
  }

  std::shared_ptr<KeptFolder> folder_;
  std::string window_;
  KeptSegment next_;
  ScopedFd next_fd_;  ///< the file at next_.path_before(), if it exists
};

}  // namespace

Result<std::shared_ptr<KeptFolder>> KeptFolder::create(const std::string& output) {
  constexpr int kMaxNames = 1000;
  const std::string first = output + ".kept";
  int error = EEXIST;
  for (int number = 1; error == EEXIST && number < kMaxNames; ++number) {
    std::string path = number == 1 ? first : fmt::format("{}.{}", first, number);
    if (::mkdir(path.c_str(), S_IRWXU) == 0) return std::shared_ptr<KeptFolder>(new KeptFolder(std::move(path)));
    error = errno;
  }
  return Error{fmt::format("{}: cannot be created: {}. Choose another place with -o.", first, std::strerror(error))};
}

KeptFolder::~KeptFolder() {
  ::rmdir(path_.c_str());
}

std::string KeptFolder::add_window(pid_t pid) {
  return fmt::format("{}.pid{}", ++windows_, pid);
}

KeptSegment KeptFolder::add_segment(const std::string& window) {
  return {path_, ++segments_, window};
}

WindowWriter::OpenSegment open_segments(std::shared_ptr<KeptFolder> folder, pid_t pid) {
  return [opener = std::make_shared<SegmentOpener>(std::move(folder), pid)](std::string& path) {
    return opener->open(path);
  };
}

std::string KeptSegment::path() const {
  return fmt::format("{}/{:06}.{}{}", folder, number, window, kEnding);
}

std::string KeptSegment::path_before() const {
  return fmt::format("{}/{:06}.{}{}", folder, number, window, kEndingBefore);
}

std::optional<KeptSegment> kept_segment(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  if (slash == std::string::npos) return std::nullopt;
  return parse(std::string_view(path).substr(0, slash), std::string_view(path).substr(slash + 1), kEnding);
}

std::vector<KeptSegment> later_segments(const KeptSegment& segment) {
  std::vector<KeptSegment> later;
  std::error_code error;
  for (std::filesystem::directory_iterator entry(segment.folder, error), end; !error && entry != end;
       entry.increment(error)) {
    const std::string name = entry->path().filename().string();
    auto other = parse(segment.folder, name, kEnding);
    if (!other) other = parse(segment.folder, name, kEndingBefore);
    if (other && other->window == segment.window && other->number > segment.number) later.push_back(std::move(*other));
  }
  std::sort(later.begin(), later.end(),
            [](const KeptSegment& left, const KeptSegment& right) { return left.number < right.number; });
  return later;
}

bool same_recording(const std::string& left, const std::string& right) {
  if (left == right) return true;
  const auto one = kept_segment(left);
  const auto other = kept_segment(right);
  return one && other && one->folder == other->folder && one->window == other->window;
}

}  // namespace tidemark
