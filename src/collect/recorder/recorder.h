// The recorder of a job: accepts the processes that connect, drains them, and ends their recordings when they end.
//
// Runs in the process of `tidemark run`, on one thread (samples are read on another, see sample_taker.h), and never
// blocks on a recorded process. It keeps at most one file and a few file descriptors for each process.
#pragma once

#include <poll.h>
#include <sys/types.h>

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "base/scoped_fd.h"
#include "collect/recorder/live/live_recordings.h"
#include "collect/recorder/live/socket_folder.h"
#include "collect/recorder/oom_watch.h"
#include "collect/recorder/reception.h"
#include "collect/recorder/sampling/sample_taker.h"
#include "collect/recorder/session/dump.h"
#include "collect/recorder/session/output_files.h"
#include "collect/recorder/session/session.h"

namespace tidemark {

class Notices {
 public:
  enum class Kind : std::uint8_t { not_recorded, stopped, size_limit, still_running };

  /// `say` receives one-line messages.
  explicit Notices(std::function<void(const std::string&)> say) : say_(std::move(say)) {}

  void say(const std::string& message) const { say_(message); }
  /// Prints the first few messages of a kind and counts the others.
  void say(Kind kind, const std::string& message);
  /// Prints how many others there were.
  void say_counts();

 private:
  std::function<void(const std::string&)> say_;
  std::array<std::size_t, 4> counts_{};
};

struct RecorderOptions {
  std::string output;                 ///< path of the first recording
  bool overwrite = false;             ///< replace existing files
  std::uint64_t max_file_bytes = 0;   ///< for each file; 0 = no limit
  std::string stack_mode = "python";  ///< none, python, native or both
  bool attribute = true;              ///< also record modules, tensors of the model and autograd nodes
  bool paused = false;                ///< processes record nothing until they resume
  bool manual = false;                ///< the program loads the collector itself
  std::uint32_t seccomp_filters = 0;  ///< seccomp filters installed on the program when it is started
  SampleOptions samples = {};
  std::optional<KeepOptions> keep = {};  ///< keep only the most recent part, and write it on a trigger
};

/// A finished recording.
struct RecordedFile {
  std::string path;
  pid_t pid = 0;
  std::uint64_t event_count = 0;
  std::uint64_t dropped_count = 0;
  std::uint64_t bytes = 0;
  bool failed = false;  ///< writing stopped early
};

/// Processes that requested recording and are not recorded.
struct Unrecorded {
  std::uint64_t count = 0;
  std::string reason;  ///< for the first process
};

class Recorder {
 public:
  /// `say` receives one-line messages for the user.
  static Result<std::unique_ptr<Recorder>> create(RecorderOptions options, std::function<void(const std::string&)> say);
  ~Recorder();
  Recorder(const Recorder&) = delete;
  Recorder& operator=(const Recorder&) = delete;

  /// Variables ("NAME=value") that a program needs to be recorded, besides LD_PRELOAD.
  [[nodiscard]] std::vector<std::string> environment() const;

  /// Waits for something to do, at most until the rings should be read again, and does it. `others` are polled too;
  /// their `revents` are set.
  void poll_once(std::span<pollfd> others);

  // If only the most recent part is kept, until finish():
  /// Requests a dump of the windows kept so far.
  void dump_for_signal();
  /// Dumps that have been written since the last call.
  [[nodiscard]] std::vector<Dump> take_dumps() { return std::exchange(dumps_, {}); }
  /// After finish(): the program has ended with this exit code, or by a signal if std::nullopt. Writes the dump due
  /// then, and waits.
  void program_ended(std::optional<int> exit_code);
  /// Whether kept recordings were left without a requested dump.
  [[nodiscard]] bool has_unrequested_window() const { return has_unrequested_window_; }

  /// Ends all recordings: recordings of processes that end within `grace` as complete; the other processes are told to
  /// stop.
  void finish(std::chrono::milliseconds grace);

  /// Paths of the recordings in progress, the oldest first.
  [[nodiscard]] std::vector<std::string> open_files() const;

