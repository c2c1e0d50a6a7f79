// tidemark run: starts a program so that it is recorded, and is the recorder until it ends.
#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <cstring>
#include <ctime>
#include <exception>
#include <filesystem>
#include <memory>
#include <new>
#include <system_error>
#include <utility>

#include "base/standard_streams.h"
#include "base/units.h"
#include "cli/reading.h"
#include "collect/recorder/descriptors.h"
#include "collect/recorder/output_files.h"
#include "collect/recorder/recorder.h"
#include "collect/ring/layout.h"
#include "collect/ring/ranks.h"
#include "launch/child_process.h"
#include "launch/environment.h"
#include "report/words/printable.h"

namespace tidemark::cli {
namespace {

using namespace std::chrono_literals;

// Names of functions and files come before the first event.
constexpr std::uint64_t kLeastFileBytes = 64 * kKiB;
constexpr std::size_t kMostListed = 10;  // recordings, at the end

struct RunOptions {
  RecorderOptions recorder;
  double sample_interval_ms = 100;
  bool no_samples = false;
  std::string driver = "off";
  bool quiet = false;
  std::vector<std::string> command;
};

void say(const std::string& message) {
  tidemark::say(printable(message));  // paths and commands are anybody's
}

// "train-20261120-221500.tide" for `python train.py`.
std::string default_output(const std::vector<std::string>& command) {
  std::string stem = std::filesystem::path(command.front()).stem().string();
  for (const std::string& word : command) {
    if (std::filesystem::path(word).extension() == ".py") {
      stem = std::filesystem::path(word).stem().string();
      break;
    }
  }
  const std::time_t now = std::time(nullptr);
  std::tm local{};
  ::localtime_r(&now, &local);
  char when[32];
  std::strftime(when, sizeof(when), "%Y%m%d-%H%M%S", &local);
  return fmt::format("{}-{}.tide", stem.empty() ? "run" : stem, when);
}

// Refuses a name that would cost somebody a file. Names that are taken later get a number instead.
Result<void> check_free(const std::string& path, bool overwrite) {
  std::error_code error;
  const auto type = std::filesystem::symlink_status(path, error).type();
  if (type == std::filesystem::file_type::not_found) return {};
  if (!overwrite) {
    return Error{fmt::format("{}: already exists; name another file with -o, or use --force to replace it", path)};
  }
  const auto target = std::filesystem::status(path, error).type();
  if (type == std::filesystem::file_type::symlink &&
      (target == std::filesystem::file_type::regular || target == std::filesystem::file_type::not_found)) {
    return Error{fmt::format("{}: is a symbolic link, which is not replaced; name the file itself with -o", path)};
  }
  return {};
}

// Why a recording could not be written to `path`, or an empty string.
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

// A reader of stderr may come back when the program has ended; nobody waits for it forever.
constexpr std::chrono::milliseconds kPatienceAtTheEnd = 1s;

void say_dropped() {
  const std::uint64_t dropped = dropped_messages();
  if (dropped == 0) return;
  say(fmt::format("{} not written to stderr, which nobody read",
                  dropped == 1 ? "1 message was" : fmt::format("{} messages were", dropped)));
}

void say_unrecorded(const Recorder& recorder) {
  const Unrecorded& unrecorded = recorder.unrecorded();
  if (unrecorded.count == 0 || recorder.files().empty()) return;  // of nothing at all, summarize() says why
  say(fmt::format("{} not recorded: {}",
                  unrecorded.count == 1 ? "1 process was" : fmt::format("{} processes were", unrecorded.count),
                  unrecorded.reason));
}

void summarize(const Recorder& recorder) {
  std::vector<RecordedFile> files = recorder.files();
  if (files.empty()) return say("nothing was recorded: " + recorder.why_nothing());
  // The main process, the ranks in their order, and then those that have a pid.
  std::sort(files.begin(), files.end(), [](const auto& a, const auto& b) {
    return std::pair(a.path.size(), a.path) < std::pair(b.path.size(), b.path);
  });
  std::string names;
  RecordedFile others;  // those that are not listed, together
  std::uint64_t dropped = 0;
  for (std::size_t index = 0; index < files.size(); ++index) {
    const RecordedFile& file = files[index];
    dropped += file.dropped_count;
    if (index >= kMostListed) {
      others.event_count += file.event_count;
      others.bytes += file.bytes;
      continue;
    }
    if (names.size() < 200) names += " " + file.path;
    say(fmt::format("{}: {} events of process {}, {}{}", file.path, format_count(file.event_count), file.pid,
                    format_bytes(file.bytes), file.failed ? " (stopped early)" : ""));
  }
  if (files.size() > kMostListed) {
    say(fmt::format("and {} more recordings: {} events, {}", format_count(files.size() - kMostListed),
                    format_count(others.event_count), format_bytes(others.bytes)));
  }
  if (dropped > 0) say(fmt::format("{} events were lost; see data quality in the reports", format_count(dropped)));
  say(fmt::format("to see the peak memory: tidemark summary{}", names));
}

// What fails in the recorder ends the recording, not the program. False where it did.
template <typename Work>
bool try_to(const Work& work) {
  try {
    work();
    return true;
  } catch (const std::bad_alloc&) {
    write_stderr({"tidemark: recording stopped: the recorder is out of memory; the program is not affected\n"});
  } catch (const std::exception& error) {
    write_stderr({"tidemark: recording stopped: internal error: ", error.what(), "; the program is not affected\n"});
  }
  return false;
}

/// A recorder, if it could be started, and what a program needs in its environment to be recorded.
struct Recording {
  std::unique_ptr<Recorder> recorder;
  std::vector<std::string> environment;
};

Recording start_recording(const RecorderOptions& recorder_options, const RunOptions& options,
                          const std::string& library) {
  Recording recording;
  const std::string unwritable = why_unwritable(recorder_options.output);
  auto created = unwritable.empty() ? Recorder::create(recorder_options, say)
                                    : Result<std::unique_ptr<Recorder>>(Error{unwritable});
  if (!created) {
    say(fmt::format("{}; running the program without recording", created.error().message));
    return recording;
  }
  recording.recorder = std::move(*created);
  recording.environment = recording.recorder->environment();
  const LaunchEnvironment added =
      launch_environment(library, {.preload = !recorder_options.manual, .driver = options.driver == "on"});
  recording.environment.insert(recording.environment.end(), added.variables.begin(), added.variables.end());
  if (!added.other_injection.empty()) {
    say(fmt::format("{} is set by another tool ({}): CUDA driver memory is not recorded; unset it for --driver on",
                    ring::kInjectionVariable, added.other_injection));
  }
  return recording;
}

int run(const RunOptions& options) {
  ChildProcess child;  // before all else: from here on, nothing but the program's end ends this process
  wait_for_stderr_at_most(0s);
  RecorderOptions recorder_options = options.recorder;
  if (recorder_options.output.empty()) {
    recorder_options.output = default_output(options.command);
  } else {
    const ring::Ranks ranks = ring::ranks_now();
    const std::string first =
        first_output(recorder_options.output, unless_negative(ranks.rank), unless_negative(ranks.world_size));
    if (auto free = check_free(first, recorder_options.overwrite); !free) return fail(free.error().message);
  }
  recorder_options.samples.enabled = !options.no_samples;
  recorder_options.samples.outsider = child.witness();
  recorder_options.samples.interval = std::chrono::nanoseconds(std::llround(options.sample_interval_ms * 1e6));
  const auto library = find_preload_library();
  if (!library) return fail(library.error().message);
  Recording recording;
  try_to([&] { recording = start_recording(recorder_options, options, *library); });
  std::unique_ptr<Recorder>& recorder = recording.recorder;

  child.start(options.command, recording.environment);
  if (!child) {
    say(child.error().message);
    return child.exit_code_if_not_started();
  }
  raise_descriptor_limit();
  while (!child.ended()) {
    pollfd signals{child.signal_fd(), POLLIN, 0};
    if (recorder == nullptr) {
      child.wait_for_signals();
    } else if (!try_to([&] { recorder->poll_once({&signals, 1}); })) {
      recorder = nullptr;
    }
    child.handle_signals();
  }
  wait_for_stderr_at_most(kPatienceAtTheEnd);
  if (recorder != nullptr) {
    try_to([&] {
      recorder->finish(std::chrono::seconds(2));
      say_unrecorded(*recorder);
      if (!options.quiet) summarize(*recorder);
    });
    recorder = nullptr;  // removes the socket
  }
  try_to(say_dropped);
  return child.pass_on_status();
}

}  // namespace

std::function<int()> setup_run(CommandLine& app) {
  auto options = std::make_shared<RunOptions>();
  RecorderOptions& recorder = options->recorder;
  app.add_option("-o,--output", recorder.output,
                 "Recording of the first process that allocates; those of ranks and other processes are named after it "
                 "(FILE.rank0.tide, FILE.pid4711.tide), and numbered where a name is taken (FILE.2.tide)")
      ->type_name("FILE")
      ->show_default("PROGRAM-DATE-TIME.tide");
  app.add_option("--stacks", recorder.stack_mode, "Stacks to record with each allocation")
      ->one_of("none|python|native|both");
  app.add_option("--max-size", recorder.max_file_bytes,
                 "Stop recording before a file exceeds this size, such as 500MB or 2GB; at least 64KB")
      ->bytes(kLeastFileBytes)
      ->type_name("SIZE");
  app.add_option("--sample-interval", options->sample_interval_ms,
                 "Interval between samples of device and host memory, such as 50ms or 2s (1ms to 1 hour)")
      ->milliseconds(1, 3600'000)
      ->type_name("TIME");
  app.add_flag("--no-samples", options->no_samples, "Do not sample device and host memory");
  app.add_option("--driver", options->driver,
                 "Record memory that libraries (NCCL, cuBLAS, ...) allocate from the CUDA driver; uses CUPTI's only "
                 "subscription, so that other CUDA profilers cannot run")
      ->one_of("on|off");
  app.add_flag("--paused", recorder.paused,
               "Start paused: each process records nothing until it calls tidemark_resume()");
  app.add_flag("-f,--force", recorder.overwrite, "Replace existing recordings that no other run is writing");
  app.add_flag(
      "--manual", recorder.manual,
      "Do not preload the collector: the program loads the library whose path is in TIDEMARK_LIBRARY and calls "
      "tidemark_attach()");
  app.add_flag("-q,--quiet", options->quiet, "Do not print the recordings and their sizes at the end");
  app.add_option("PROGRAM", options->command, "Program and its arguments")->required();
  app.ends_with_a_program();
  app.footer(
      "The program keeps its own input, output, signals and exit code. A recording can be read while the program runs: "
      "it contains everything up to about one second ago.\n\n"
      "Examples:\n"
      "  tidemark run -- python train.py --epochs 3\n"
      "  tidemark run -o run.tide --stacks both -- python train.py\n"
      "  tidemark run -o run.tide --driver on -- python train.py\n"
      "  tidemark run -o job.tide -- torchrun --nproc-per-node 8 train.py");
  return [options] { return run(*options); };
}

}  // namespace tidemark::cli
