#include "cli/recording_options.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <system_error>

#include "base/units.h"
#include "collect/recorder/session/output_files.h"
#include "collect/ring/ranks.h"

namespace tidemark::cli {
namespace {

// Names of functions and files come before the first event.
constexpr std::uint64_t kMinFileBytes = 64 * kKiB;

}  // namespace

void RecordingOptions::add_to(CommandLine& app) {
  app.add_option("-o,--output", recorder.output,
                 "Recording of the first process that allocates; those of ranks and other processes are named after it "
                 "(FILE.rank0.tide, FILE.pid4711.tide), and numbered where a name is taken (FILE.2.tide)")
      ->type_name("FILE")
      ->show_default("PROGRAM-DATE-TIME.tide");
  app.add_option("--stacks", recorder.stack_mode, "Stacks to record with each allocation")
      ->one_of("none|python|native|both");
  app.add_option("--attribute", attribute,
                 "Record what the memory belongs to: modules, parameters, gradients, optimizer state, backward nodes")
      ->one_of("on|off");
  app.add_option("--max-size", recorder.max_file_bytes,
                 "Stop recording before a file exceeds this size, such as 500MB or 2GB; at least 64KB")
      ->bytes(kMinFileBytes);
  app.add_option("--sample-interval", sample_interval_ms,
                 "Interval between samples of device and host memory, such as 50ms or 2s (1ms to 1 hour)")
      ->milliseconds(1, 3600'000);
  app.add_flag("--no-samples", no_samples, "Do not sample device and host memory");
}

RecorderOptions RecordingOptions::recorder_options() const {
  RecorderOptions options = recorder;
  options.attribute = attribute == "on";
  options.samples.enabled = !no_samples;
  options.samples.interval = std::chrono::nanoseconds(std::llround(sample_interval_ms * 1e6));
  return options;
}

Result<void> check_free(const RecorderOptions& options, const std::string& remedy) {
  const ring::Ranks ranks = ring::ranks_now();
  const std::string path = first_output(options.output, unless_negative(ranks.rank), unless_negative(ranks.world_size));
  std::error_code error;
  const auto type = std::filesystem::symlink_status(path, error).type();
  if (type == std::filesystem::file_type::not_found) return {};
  if (!options.overwrite) {
    return Error{fmt::format("{}: already exists; {}", path, remedy)};
  }
  const auto target = std::filesystem::status(path, error).type();
  if (type == std::filesystem::file_type::symlink &&
      (target == std::filesystem::file_type::regular || target == std::filesystem::file_type::not_found)) {
    return Error{fmt::format("{}: is a symbolic link, which is not replaced; name the file itself", path)};
  }
  return {};
}

std::string why_unwritable(const std::string& path) {
  std::error_code error;
  const auto type = std::filesystem::status(path, error).type();
  // Whoever reads a pipe may stop reading, and would stop the recorder.
  if (type == std::filesystem::file_type::fifo || type == std::filesystem::file_type::socket) {
    return fmt::format("{}: a pipe or socket, not a regular file", path);
  }
  const auto parent = std::filesystem::path(path).parent_path();
  const std::string folder = parent.empty() ? "." : parent.string();
  if (::access(folder.c_str(), W_OK | X_OK) == 0) return "";
  return fmt::format("{}: cannot write to this folder: {}", folder, std::strerror(errno));
}

}  // namespace tidemark::cli
