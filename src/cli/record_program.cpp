#include "cli/record_program.h"

#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <ctime>
#include <exception>
#include <filesystem>
#include <memory>
#include <new>
#include <optional>
#include <utility>

#include "analyze/ledger/replay.h"
#include "analyze/oom/explain.h"
#include "analyze/usage/table.h"
#include "base/standard_streams.h"
#include "cli/command.h"
#include "cli/recording_options.h"
#include "collect/recorder/process_facts.h"
#include "collect/ring/layout.h"
#include "import/open.h"
#include "launch/environment.h"
#include "query/recording.h"
#include "query/words/printable.h"
#include "report/explain/verdict.h"

namespace tidemark::cli {
namespace {

// Their blocks take some 1.2 GB while they are read, perhaps on a machine that has just run out of memory.
constexpr std::uint64_t kMaxEvents = 15'000'000;
constexpr std::size_t kMaxFiles = 3;

// A program has the one of who recorded it, unless it sets another.
std::optional<std::uint64_t> address_space_limit() {
  ::rlimit limit{};
  if (::getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return std::nullopt;
  return limit.rlim_cur;
}

std::vector<std::string> device_verdict(const DumpedFile& file) {
  auto store = open_attributed(file.path);
  if (!store) return {store.error().message};
  Symbols symbols(store->definitions);
  ExplainOptions options;
  options.attribution = store->attribution.get();
  auto explanation = analyze_explain(*store, symbols, options);
  return explanation ? device_oom_lines(*explanation, address_space_limit())
                     : std::vector<std::string>{explanation.error().message};
}

std::vector<std::string> host_verdict(const Dump& dump, const DumpedFile* file) {
  HostOomFacts facts;
  for (const KilledProcess& killed : dump.killed) facts.kills.push_back({killed, {}});
  facts.unexplained_kills = dump.unexplained_kills;
  facts.cgroup = dump.cgroup;
  if (file == nullptr || file->event_count > kMaxEvents) return host_oom_lines(facts, nullptr);
  auto store = open_attributed(file->path);
  if (!store) return host_oom_lines(facts, nullptr);
  // As in the recording, which adds the breakdown of the memory. A recording that ended before contains none.
  for (const HostKill& kill : collect_host(*store).kills) {
    for (HostKill& known : facts.kills) {
      if (known.killed.process.pid == kill.killed.process.pid) known = kill;
    }
  }
  Symbols symbols(store->definitions);
  TableOptions options;
  options.at.kind = Moment::Kind::end;
  options.device = "cpu";
  const auto held = analyze_table(*store, symbols, options);
  return host_oom_lines(facts, held ? &*held : nullptr);
}

std::vector<std::string> other_verdict(const Dump& dump, const DumpedFile& file) {
  const auto overview = open_overview(file.path);
  if (!overview) return {overview.error().message};
  const char* const why = dump.reason == DumpReason::signal    ? "SIGUSR1"
                          : dump.reason == DumpReason::request ? "the job's command"
                                                               : "";
  return held_lines(*overview, why);
}

// The recording to explain: of a failed request, of a killed process, else the first.
const DumpedFile* file_to_explain(const Dump& dump) {
  const auto killed = [&](const DumpedFile& file) {
    return std::any_of(dump.killed.begin(), dump.killed.end(),
                       [&](const KilledProcess& process) { return process.process.pid == file.pid; });
  };
  for (const DumpedFile& file : dump.files) {
    if (dump.reason == DumpReason::host_oom ? killed(file) : file.oom_count > 0) return &file;
  }
  return dump.files.empty() ? nullptr : &dump.files.front();
}

std::vector<std::string> cause_lines(const Dump& dump, const DumpedFile* file) {
  if (dump.reason == DumpReason::host_oom) return host_verdict(dump, file);
  if (file == nullptr) return {};
  const bool failed_request = file->oom_count > 0 && !is_asked_for(dump.reason);
  if (failed_request && file->event_count > kMaxEvents) {
    return {unexplained_oom_line(file->path)};
  }
  return failed_request ? device_verdict(*file) : other_verdict(dump, *file);
}

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

// A reader of stderr may resume when the program has ended; the wait is limited.
constexpr std::chrono::milliseconds kPatienceAtTheEnd = 1s;

void say_dropped() {
  const std::uint64_t dropped = dropped_messages();
  if (dropped == 0) return;
  say_printable(fmt::format("{} not written to stderr, which nobody read",
                            dropped == 1 ? "1 message was" : fmt::format("{} messages were", dropped)));
}

// An error in the recorder ends the recording, not the program. Returns false then.
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

/// A recorder, if it could be started, and the environment that makes a program recorded.
struct Recording {
  std::unique_ptr<Recorder> recorder;
  std::vector<std::string> environment;
};

Recording start_recording(const RecorderOptions& recorder_options, const ProgramOptions& options,
                          const std::string& library) {
  Recording recording;
  const std::string unwritable = unwritable_reason(recorder_options.output);
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

void say_dumps(Recorder& recorder) {
  for (const Dump& dump : recorder.take_dumps()) {
    for (const std::string& line : dump.verdict) say_printable(line);
  }
}

}  // namespace

std::vector<std::string> verdict_of(const Dump& dump) {
  std::vector<DumpedRecording> recordings;
  for (const DumpedFile& file : dump.files) {
    recordings.push_back({file.path, file.pid, file.duration_ns, file.event_count, file.bytes});
  }
  std::vector<std::string> errors;
  if (!dump.errors.empty()) errors.push_back(not_dumped_line(dump.errors.front(), dump.left_in));
  const std::vector<std::string> files = dumped_lines(recordings, kMaxFiles - errors.size());
  std::vector<std::string> lines = cause_lines(dump, file_to_explain(dump));
  lines.resize(std::min(lines.size(), kMaxVerdictLines - files.size() - errors.size()));
  lines.insert(lines.end(), files.begin(), files.end());
  lines.insert(lines.end(), errors.begin(), errors.end());
  return lines;
}

void say_printable(const std::string& message) {
  say(printable(message));
}

int record_program(const ProgramOptions& options, const std::function<void(const Recorder&)>& at_end,
                   const std::function<int(const ChildProcess&)>& exit_code) {
  ChildProcess child;  // first: from here on, only the program's end ends this process
  wait_for_stderr_at_most(0s);
  RecorderOptions recorder_options = options.recorder;
  if (recorder_options.output.empty()) {
    recorder_options.output = default_output(options.command);
  } else {
    auto free = check_free(recorder_options, "name another file with -o, or use --force to replace it");
    if (!free) return fail(free.error().message);
  }
  recorder_options.samples.outsider = child.witness();
  if (recorder_options.keep) {
    recorder_options.keep->describe = verdict_of;
    if (recorder_options.keep->dump.on_signal) child.keep_signal(SIGUSR1);
  }
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
    const bool asked = child.take_kept_signal();
    if (recorder != nullptr) {
      try_to([&] {
        if (asked) recorder->dump_for_signal();
        say_dumps(*recorder);
      });
    }
    if (options.watch && !child.ended()) options.watch(child);
  }
  if (options.ended) options.ended(child);
  wait_for_stderr_at_most(kPatienceAtTheEnd);
  if (recorder != nullptr) {
    try_to([&] {
      recorder->finish(std::chrono::seconds(2));
      recorder->program_ended(child.exit_code());
      say_dumps(*recorder);
      at_end(*recorder);
    });
    recorder = nullptr;  // removes the socket
  }
  try_to(say_dropped);
  return exit_code(child);
}

}  // namespace tidemark::cli
