// Follows the recordings in progress on this machine: the memory of the recorded processes' allocators, with the peaks
// between two updates, and the most recent part of each recording for analyses.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "collect/recorder/live/live_recordings.h"
#include "collect/recorder/sampling/sample_taker.h"
#include "follow/follower.h"
#include "follow/sliding_window.h"
#include "follow/step_sources.h"
#include "monitor/machine_state.h"
#include "monitor/object_question.h"
#include "monitor/recorded_peaks.h"
#include "monitor/watched_usage.h"
#include "trace/event.h"

namespace tidemark {

/// Memory of a recorded process in the allocator of one device. The CPU's allocator has no totals: its recorded
/// allocations and frees are summed, for a kept window with the blocks that were alive when it begins.
struct RecordedDevice {
  Device device;
  std::string key;  ///< of the WatchedDevice; empty if unknown
  std::uint64_t allocated_bytes = 0;
  std::optional<std::uint64_t> reserved_bytes;  ///< std::nullopt on the CPU
  // Since watching began; peaks are exact.
  WatchedUsage allocated{256};
  WatchedUsage reserved{256};
  RunningValue unused_share;               ///< 1 - allocated / reserved, at each sample
  std::uint64_t peak_allocated_bytes = 0;  ///< since the previous sample
  std::uint64_t peak_reserved_bytes = 0;

  // The peak since watching began; std::nullopt before the first sample.
  [[nodiscard]] std::optional<std::uint64_t> most_allocated() const { return most(allocated, peak_allocated_bytes); }
  [[nodiscard]] std::optional<std::uint64_t> most_reserved() const { return most(reserved, peak_reserved_bytes); }

 private:
  static std::optional<std::uint64_t> most(const WatchedUsage& used, std::uint64_t since) {
    return used.empty() ? std::nullopt : std::optional(used.peak_bytes() < since ? since : used.peak_bytes());
  }
};

/// How far the reader of a recording is behind its program. Allocated and reserved bytes are not affected: they are
/// read ahead of the events.
struct RecordingLag {
  std::uint64_t behind_bytes = 0;              ///< bytes of the file left after an update
  std::optional<double> behind_seconds = 0.0;  ///< of the program's time; std::nullopt: not recorded
  std::uint64_t skipped_events = 0;            ///< never read, as far as the recording counts them
  /// End of the missing part: windows begin there, and values from events alone are of later times; std::nullopt: none.
  std::optional<std::uint64_t> skipped_until_ns;
  /// Allocated and reserved bytes are read ahead of the events: they are current although events are late.
  bool has_newest_totals = false;

  /// Values from events alone are outdated.
  [[nodiscard]] bool is_late() const {
    return behind_bytes > 0 && behind_seconds.value_or(kLateSeconds) >= kLateSeconds;
  }
  /// Allocated bytes are outdated too.
  [[nodiscard]] bool all_is_late() const { return is_late() && !has_newest_totals; }
  /// Whether to report it.
  [[nodiscard]] bool is_known() const { return is_late() || skipped_until_ns.has_value(); }

  static constexpr double kLateSeconds = 2;
};

struct RecordedProcess {
  LiveRecording recording;
  FollowState state = FollowState::growing;
  std::string problem;     ///< why it is no longer read; else empty
  bool caught_up = false;  ///< data from before watching began, or from before a new beginning, has been read
  RecordingLag lag;
  /// Training steps found so far; never decreases. std::nullopt also if events were skipped.
  std::optional<std::uint64_t> steps;
  std::vector<RecordedDevice> devices;
  /// Page-locked host memory from the CUDA driver, such as a DataLoader's with pin_memory; std::nullopt if its driver
  /// calls are not recorded.
  std::optional<std::uint64_t> cuda_pinned_bytes;
  std::vector<KilledProcess> killed;   ///< processes of its job ended by the kernel's OOM killer; the latest ones
  std::vector<RecordedOwners> owners;  ///< at the latest update_owners(); including the CPU's
  /// Growth of allocated memory at the latest assess(), including the CPU's; sources are stacks by the value of their
  /// id.
  std::vector<std::pair<Device, LiveGrowths>> growths;

