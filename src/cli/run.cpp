// tidemark run: starts a program so that it is recorded, and is the recorder until it ends.
#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/units.h"
#include "cli/reading.h"
#include "cli/record_program.h"
#include "cli/recording_options.h"
#include "query/words/printable.h"

namespace tidemark::cli {
namespace {

constexpr std::size_t kMaxListed = 10;  // recordings, at the end

struct RunOptions {
  ProgramOptions program;
  RecordingOptions given;
  KeepArguments keep;
  std::string driver = "off";
  bool quiet = false;
};

void say_unrecorded(const Recorder& recorder) {
  const Unrecorded& unrecorded = recorder.unrecorded();
  if (unrecorded.count == 0 || recorder.files().empty()) return;  // summarize() reports why nothing was recorded
  say_printable(fmt::format(
      "{} not recorded: {}",
      unrecorded.count == 1 ? "1 process was" : fmt::format("{} processes were", unrecorded.count), unrecorded.reason));
}

void summarize(const Recorder& recorder) {
  std::vector<RecordedFile> files = recorder.files();
  if (files.empty()) return say_printable("nothing was recorded: " + recorder.no_recording_reason());
  // The main process, the ranks in their order, and then files named by pid.
  std::sort(files.begin(), files.end(), [](const auto& a, const auto& b) {
    return std::pair(a.path.size(), a.path) < std::pair(b.path.size(), b.path);
  });
  std::string names;
  RecordedFile others;  // the unlisted ones, together
  std::uint64_t dropped = 0;
  for (std::size_t index = 0; index < files.size(); ++index) {
    const RecordedFile& file = files[index];
    dropped += file.dropped_count;
    if (index >= kMaxListed) {
      others.event_count += file.event_count;
      others.bytes += file.bytes;
      continue;
    }
    if (names.size() < 200) names += " " + file.path;
    say_printable(fmt::format("{}: {} events of process {}, {}{}", file.path, format_count(file.event_count), file.pid,
                              format_bytes(file.bytes), file.failed ? " (stopped early)" : ""));
  }
  if (files.size() > kMaxListed) {
    say_printable(fmt::format("and {} more recordings: {} events, {}", format_count(files.size() - kMaxListed),
                              format_count(others.event_count), format_bytes(others.bytes)));
  }
  if (dropped > 0)
    say_printable(fmt::format("{} events were lost; see data quality in the reports", format_count(dropped)));
  say_printable(fmt::format("to see the peak memory: tidemark summary{}", names));
}

// An option behind the program is the program's; the name of a recording is rarely meant for it.
void say_misplaced_output(const std::vector<std::string>& command) {
  const auto option =
      std::ranges::find_if(command, [](const std::string& word) { return word == "-o" || word == "--output"; });
  if (option == command.end() || std::next(option) == command.end() || !std::next(option)->ends_with(".tide")) return;
  say_printable(fmt::format(
      "{} {} stood behind the program, which got it; before it, it names the recording: tidemark run {} {} -- PROGRAM",
      *option, *std::next(option), *option, shell_word(*std::next(option))));
}

void say_kept_in_vain(const Recorder& recorder) {
  if (recorder.files().empty()) return say_printable("nothing was recorded: " + recorder.no_recording_reason());
  if (recorder.has_unrequested_window())
    say_printable("nothing happened that --dump names: what was kept has been deleted");
}

int run(RunOptions& options, const CommandLine& app) {
  ProgramOptions& program = options.program;
  program.driver = options.driver == "on";
  program.recorder = options.given.recorder_options();
  auto keep = options.keep.options(app);
  if (!keep) return fail(keep.error().message);
  program.recorder.keep = std::move(*keep);
  const auto at_end = [&](const Recorder& recorder) {
    say_unrecorded(recorder);
    if (options.quiet) return;
    program.recorder.keep ? say_kept_in_vain(recorder) : summarize(recorder);
    say_misplaced_output(program.command);
  };
  return record_program(program, at_end, [](const ChildProcess& child) { return child.pass_on_status(); });
}

}  // namespace

std::function<int()> setup_run(CommandLine& app) {
  auto options = std::make_shared<RunOptions>();
  ProgramOptions& program = options->program;
  RecorderOptions& recorder = options->given.recorder;
  options->given.add_to(app);
  options->keep.add_to(app);
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
  app.add_option("PROGRAM", program.command, "Program and its arguments")->required();
  app.ends_with_a_program();
  app.footer(
      "The program keeps its own input, output, signals and exit code. A recording can be read while the program runs: "
      "it contains everything up to about one second ago. tidemark summary --follow and timeline --follow print again "
      "while it grows.\n\n"
      "Examples:\n"
      "  tidemark run -- python train.py --epochs 3\n"
      "  tidemark run -o run.tide --stacks both -- python train.py\n"
      "  tidemark run -o run.tide --driver on -- python train.py\n"
      "  tidemark run --keep 10min,2GiB --dump on-oom,on-signal -- python train.py\n"
      "  tidemark run -o job.tide -- torchrun --nproc-per-node 8 train.py");
  return [options, &app] { return run(*options, app); };
}

}  // namespace tidemark::cli