  [[nodiscard]] const std::vector<RecordedFile>& files() const { return files_; }

  [[nodiscard]] const Unrecorded& unrecorded() const { return unrecorded_; }

  /// Why nothing was recorded, as a sentence; call it if files() is empty.
  [[nodiscard]] std::string no_recording_reason() const;

 private:
  struct Client {
    ScopedFd pidfd;  ///< readable once the process has ended; invalid if unavailable
    pid_t pid = 0;
    std::unique_ptr<Session> session;
    std::string path;
    std::string command;             ///< for people: the command of the process
    WindowWriter* window = nullptr;  ///< the session's, if only the most recent part is kept
    std::uint64_t oom_count = 0;     ///< the session's count at the last check
  };
  /// The kept window of a process that has ended.
  struct Retired {
    KeptWindow window;
    std::chrono::steady_clock::time_point ended;
  };

  Recorder(RecorderOptions options, std::function<void(const std::string&)> say, SocketFolder folder, ScopedFd listener,
           ScopedFd readers);

  void admit(ScopedFd memory, pid_t pid);
  /// Ends the recording of an earlier image of the process, or of an earlier process with its PID. False if there is
  /// none.
  bool end_earlier_image(pid_t pid);
  /// The process is gone, and had not ended its recording.
  void record_exit_reason(const Client& client);
  void note_filtered();
  void not_recorded(pid_t pid, const std::string& why);
  void take_samples();
  void name_workers(HostPartsSample& sample) const;
  void add_killed(KilledProcess killed, std::uint64_t ticks);
  void drain(Client& client, bool was_stopped);
  void say_stopped(const Client& client, const std::string& why);
  void say_size_limit(const Client& client);
  void end(Client& client, bool exited);
  void end_exited();
  void notify_readers();
  /// The file of a new process, or the first segment of its window.
  Result<std::unique_ptr<RecordingWriter>> open_writer(const ProcessInfo& process, Client& client);

  // recorder_dumps.cpp
  /// Whether a request of the process has failed since the last check.
  static bool has_failed(Client& client);
  void note_oom();
  void note_killed(const KilledProcess& killed);
  void find_failures();
  void dump_if_due();
  [[nodiscard]] bool may_dump() const;
  /// False if there is nothing to write.
  bool dump(DumpReason reason, const std::string& request = "");
  /// As readers ask.
  void dump_for_request(const std::string& request);
  void tell_of_dump(LiveDump dump);
  void take_written_dump();
  void retire(Client& client);
  void forget_retired();

  RecorderOptions options_;
  Notices notices_;
  TickClock clock_;
  OutputFiles outputs_;
  Sampler sampler_;
  std::optional<OomWatch> oom_watch_;  ///< with samples, or if only the most recent part is kept
  std::optional<Reading> devices_;     ///< once the sampler has found them
  SocketFolder folder_;
  Reception reception_;
  LiveClients readers_;
  std::vector<Client> clients_;
  std::vector<RecordedFile> files_;
  Unrecorded unrecorded_;
  int idle_polls_ = 0;

  // If only the most recent part is kept.
  std::shared_ptr<KeptFolder> kept_folder_;
  std::vector<Retired> retired_;
  std::vector<Dump> dumps_;
  LiveDumps told_dumps_;
  std::uint64_t told_dump_count_ = 0;
  std::optional<std::chrono::steady_clock::time_point> last_request_;
  int dump_count_ = 0;
  std::optional<std::chrono::steady_clock::time_point> last_oom_;
  std::optional<std::chrono::steady_clock::time_point> first_oom_;  ///< a dump for it is due
  std::vector<KilledProcess> killed_;                               ///< a dump for them is due
  std::chrono::steady_clock::time_point first_killed_;
  std::optional<std::chrono::steady_clock::time_point> last_dump_;  ///< the last dump that was not requested
  bool has_unrequested_window_ = false;
  bool finished_ = false;
  DumpWriter dump_writer_;  // ends first
};

}  // namespace tidemark
