// tidemark recorder: records a program that is running already and has started it, as the Python package does. Not for
// interactive use, so help does not list it.
//
// It leaves the program's process group and session, so that no Ctrl-C reaches it, and is no child of the program, so
// that the program's own waiting for children ignores it. It ends at the end of its stdin, or at any input there, and
// with the program. It prints one JSON object per line to stdout,
//   {"pid": 4711, "environment": ["NAME=value", ...]}   it listens; these are the settings for tidemark_connect()
//   {"recording": "run.tide"}                the program has connected, or
//   {"error": "..."}                         cannot be recorded
//   {"files": [{"path": "run.tide", "pid": 4711, "events": 12, "dropped": 0, "bytes": 4096, "failed": false}]}
// and the messages of `tidemark run` to stderr.
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/scoped_fd.h"
#include "base/standard_streams.h"
#include "cli/command.h"
#include "cli/record_program.h"
#include "cli/recording_options.h"
#include "collect/recorder/process_facts.h"
#include "launch/environment.h"

namespace tidemark::cli {
namespace {

using Json = nlohmann::ordered_json;
using namespace std::chrono_literals;

// Time for other processes of the program to end with it. If it continues, they may as well.
constexpr std::chrono::milliseconds kPatience = 2s;
constexpr std::chrono::milliseconds kPatienceOfTheProgram = 100ms;

struct Options {
  RecordingOptions given;
  std::uint64_t program = 0;
};

/// The process that requested the recording.
class Program {
 public:
  explicit Program(pid_t pid) : pid_(pid), pidfd_(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0))) {}

  /// Readable when it has ended; -1 if the kernel has no such descriptors.
  [[nodiscard]] int descriptor() const { return pidfd_.get(); }

  [[nodiscard]] bool ended() const {
    pollfd entry{pidfd_.get(), POLLIN, 0};
    return pidfd_ ? ::poll(&entry, 1, 0) == 1 : ::kill(pid_, 0) != 0 && errno == ESRCH;
  }

 private:
  pid_t pid_;
  ScopedFd pidfd_;
};

void tell(const Json& message) {
  // Without a reader the recording continues: another program may read its files.
  static_cast<void>(write_stdout(message.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n"));
  static_cast<void>(flush_stdout());
}

// Afterwards only the program's end, or its request, ends the recording.
void leave_program() {
  ::setsid();
  for (const int signal : {SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGPIPE, SIGALRM, SIGUSR1, SIGUSR2, SIGTSTP, SIGTTIN,
                           SIGTTOU, SIGXFSZ, SIGXCPU}) {
    ::signal(signal, SIG_IGN);
  }
  ::fcntl(STDOUT_FILENO, F_SETFL, ::fcntl(STDOUT_FILENO, F_GETFL) | O_NONBLOCK);
  wait_for_stderr_at_most(0s);
  raise_descriptor_limit();
}

void tell_beginning(const Recorder& recorder, bool& told) {
  if (told) return;
  const std::vector<std::string> open = recorder.open_files();
  if (!open.empty()) {
    tell({{"recording", open.front()}});
  } else if (recorder.unrecorded().count > 0) {
    tell({{"error", recorder.unrecorded().reason}});
  } else {
    return;
  }
  told = true;
}

int record(Recorder& recorder, const Program& program, const std::string& library) {
  std::vector<std::string> environment = recorder.environment();
  for (const std::string& variable : launch_environment(library, {.preload = false}).variables) {
    environment.push_back(variable);
  }
  tell({{"pid", ::getpid()}, {"environment", environment}});
  bool told = false;
  bool asked_to_stop = false;
  while (!asked_to_stop && !program.ended()) {
    std::array<pollfd, 2> others{{{STDIN_FILENO, POLLIN, 0}, {program.descriptor(), POLLIN, 0}}};
    recorder.poll_once(others);
    asked_to_stop = others[0].revents != 0;
    tell_beginning(recorder, told);
  }
  recorder.finish(asked_to_stop && !program.ended() ? kPatienceOfTheProgram : kPatience);
  Json files = Json::array();
  for (const RecordedFile& file : recorder.files()) {
    files.push_back({{"path", file.path},
                     {"pid", file.pid},
                     {"events", file.event_count},
                     {"dropped", file.dropped_count},
                     {"bytes", file.bytes},
                     {"failed", file.failed}});
  }
  tell({{"files", files}});
  return kOk;
}

int run(const Options& options) {
  RecorderOptions recorder_options = options.given.recorder_options();
  const auto pid = static_cast<pid_t>(options.program);
  if (::getppid() != pid) return fail("the program that wanted to be recorded has ended");
  const Program program(pid);
  auto free = check_free(recorder_options,
                         "name another file, or ask for it to be replaced (Python: force=True; C++: replace)");
  if (!free) return fail(free.error().message);
  const std::string unwritable = unwritable_reason(recorder_options.output);
  if (!unwritable.empty()) return fail(unwritable);
  const auto library = find_preload_library();
  if (!library) return fail(library.error().message);
  const pid_t child = ::fork();
  if (child > 0) ::_exit(kOk);
  if (child < 0) return fail("no process for the recorder can be made");

  leave_program();
  recorder_options.manual = true;
  recorder_options.samples.first_process = pid;
  recorder_options.samples.outsider = ::getpid();
  auto recorder = Recorder::create(recorder_options, say_printable);
  if (!recorder) return fail(recorder.error().message);
  return record(**recorder, program, *library);
}

}  // namespace

std::function<int()> setup_recorder(CommandLine& app) {
  auto options = std::make_shared<Options>();
  options->given.add_to(app);
  app.add_flag("-f,--force", options->given.recorder.overwrite,
               "Replace existing recordings that no other run is writing");
  app.add_option("--program", options->program, "Process that starts this one and wants to be recorded")
      ->type_name("PID")
      ->required();
  return [options] { return run(*options); };
}

}  // namespace tidemark::cli
