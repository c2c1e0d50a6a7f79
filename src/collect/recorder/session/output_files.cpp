#include "collect/recorder/session/output_files.h"

#include <fcntl.h>
#include <fmt/format.h>

#include <filesystem>
#include <vector>

#include "base/locked_file.h"

namespace tidemark {
namespace {

// "run.rank3.tide" for "run.tide" and "rank3"; the path itself without a label.
std::string labelled(const std::string& path, const std::string& label) {
  if (label.empty()) return path;
  const std::filesystem::path base(path);
  return (base.parent_path() / fmt::format("{}.{}{}", base.stem().string(), label, base.extension().string())).string();
}

// Empty for the only process of a job.
std::string rank_label(std::optional<std::int32_t> rank, std::optional<std::int32_t> world_size) {
  return rank && (*rank > 0 || world_size != 1) ? fmt::format("rank{}", *rank) : "";
}

}  // namespace

std::string first_output(const std::string& output, std::optional<std::int32_t> rank,
                         std::optional<std::int32_t> world_size) {
  return labelled(output, rank_label(rank, world_size));
}

std::string numbered_output(const std::string& output, int number) {
  return labelled(output, std::to_string(number));
}

Result<OutputFiles::File> OutputFiles::open_next(const ProcessInfo& process) {
  const std::string rank = rank_label(process.rank, process.world_size);
  const std::string pid = fmt::format("pid{}", process.pid.value_or(0));
  const bool is_first = rank.empty() && !first_given_;
  std::vector<std::string> labels = {is_first ? "" : rank.empty() ? pid : rank};
  if (!rank.empty()) labels.push_back(fmt::format("{}.{}", rank, pid));
  // A process that calls exec starts a second recording under the same pid; other runs may have the same name.
  for (int number = 2; number < 1000; ++number) {
    labels.push_back(is_first ? std::to_string(number) : fmt::format("{}.{}", labels.front(), number));
  }
  for (const std::string& label : labels) {
    std::string path = labelled(first_, label);
    if (used_.count(path) != 0) continue;
    auto fd = create_locked_file(path, overwrite_);
    if (!fd) return Error{fd.error().message + ". Choose another place with -o."};
    if (!*fd) continue;
    used_.insert(path);
    if (is_first || label == rank) kept_.emplace_back(::fcntl(fd->get(), F_DUPFD_CLOEXEC, 0));
    if (is_first) {
      first_given_ = true;
      first_ = path;  // the files of this run have one name, even if others are taken
    }
    auto sink = make_file_sink(std::move(*fd), path);
    return File{std::move(path), std::move(sink), is_first && !label.empty()};
  }
  return Error{fmt::format("{}: no free name for the recording of process {}", first_, process.pid.value_or(0))};
}

}  // namespace tidemark
