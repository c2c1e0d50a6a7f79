// Follows what the recorders of this machine write: what the allocators of the recorded processes hold, with the peaks
// between two looks, and the last part of each recording for the analyses that files have.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
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

/// What the allocator of one device holds for a recorded process. The CPU's keeps no totals: its recorded allocations
/// and frees are added up, of a part that is kept with the blocks that were alive when it begins.
struct RecordedDevice {
  Device device;
  std::string key;  ///< of the WatchedDevice; empty where it cannot be told
  std::uint64_t allocated_bytes = 0;
  std::optional<std::uint64_t> reserved_bytes;  ///< none on the CPU
  // Since watching began; peaks are true ones.
  WatchedUsage allocated{256};
  WatchedUsage reserved{256};
  RunningValue unused_share;               ///< 1 - allocated / reserved, at each sample
  std::uint64_t peak_allocated_bytes = 0;  ///< since the sample before
  std::uint64_t peak_reserved_bytes = 0;

  // The most since watching began; none before the first sample.
  [[nodiscard]] std::optional<std::uint64_t> most_allocated() const { return most(allocated, peak_allocated_bytes); }
  [[nodiscard]] std::optional<std::uint64_t> most_reserved() const { return most(reserved, peak_reserved_bytes); }

 private:
  static std::optional<std::uint64_t> most(const WatchedUsage& used, std::uint64_t since) {
    return used.empty() ? std::nullopt : std::optional(used.peak_bytes() < since ? since : used.peak_bytes());
  }
};

/// How far what was read of a recording is behind what its program does. Nothing of this holds up what is allocated and
/// reserved: those come ahead of the events.
struct RecordingLag {
  std::uint64_t behind_bytes = 0;              ///< of the file, that one look was not enough for
  std::optional<double> behind_seconds = 0.0;  ///< of the program's time; none: the recording does not say
  std::uint64_t skipped_events = 0;            ///< that were never read, as far as the recording counts them
  /// Up to when they are missing: windows begin then, and what is known by events alone is of later; none: nowhere.
  std::optional<std::uint64_t> skipped_until_ns;
  /// What is allocated and reserved is read ahead of the events: it is that of now though these are late.
  bool has_newest_totals = false;

  /// What is known by events alone is that of some time ago.
  [[nodiscard]] bool is_late() const {
    return behind_bytes > 0 && behind_seconds.value_or(kLateSeconds) >= kLateSeconds;
  }
  /// What is allocated is that of some time ago too.
  [[nodiscard]] bool all_is_late() const { return is_late() && !has_newest_totals; }
  /// Worth a word.
  [[nodiscard]] bool is_known() const { return is_late() || skipped_until_ns.has_value(); }

  static constexpr double kLateSeconds = 2;
};

struct RecordedProcess {
  LiveRecording recording;
  FollowState state = FollowState::growing;
  std::string problem;     ///< why it is not read any further; else empty
  bool caught_up = false;  ///< what was recorded before watching began, or is read anew, has been read
  RecordingLag lag;
  /// Of training, as far as they were looked for and found; never fewer. None also where events were passed over.
  std::optional<std::uint64_t> steps;
  std::vector<RecordedDevice> devices;
  /// Page-locked memory of the host that it has from the CUDA driver, such as a DataLoader's with pin_memory; none
  /// where its calls of the driver are not recorded.
  std::optional<std::uint64_t> cuda_pinned_bytes;
  std::vector<KilledProcess> killed;   ///< of its job, by the kernel's OOM killer; the latest ones
  std::vector<RecordedOwners> owners;  ///< as of the latest update_owners(); the CPU's too
  /// Of what is allocated, as of the latest assess(), the CPU's too; sources are stacks by the value of their id.
  std::vector<std::pair<Device, LiveGrowths>> growths;

  /// Whether it is being written, and read: else what is here is of the past.
  [[nodiscard]] bool goes_on() const { return state == FollowState::growing && problem.empty(); }
  [[nodiscard]] const LiveGrowths* growth_on(Device device) const;
};

/// The page-locked memory that those that go on have from the CUDA driver; none where no recording has its calls.
[[nodiscard]] std::optional<std::uint64_t> cuda_pinned_bytes(const std::vector<RecordedProcess>& processes);

/// Owned and used by one thread. Neither programs nor recorders wait for it; one call reads for some 50 ms at most.
///
/// It does not fall behind programs that make events faster than it reads them: what is allocated and reserved, with
/// the peaks, is read ahead of the events (FrameScan), and where these are too late they are passed over up to the
/// latest place where a reader can begin. What is known by events alone, such as steps and windows, then has a gap, of
/// which RecordingLag tells. Recordings of earlier versions have no such places: of those the lag grows, and is told.
class RecordingsWatch {
 public:
  /// What bounds one call of update(), and how late events may be.
  struct Limits {
    std::chrono::nanoseconds time = std::chrono::milliseconds(50);  ///< for reading, of all recordings together
    std::uint64_t bytes = std::uint64_t{8} << 20;                   ///< of one recording
    double late_seconds = RecordingLag::kLateSeconds;               ///< later events are passed over
    /// What was recorded before watching began is read, where it is no more than this: training steps are in it.
    std::uint64_t past_bytes = std::uint64_t{64} << 20;
  };

