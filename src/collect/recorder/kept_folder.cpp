#include "collect/recorder/kept_folder.h"

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

namespace tidemark {
namespace {

constexpr std::string_view kEnding = ".tide";

}  // namespace

Result<std::shared_ptr<KeptFolder>> KeptFolder::create(const std::string& output) {
  constexpr int kMostNames = 1000;
  const std::string first = output + ".kept";
  int error = EEXIST;
  for (int number = 1; error == EEXIST && number < kMostNames; ++number) {
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

Result<std::unique_ptr<Sink>> KeptFolder::open_segment(const std::string& window, std::string& path) {
  path = KeptSegment{path_, ++opened_, window}.path();
  return open_file_sink(path, false);
}

std::string KeptSegment::path() const {
  return fmt::format("{}/{:06}.{}{}", folder, number, window, kEnding);
}

std::optional<KeptSegment> kept_segment(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  if (slash == std::string::npos || !path.ends_with(kEnding)) return std::nullopt;
  const std::string_view folder = std::string_view(path).substr(0, slash);
  std::string_view name = std::string_view(path).substr(slash + 1);
  name.remove_suffix(kEnding.size());
  KeptSegment segment{std::string(folder), 0, ""};
  const auto [rest, error] = std::from_chars(name.data(), name.data() + name.size(), segment.number);
  name.remove_prefix(static_cast<std::size_t>(rest - name.data()));
  if (error != std::errc() || !name.starts_with('.') || name.find(".pid") == std::string_view::npos) {
    return std::nullopt;
  }
  segment.window = name.substr(1);
  return segment.path() == path ? std::optional(std::move(segment)) : std::nullopt;
}

std::vector<KeptSegment> later_segments(const KeptSegment& segment) {
  std::vector<KeptSegment> later;
  std::error_code error;
  for (std::filesystem::directory_iterator entry(segment.folder, error), end; !error && entry != end;
       entry.increment(error)) {
    auto other = kept_segment(segment.folder + "/" + entry->path().filename().string());
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
