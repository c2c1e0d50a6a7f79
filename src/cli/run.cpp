// tidemark run: starts a program so that it is recorded, and is the recorder until it ends.
#include <fmt/format.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <map>
#include <memory>

#include "base/units.h"
#include "cli/child_process.h"
#include "cli/command.h"
#include "cli/preload_library.h"
#include "collect/recorder/recorder.h"
#include "collect/ring/layout.h"

namespace tidemark::cli {
namespace {

struct RunOptions {
  RecorderOptions recorder;
  double sample_interval_ms = 100;
  bool no_samples = false;
  std::string driver = "off";
  bool manual = false;
  bool quiet = false;
  std::vector<std::string> command;
};

void say(const std::string& message) {
  fmt::print(stderr, "tidemark: {}\n", message);
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

// Why a recording could not be written to `path`, or an empty string.
std::string why_unwritable(const std::string& path) {
  const auto parent = std::filesystem::path(path).parent_path();
  const std::string folder = parent.empty() ? "." : parent.string();
  if (::access(folder.c_str(), W_OK | X_OK) == 0) return "";
  return fmt::format("cannot write to {}: {}", folder, std::strerror(errno));
}

// What makes the CUDA driver load `library`. Another tool's library that is to be loaded there stays.
void add_driver_variable(const std::string& library, std::vector<std::string>& environment) {
  const char* other = std::getenv(ring::kInjectionVariable);
  if (other == nullptr || *other == '\0') {
    environment.push_back(fmt::format("{}={}", ring::kInjectionVariable, library));
    return;
  }
  say(
      fmt::format("{} names the library of another tool ({}): the memory of the CUDA driver is not recorded; unset it "
                  "for --driver on",
                  ring::kInjectionVariable, other));
}

void summarize(const Recorder& recorder) {
  std::vector<RecordedFile> files = recorder.files();
  if (files.empty()) return say("nothing was recorded: " + recorder.why_nothing());
  std::sort(files.begin(), files.end(), [](const auto& a, const auto& b) { return a.path < b.path; });
  std::string names;
  for (const RecordedFile& file : files) {
    if (names.size() < 200) names += " " + file.path;
    say(fmt::format("{}: {} events of process {}, {}{}", file.path, format_count(file.event_count), file.pid,
                    format_bytes(file.bytes), file.failed ? " (stopped early)" : ""));
    if (file.dropped_count > 0) {
      say(fmt::format("{}: {} events were lost; the reports say so too", file.path, format_count(file.dropped_count)));
    }
  }
  say(fmt::format("see where the memory went: tidemark summary{}", names));
}

int run(const RunOptions& options) {
  RecorderOptions recorder_options = options.recorder;
  if (recorder_options.output.empty()) recorder_options.output = default_output(options.command);
  if (!recorder_options.overwrite && std::filesystem::exists(recorder_options.output)) {
    return fail(fmt::format("{} exists; give another name with -o, or --force to replace it", recorder_options.output));
  }
  recorder_options.samples.enabled = !options.no_samples;
  recorder_options.samples.interval = std::chrono::nanoseconds(std::llround(options.sample_interval_ms * 1e6));
  std::vector<std::string> environment;
  std::unique_ptr<Recorder> recorder;
  auto library = preload_library();
  if (!library) return fail(library.error().message);
  const std::string unwritable = why_unwritable(recorder_options.output);
  auto created = unwritable.empty() ? Recorder::create(recorder_options, say)
                                    : Result<std::unique_ptr<Recorder>>(Error{unwritable});
  if (created) {
    recorder = std::move(*created);
    environment = recorder->environment();
    environment.push_back("TIDEMARK_LIBRARY=" + *library);
    if (!options.manual) environment.push_back(preload_variable(*library));
    if (options.driver == "on") add_driver_variable(*library, environment);
  } else {
    say(fmt::format("{}; the program runs without being recorded", created.error().message));
  }

  ChildProcess child = ChildProcess::start(options.command, environment);
  if (!child) {
    say(child.error().message);
    return child.exit_code_if_not_started();
  }
  while (!child.ended()) {
    pollfd signals{child.signal_fd(), POLLIN, 0};
    if (recorder != nullptr) {
      recorder->poll_once({&signals, 1});
    } else {
      ::poll(&signals, 1, -1);
    }
    if (signals.revents != 0) child.handle_signals();
  }
  if (recorder != nullptr) {
    recorder->finish(std::chrono::seconds(2));
    if (!options.quiet) summarize(*recorder);
    recorder = nullptr;  // removes the socket
  }
  return child.pass_on_status();
}

}  // namespace

std::function<int()> setup_run(CommandLine& app) {
  auto options = std::make_shared<RunOptions>();
  RecorderOptions& recorder = options->recorder;
  app.add_option("-o,--output", recorder.output,
                 "Recording of the first process that allocates; others get names made from it "
                 "(FILE.rank1.tide, FILE.pid4711.tide) [PROGRAM-DATE-TIME.tide]")
      ->type_name("FILE");
  app.add_option("--stacks", recorder.stack_mode, "Which stacks to record with each allocation")
      ->one_of("none|python|native|both")
      ->show_default();
  app.add_option("--max-size", recorder.max_file_bytes, "Stop recording when a file reaches this size, e.g. 500MB, 2GB")
      ->bytes()
      ->type_name("SIZE");
  app.add_option("--sample-interval", options->sample_interval_ms,
                 "How often to read the devices' memory and the host's, e.g. 50ms, 2s")
      ->milliseconds(1, 3600'000)
      ->type_name("TIME");
  app.add_flag("--no-samples", options->no_samples, "Do not read devices and the host");
  app.add_option(
         "--driver", options->driver,
         "Whether to record what every library takes from the CUDA driver too (NCCL, cuBLAS, ...); takes CUPTI's "
         "one subscription, so that other profilers cannot")
      ->one_of("on|off")
      ->show_default();
  app.add_flag("-f,--force", recorder.overwrite, "Replace existing recordings");
  app.add_flag("--manual", options->manual,
               "Do not preload the collector: the program loads the library named in TIDEMARK_LIBRARY and calls "
               "tidemark_attach() itself");
  app.add_flag("-q,--quiet", options->quiet, "No closing lines on stderr");
  app.add_option("command", options->command, "Program and its arguments")->required()->type_name("PROGRAM ARGS...");
  app.ends_with_a_program();
  app.footer(
      "The program is not changed: its input, output, signals and exit code are its own.\n\n"
      "Examples:\n"
      "  tidemark run -- python train.py --epochs 3\n"
      "  tidemark run -o run.tide --stacks both -- python train.py\n"
      "  tidemark run -o run.tide --driver on -- python train.py    # then: tidemark ledger run.tide\n"
      "  tidemark run -o job.tide -- torchrun --nproc-per-node 8 train.py");
  return [options] { return run(*options); };
}

}  // namespace tidemark::cli
