#include "cli/recording_options.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <vector>

#include "base/units.h"
#include "collect/recorder/session/output_files.h"
#include "collect/ring/ranks.h"

namespace tidemark::cli {
namespace {

// Names of functions and files come before the first event.
constexpr std::uint64_t kMinFileBytes = 64 * kKiB;

// Each segment, an eighth of the time, begins with the live blocks.
constexpr std::uint64_t kMinTimeNs = 5'000'000'000;
constexpr double kMaxTimeNs = 366.0 * 24 * 3600 * 1e9;
constexpr std::uint64_t kMinBytes = kMiB;
constexpr std::uint64_t kMaxBytes = std::uint64_t{1024} * 1024 * kGiB;

std::vector<std::string> parts_of(const std::string& text) {
  std::vector<std::string> parts;
  for (std::size_t at = 0; at <= text.size();) {
    const std::size_t end = std::min(text.find(',', at), text.size());
    parts.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return parts;
}

Error bad_keep(const std::string& part) {
  return {
      fmt::format("invalid value '{}' (expected a time such as 30s, 10min or 2h, a size such as 500MB or 2GiB, or "
                  "both: 10min,2GiB)",
                  part)};
}

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

std::string unwritable_reason(const std::string& path) {
  std::error_code error;
  const auto type = std::filesystem::status(path, error).type();
  // A pipe's reader may stop reading, and would block the recorder.
  if (type == std::filesystem::file_type::fifo || type == std::filesystem::file_type::socket) {
    return fmt::format("{}: a pipe or socket, not a regular file", path);
  }
  const auto parent = std::filesystem::path(path).parent_path();
  const std::string folder = parent.empty() ? "." : parent.string();
  if (::access(folder.c_str(), W_OK | X_OK) == 0) return "";
  return fmt::format("{}: cannot write to this folder: {}", folder, std::strerror(errno));
}

Result<WindowLimits> parse_keep(const std::string& text) {
  WindowLimits limits;
  for (const std::string& part : parts_of(text)) {
    std::optional<double> time;
    std::optional<std::uint64_t> bytes;
    if (!has_no_unit(part)) time = parse_time(part, kNanosecond);
    if (!has_no_unit(part) && !time) bytes = parse_size(part);
    if (time.value_or(0) == 0 && bytes.value_or(0) == 0) return bad_keep(part);
    if ((time && limits.time_ns != 0) || (bytes && limits.bytes != 0)) {
      return Error{
          fmt::format("'{}' has two {} (expected one time, one size, or one of each)", text, time ? "times" : "sizes")};
    }
    if (time && !(*time >= static_cast<double>(kMinTimeNs) && *time <= kMaxTimeNs)) {
      return Error{fmt::format("'{}' is not between 5s and 366d", part)};
    }
    if (bytes && (*bytes < kMinBytes || *bytes > kMaxBytes)) {
      return Error{fmt::format("'{}' is not between {} and 1024 TiB", part, format_bytes(kMinBytes))};
    }
    if (time) limits.time_ns = static_cast<std::uint64_t>(std::llround(*time));
    if (bytes) limits.bytes = *bytes;
  }
  return limits;
}

Result<DumpTriggers> parse_triggers(const std::string& text) {
  DumpTriggers triggers;
  for (const std::string& part : parts_of(text)) {
    if (part == "on-oom") {
      triggers.on_oom = true;
    } else if (part == "on-signal") {
      triggers.on_signal = true;
    } else if (part == "on-exit-code") {
      triggers.on_exit_code = true;
    } else {
      return Error{
          fmt::format("invalid value '{}' (expected on-oom, on-signal and on-exit-code, with commas between)", part)};
    }
  }
  return triggers;
}

void KeepArguments::add_to(CommandLine& app) {
  const auto problem_of = [](const auto& parse) {
    return [parse](const std::string& text) {
      const auto parsed = parse(text);
      return parsed ? std::string() : parsed.error().message;
    };
  };
  app.add_option("--keep", keep_,
                 "Keep only the last part of the recording, of each process: a time (10min), a size (2GiB), or both, "
                 "of which the smaller counts")
      ->type_name("TIME|SIZE")
      ->check(problem_of(parse_keep));
  app.add_option(
         "--dump", dump_,
         "With --keep: write what was kept when memory runs out (on-oom: of a device, or the kernel kills a process), "
         "when tidemark gets SIGUSR1 (on-signal), or when the program fails (on-exit-code)")
      ->type_name("WHEN,...")
      ->show_default("all three")
      ->check(problem_of(parse_triggers));
}

Result<std::optional<KeepOptions>> KeepArguments::options(const CommandLine& app) const {
  if (keep_.empty()) {
    if (!dump_.empty()) return Error{"--dump: needs --keep, which says how much is kept (for example --keep 10min)"};
    return std::optional<KeepOptions>();
  }
  if (app.given("--max-size")) {
    return Error{"--keep and --max-size: cannot be given both; --keep 2GiB keeps the last 2 GiB"};
  }
  KeepOptions options;
  options.limits = *parse_keep(keep_);
  options.dump = dump_.empty() ? DumpTriggers{true, true, true} : *parse_triggers(dump_);
  return std::optional(std::move(options));
}

}  // namespace tidemark::cli
