#include "collect/recorder/output_files.h"

#include <fmt/format.h>

#include <filesystem>
#include <vector>

namespace tidemark {

Result<OutputFiles::File> OutputFiles::open_next(const ProcessInfo& process) {
  // The name itself goes to the first process without a rank. With one, every file carries it, so that FILE.rank* are
  // all ranks; those of a job that runs on several machines may share a folder.
  if (!process.rank && used_.count(first_) == 0) {
    auto sink = open_file_sink(first_, overwrite_);
    if (!sink) return sink.error();
    used_.insert(first_);
    return File{first_, std::move(*sink)};
  }
  const std::filesystem::path base(first_);
  const auto named = [&base](const std::string& label) {
    return (base.parent_path() / fmt::format("{}.{}{}", base.stem().string(), label, base.extension().string()))
        .string();
  };
  const std::string pid = fmt::format("pid{}", process.pid.value_or(0));
  std::vector<std::string> labels;
  if (process.rank) {
    labels = {fmt::format("rank{}", *process.rank), fmt::format("rank{}.{}", *process.rank, pid)};
  } else {
    labels = {pid};
  }
  // A process that calls exec starts a second recording under the same pid.
  for (int number = 2; number < 1000; ++number) labels.push_back(fmt::format("{}.{}", labels.front(), number));
  for (const std::string& label : labels) {
    std::string path = named(label);
    if (used_.count(path) != 0 || (!overwrite_ && std::filesystem::exists(path))) continue;
    auto sink = open_file_sink(path, overwrite_);
    if (!sink) return sink.error();
    used_.insert(path);
    return File{std::move(path), std::move(*sink)};
  }
  return Error{fmt::format("{}: no free name for the recording of process {}", first_, process.pid.value_or(0))};
}

}  // namespace tidemark