  static constexpr std::size_t kMaxRecordings = 64;  ///< recordings

  /// What update_owners() needs of each recording: 2.4 MB at most, and 130 bytes for each live block.
  static constexpr SlidingWindow::Limits kOwnersWindow = {.length = std::chrono::seconds(30), .events = 30'000};

  /// `window`: what of the events is kept for window(), and to find training steps in; none: nothing. `most`:
  /// recordings at a time; for further ones, those that have ended are forgotten.
  RecordingsWatch(std::chrono::nanoseconds interval, std::optional<SlidingWindow::Limits> window,
                  std::size_t most = kMaxRecordings)
      : interval_(interval), window_(window), most_(most) {}

  /// From the next call of update() on.
  void set_limits(const Limits& limits) { limits_ = limits; }

  /// Reads what was written since the last call. `only_listed`: only of processes that the state lists.
  void update(const MachineState& state, bool only_listed);
  /// Has RecordedProcess::owners worked out anew, where that is due: every two seconds, less often where it would take
  /// more than a two-hundredth of the time. Needs a window.
  void update_owners();
  /// From now on, programs in Python are asked what storages they have, and then now and then, and when assess() is
  /// called, which are new since and who holds them (ObjectQuestions). Each answer holds a program up for some seconds
  /// where it has a million objects.
  void ask_for_objects() { asks_ = true; }
  /// Reads what there is, looks for training steps now, not when it is due, and says what grows: before a report. Waits
  /// for the answers of programs that have answered the first time and go on, 30 s at most.
  void assess();
  /// For those who watch for weeks: recordings that have ended are no longer among processes().
  void forget_ended();
  /// Whether every recorder that was found has told what it writes.
  [[nodiscard]] bool heard() const;
  /// Whether what was recorded before is read.
  [[nodiscard]] bool caught_up() const;

  /// In the order in which they were found; also those that have ended.
  [[nodiscard]] std::vector<RecordedProcess> processes() const;
  [[nodiscard]] std::size_t count() const { return followed_.size(); }
  /// One of them, by its position; until the next update.
  [[nodiscard]] const RecordedProcess& process(std::size_t position) const { return followed_[position].process; }
  /// Of those that go on, where steps are known.
  [[nodiscard]] std::vector<ProcessSteps> steps() const;
  /// What was found since the last call of what was used of devices between their samples.
  [[nodiscard]] std::vector<RecordedPeak> take_peaks() { return peaks_.take(); }
  /// What a program had answered last at the latest assess(), by position in processes(); an error that is a clause:
  /// why there is nothing.
  [[nodiscard]] Result<ObjectAnswer> objects(std::size_t position) const;
  /// What a recording, by position in processes(), has defined so far; of its marks those of the window.
  [[nodiscard]] const Definitions& definitions(std::size_t position) const {
    return definitions_of(followed_[position]);
  }
  /// The last part of a recording, by position in processes(); a window was asked for. Without attribution.
  [[nodiscard]] Store window(std::size_t position) const;
  /// Where that begins, as SlidingWindow has it.
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
    std::optional<std::uint64_t> start;          // start_of() its process; none: not seen from here
    std::unique_ptr<ObjectQuestions> questions;  // null: not asked
    bool ran_at_assessment = false;
    std::map<std::int8_t, std::string> uuids;  // of GPUs, by their number in the program
    std::optional<std::uint64_t> sampled_at_ns;
    std::uint64_t taken_until_ns = 0;            // what is read again is not counted again
    std::uint64_t cpu_bytes = 0;                 // allocated on the CPU, as far as was read
    std::uint64_t read_until_ns = 0;             // time of the latest event that was read
    std::uint64_t newest_ns = 0;                 // time of the latest event that the recording tells of
    std::optional<std::uint64_t> pinned_bytes;   // as far as was read
    std::optional<std::uint64_t> past_bytes;     // to be read when it was found
    std::optional<std::uint64_t> anew_after_ns;  // what is read anew begins now: what was read before ended then
    std::uint64_t skipped_before = 0;            // events, with followers before this one
    std::vector<SampleRecord> sampled_devices;   // for peaks that begin anew
  };

  [[nodiscard]] static bool is_of(const Followed& followed, const LiveRecording& recording);
  [[nodiscard]] bool can_be_forgotten(const Followed& followed) const;
  void update_recorders();
  [[nodiscard]] bool is_running(const Followed& followed) const;
  void find(const MachineState& state, bool only_listed);
  void follow(const LiveRecording& recording, const std::string& socket);
  [[nodiscard]] RecordedPeaks::Recording begin_peaks(const Followed& followed);
  bool read_anew(Followed& followed, bool latest);
  void read_newest(Followed& followed, std::chrono::steady_clock::time_point until);
  /// False where there is nothing more for now.
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
  std::map<std::string, LiveRecorder> recorders_;  // by socket
  std::vector<Followed> followed_;
  RecordedPeaks peaks_;
  std::optional<std::chrono::steady_clock::time_point> found_at_;
  bool asks_ = false;
  Pace steps_pace_{std::chrono::seconds(2), 20};
};

}  // namespace tidemark
