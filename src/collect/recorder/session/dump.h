// Kept parts of a job, written as recordings: the reason, the files, and the thread that writes them.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "base/enum_names.h"
#include "collect/recorder/live/kept_folder.h"
#include "trace/definitions.h"
#include "trace/host_sample.h"
#include "trace/window_writer.h"

namespace tidemark {

enum class DumpReason : std::uint8_t { device_oom, host_oom, signal, exit_code, request };
inline constexpr EnumName<DumpReason> kDumpReasonNames[] = {{DumpReason::device_oom, "device_oom"},
                                                            {DumpReason::host_oom, "host_oom"},
                                                            {DumpReason::signal, "signal"},
                                                            {DumpReason::exit_code, "exit_code"},
                                                            {DumpReason::request, "request"}};
/// Whether somebody asked for it: it reports no failure.
[[nodiscard]] constexpr bool is_asked_for(DumpReason reason) {
  return reason == DumpReason::signal || reason == DumpReason::request;
}

struct DumpedFile {
  std::string path;
  std::optional<std::int64_t> pid;
  std::uint64_t event_count = 0;
  std::uint64_t oom_count = 0;
  std::uint64_t bytes = 0;
  std::uint64_t duration_ns = 0;  ///< from the beginning to the end of the window
};

struct Dump {
  DumpReason reason = DumpReason::signal;
  std::string request;  ///< the id of DumpReason::request
  std::vector<DumpedFile> files;
  std::vector<std::string> errors;  ///< for recordings that could not be written: their segments stay in place
  std::string left_in;              ///< the folder where they stay; empty if none do
  // For host_oom.
  std::vector<KilledProcess> killed;    ///< processes of the job; without times
  std::uint64_t unexplained_kills = 0;  ///< if `killed` is empty: kills counted by the control group
  std::string cgroup;                   ///< its folder; empty without one
  std::vector<std::string> verdict;     ///< lines made by DumpOptions::describe
};

/// A dump is written when one of these happens.
struct DumpTriggers {
  bool on_oom = false;
  bool on_signal = false;
  bool on_exit_code = false;
};

struct KeepOptions {
  WindowLimits limits;  ///< for each process
  DumpTriggers dump;
  /// Called on the thread that writes dumps, once the files are there.
  std::function<std::vector<std::string>(const Dump&)> describe = {};
};

/// The kept part of one process.
struct KeptWindow {
  ProcessInfo process;
  SegmentFiles files;
};

/// Joins segments on a thread of its own: they may be gigabytes, and the rings must be drained meanwhile. Owned and
/// called by one thread.
class DumpWriter {
 public:
  DumpWriter() = default;
  ~DumpWriter() { wait(); }
  DumpWriter(const DumpWriter&) = delete;
  DumpWriter& operator=(const DumpWriter&) = delete;

  /// Waits for the previous dump to finish. `output`: the path for its first process, as for OutputFiles. `folder`:
  /// where the segments are.
  void start(Dump dump, std::vector<KeptWindow> windows, std::string output, bool overwrite, std::string folder,
             std::function<std::vector<std::string>(const Dump&)> describe);
  [[nodiscard]] bool busy() const { return thread_.joinable() && !ready_; }
  /// The latest dump, once it is written.
  [[nodiscard]] std::optional<Dump> take();
  void wait();

 private:
  std::thread thread_;
  std::atomic<bool> ready_ = false;
  std::optional<Dump> dump_;  // owned by the thread until it is ready
};

}  // namespace tidemark
