#include "cli/record_program.h"

#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <ctime>
#include <exception>
#include <filesystem>
#include <memory>
#include <new>
#include <system_error>
#include <utility>

#include "base/standard_streams.h"
#include "cli/command.h"
#include "collect/recorder/descriptors.h"
#include "collect/recorder/output_files.h"
#include "collect/ring/layout.h"
#include "collect/ring/ranks.h"
#include "launch/environment.h"
#include "report/words/printable.h"

namespace tidemark::cli {
namespace {

using namespace std::chrono_literals;

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
  say_printable(fmt::format("{} not written to stderr, which nobody read",
                            dropped == 1 ? "1 message was" : fmt::format("{} messages were", dropped)));
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

Recording start_recording(const RecorderOptions& recorder_options, const ProgramOptions& options,
                          const std::string& library) {
  Recording recording;
  const std::string unwritable = why_unwritable(recorder_options.output);
  auto created = unwritable.empty() ? Recorder::create(recorder_options, say_printable)
                                    : Result<std::unique_ptr<Recorder>>(Error{unwritable});
  if (!created) {
    const char* const what =
        options.only_recorded ? "the program does not run" : "running the program without recording";
    say_printable(fmt::format("{}; {}", created.error().message, what));
    return recording;
  }
  recording.recorder = std::move(*created);
  recording.environment = recording.recorder->environment();
  const LaunchEnvironment added = launch_environment(
      library, {.preload = !recorder_options.manual, .driver = options.driver, .behind = options.preload});
  recording.environment.insert(recording.environment.end(), added.variables.begin(), added.variables.end());
  if (!added.other_injection.empty()) {
    say_printable(
        fmt::format("{} is set by another tool ({}): CUDA driver memory is not recorded; unset it for --driver on",
                    ring::kInjectionVariable, added.other_injection));
  }
  return recording;
}

}  // namespace

void say_printable(const std::string& message) {
  say(printable(message));
}

int record_program(const ProgramOptions& options, const std::function<void(const Recorder&)>& at_end,
                   const std::function<int(const ChildProcess&)>& exit_code) {
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
  recorder_options.samples.outsider = child.witness();
  const auto library = find_preload_library();
  if (!library) return fail(library.error().message);
  Recording recording;
  try_to([&] { recording = start_recording(recorder_options, options, *library); });
  std::unique_ptr<Recorder>& recorder = recording.recorder;
  if (recorder == nullptr && options.only_recorded) return kError;
  std::vector<std::string>& environment = recording.environment;
  environment.insert(environment.end(), options.environment.begin(), options.environment.end());

  child.start(options.command, environment, options.prepare);
  if (!child) {
    say_printable(child.error().message);
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
    if (options.watch && !child.ended()) options.watch(child);
  }
  if (options.ended) options.ended(child);
  wait_for_stderr_at_most(kPatienceAtTheEnd);
  if (recorder != nullptr) {
    try_to([&] {
      recorder->finish(std::chrono::seconds(2));
      at_end(*recorder);
    });
    recorder = nullptr;  // removes the socket
  }
  try_to(say_dropped);
  return exit_code(child);
}

}  // namespace tidemark::cli
