#include "cli/reading.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <utility>

namespace tidemark::cli {
namespace {

// What to type instead of a directory: the recordings in it.
std::string recordings_in(const std::string& directory) {
  constexpr std::size_t kMost = 3;
  std::vector<std::string> found;
  std::error_code error;
  for (std::filesystem::directory_iterator entry(directory, error), end; !error && entry != end;
       entry.increment(error)) {
    if (entry->path().extension() == ".tide") found.push_back(entry->path().string());
  }
  if (found.empty()) return "it holds no .tide files";
  std::sort(found.begin(), found.end());
  const std::size_t more = found.size() - std::min(found.size(), kMost);
  found.resize(found.size() - more);
  return fmt::format("name the recordings in it: {}{}", fmt::join(found, " "),
                     more == 0 ? "" : fmt::format(" and {} more", more));
}

}  // namespace

void add_files(CommandLine& app, ReadingOptions& options) {
  app.add_option("FILE", options.files, "Recordings, or PyTorch memory snapshots; several are kept apart")
      ->required()
      ->type_name("FILE");
  app.add_option("--device", options.device, "Only this device, such as cuda:0")->type_name("DEVICE");
}

void add_format(CommandLine& app, ReadingOptions& options, const std::string& formats) {
  app.add_option("--format", options.format, "Text for people, or for programs")->one_of(formats);
}

void add_moment(CommandLine& app, ReadingOptions& options) {
  app.add_option("--at", options.at,
                 "When to look: peak (of each device its own), end, a time (12.5s, 300ms), 40%, or the name of a mark")
      ->type_name("peak|end|TIME|MARK")
      ->check([](const std::string& value) {
        // What begins like a number is no name; whether there is a mark of another name, the file tells.
        const auto moment = parse_moment(value);
        const bool name = !value.empty() && std::string_view("0123456789.+-").find(value[0]) == std::string::npos;
        return moment || name ? std::string() : moment.error().message;
      });
}

Result<void> check_recording_path(const std::string& path) {
  std::error_code error;
  const auto status = std::filesystem::status(path, error);
  if (status.type() == std::filesystem::file_type::not_found) return Error{fmt::format("{}: no such file", path)};
  if (error) return Error{fmt::format("{}: {}", path, error.message())};
  if (status.type() == std::filesystem::file_type::directory) {
    return Error{fmt::format("{}: is a directory; {}", path, recordings_in(path))};
  }
  if (status.type() != std::filesystem::file_type::regular) return Error{fmt::format("{}: not a regular file", path)};
  return {};
}

}  // namespace tidemark::cli