  /// Whether it is being written, and read: otherwise its values are of the past.
  [[nodiscard]] bool goes_on() const { return state == FollowState::growing && problem.empty(); }
  [[nodiscard]] const LiveGrowths* growth_on(Device device) const;
};

/// What a recording or its recorder told once while it was followed.
struct RecordedIncident {
  enum class Kind : std::uint8_t {
    failed_request,  ///< PyTorch's allocator could not serve a request
    killed,          ///< the kernel's OOM killer ended a process of the job
    dump,            ///< a flight recorder wrote a recording, or could not
  };
  Kind kind = Kind::failed_request;
  std::int64_t pid = -1;    ///< the process; -1: of a dump
  std::string device;       ///< of a failed request: WatchedDevice::key, else "cuda:0"
  std::uint64_t bytes = 0;  ///< of a failed request
  std::string process;      ///< the killed one's name
  LiveDump dump;
};

/// The page-locked memory from the CUDA driver of recordings in progress; std::nullopt if no recording has its calls.
[[nodiscard]] std::optional<std::uint64_t> cuda_pinned_bytes(const std::vector<RecordedProcess>& processes);

/// Owned and used by one thread. Neither programs nor recorders wait for it; one call reads for at most some 50 ms.
///
/// It does not fall behind programs that make events faster than it reads them: allocated and reserved bytes, with the
/// peaks, are read ahead of the events (FrameScan), and events that are too late are skipped up to the latest place at
/// which a reader can begin. Values from events alone, such as steps and windows, then have a gap, described by
/// RecordingLag. Recordings of earlier versions have no such places: their lag grows, and is reported.
class RecordingsWatch {
 public:
  /// Limits of one call of update(), and of the lag.
  struct Limits {
    std::chrono::nanoseconds time = std::chrono::milliseconds(50);  ///< reading time of all recordings together
    std::uint64_t bytes = std::uint64_t{8} << 20;                   ///< for one recording
    double late_seconds = RecordingLag::kLateSeconds;               ///< later events are skipped
    /// Data from before watching began is read if it is at most this large, to find training steps.
    std::uint64_t past_bytes = std::uint64_t{64} << 20;
  };

  static constexpr std::size_t kMaxRecordings = 64;  ///< recordings
  static constexpr std::size_t kMaxIncidents = 64;

  /// The window of each recording for update_owners(): at most 2.4 MB, and 130 bytes for each live block.
  static constexpr SlidingWindow::Limits kOwnersWindow = {.length = std::chrono::seconds(30), .events = 30'000};

  /// `window`: events kept for window(), and to find training steps; std::nullopt: none. `most`: recordings at a time;
  /// when there are more, those that have ended are forgotten.
  RecordingsWatch(std::chrono::nanoseconds interval, std::optional<SlidingWindow::Limits> window,
                  std::size_t most = kMaxRecordings);

  /// From the next call of update() on.
  void set_limits(const Limits& limits) { limits_ = limits; }

  /// Reads the data written since the last call. `only_listed`: only of processes that the state lists.
  void update(const MachineState& state, bool only_listed);
  /// Updates RecordedProcess::owners if due: every two seconds, less often if it would take more than a two-hundredth
  /// of the time. Needs a window.
  void update_owners();
  /// From now on, Python programs are asked for their storages, and then now and then, and in assess(), for new ones
  /// and their owners (ObjectQuestions). Each answer stops a program for a few seconds if it has a million objects.
  void ask_for_objects() { asks_ = true; }
  /// For a report: reads the available data, looks for training steps now, and updates growth. Waits at most 30 s for
  /// the answers of running programs that have answered the first request.
  void assess();
  /// For monitoring over weeks: recordings that have ended are removed from processes().
  void forget_ended();
  /// Whether every recorder found has sent its list.
  [[nodiscard]] bool heard() const;
  /// Whether all earlier data is read.
  [[nodiscard]] bool caught_up() const;

  /// In the order in which they were found; including ended ones.
  [[nodiscard]] std::vector<RecordedProcess> processes() const;
  [[nodiscard]] std::size_t count() const { return followed_.size(); }
  /// One of them, by its position; valid until the next update.
  [[nodiscard]] const RecordedProcess& process(std::size_t position) const { return followed_[position].process; }
  /// Of recordings in progress with known steps.
  [[nodiscard]] std::vector<ProcessSteps> steps() const;
  /// The peaks of devices between their samples found since the last call.
  [[nodiscard]] std::vector<RecordedPeak> take_peaks() { return peaks_.take(); }
  /// What happened since the last call, and since watching began: at most kMaxIncidents, the others are left out.
  [[nodiscard]] std::vector<RecordedIncident> take_incidents() { return std::exchange(incidents_, {}); }
  /// Asks the flight recorder of a recorded process for a dump; an incident with this request follows. The error is a
  /// clause.
  Result<void> ask_for_dump(std::int64_t pid, std::string_view request);
  /// The flight recorder of a recorded process; the error, a clause, says that it has none.
  [[nodiscard]] Result<std::string> recorder_of(std::int64_t pid) const;
  /// A program's latest answer at the latest assess(), by position in processes(); the error is a clause.
  [[nodiscard]] Result<ObjectAnswer> objects(std::size_t position) const;
  /// Definitions of a recording so far, by position in processes(); only marks in the window.
  [[nodiscard]] const Definitions& definitions(std::size_t position) const {
    return definitions_of(followed_[position]);
  }
  /// The most recent part of a recording, by position in processes(); requires a window. Without attribution.
  [[nodiscard]] Store window(std::size_t position) const;
  /// Beginning of that window, see SlidingWindow.
  [[nodiscard]] std::uint64_t window_begin_ns(std::size_t position) const;

 private:
  struct Followed {
    RecordedProcess process;
    std::string folder;  // of its recorder
    RecordedPeaks::Recording recording = 0;
    std::unique_ptr<Follower> follower;  // null: it could not be opened
    std::optional<SlidingWindow> window;
    StepSources sources;
    bool read_since = false;                     // sources.take()
    std::optional<std::uint64_t> start;          // start_of() its process; std::nullopt: not visible here
    std::unique_ptr<ObjectQuestions> questions;  // null: not asked
    bool ran_at_assessment = false;
    std::map<std::int8_t, std::string> uuids;  // UUIDs of GPUs, by their number in the program
    std::optional<std::uint64_t> sampled_at_ns;
    std::uint64_t taken_until_ns = 0;            // data that is read again is not counted again
    std::uint64_t cpu_bytes = 0;                 // allocated on the CPU, as far as it was read
    std::uint64_t read_until_ns = 0;             // time of the latest event that was read
    std::uint64_t newest_ns = 0;                 // time of the latest event recorded
    std::optional<std::uint64_t> pinned_bytes;   // as far as it was read
    std::optional<std::uint64_t> past_bytes;     // to be read when it was found
    std::optional<std::uint64_t> anew_after_ns;  // end of the previous reading; set until a new reading begins
    std::uint64_t skipped_before = 0;            // events, with earlier followers
    std::vector<SampleRecord> sampled_devices;   // for peaks after a new beginning
  };

  [[nodiscard]] static bool is_of(const Followed& followed, const LiveRecording& recording);
  [[nodiscard]] bool can_be_forgotten(const Followed& followed) const;
  void update_recorders();
  void take_dumps(const std::string& socket, const LiveRecorder& recorder);
  void add_incident(RecordedIncident incident);
  [[nodiscard]] bool is_new(const Followed& followed) const;
  [[nodiscard]] bool is_running(const Followed& followed) const;
  void find(const MachineState& state, bool only_listed);
  void follow(const LiveRecording& recording, const std::string& socket);
  [[nodiscard]] RecordedPeaks::Recording begin_peaks(const Followed& followed);
  bool read_anew(Followed& followed, bool latest);
  void read_newest(Followed& followed, std::chrono::steady_clock::time_point until);
  /// False if there is nothing more for now.
  bool read(Followed& followed);
  void scan_ahead(Followed& followed);
  void pass_over(Followed& followed);
  [[nodiscard]] bool is_too_late(const Followed& followed) const;
  void begin_anew(Followed& followed);
  void catch_up();
  [[nodiscard]] bool is_told(const Followed& followed) const;
  static RecordedDevice& device_of(Followed& followed, Device device);
  static void take(Followed& followed, const RunningTotals& totals);
  static void take(Followed& followed, const Event& event);
  static void count_pinned(std::optional<std::uint64_t>& pinned, const Event& event);
  void see_gap(Followed& followed, const Event& event) const;
  [[nodiscard]] static bool is_same(const Followed& followed, Device device, const WatchedDevice& watched);
  void sample(Followed& followed, const MachineState& state) const;
  void take_steps();
  void ask(Followed& followed) const;
  void await_answers();
  [[nodiscard]] static const Definitions& definitions_of(const Followed& followed);
  [[nodiscard]] static Store window_of(const Followed& followed);

  Limits limits_;
  std::chrono::nanoseconds interval_;
  std::optional<SlidingWindow::Limits> window_;
  std::size_t most_;
  Pace owners_pace_{std::chrono::seconds(2), 200};
  std::map<std::string, LiveRecorder> recorders_;    // by socket
  std::map<std::string, std::uint64_t> told_dumps_;  // by socket: the number of the latest one
  std::vector<RecordedIncident> incidents_;
  std::uint64_t began_wall_ns_ = 0;
  std::vector<Followed> followed_;
  RecordedPeaks peaks_;
  std::optional<std::chrono::steady_clock::time_point> found_at_;
  bool asks_ = false;
  Pace steps_pace_{std::chrono::seconds(2), 20};
};

}  // namespace tidemark
