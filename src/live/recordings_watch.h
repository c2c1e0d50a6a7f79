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
#include <vector>

#include "analyze/attribution/attributed_store.h"
#include "collect/recorder/live_recordings.h"
#include "live/follower.h"
#include "live/machine_state.h"
#include "live/sliding_window.h"
#include "live/watched_usage.h"
#include "trace/event.h"

namespace tidemark {

/// What the allocator of one device holds for a recorded process. Only allocators that count are here: not the CPU's.
struct RecordedDevice {
  Device device;
  std::string key;  ///< of the WatchedDevice; empty where it cannot be told
  std::uint64_t allocated_bytes = 0;
  std::uint64_t reserved_bytes = 0;
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

struct RecordedProcess {
  LiveRecording recording;
  FollowState state = FollowState::growing;
  std::string problem;     ///< why it is not read any further; else empty
  bool caught_up = false;  ///< what was recorded before watching began has been read
  std::vector<RecordedDevice> devices;
};

/// Owned and used by one thread. Neither programs nor recorders wait for it; one call reads for some 50 ms at most.
class RecordingsWatch {
 public:
  static constexpr std::size_t kMost = 64;  ///< recordings

  /// `window`: what of the events is kept for window(); none: nothing.
  RecordingsWatch(std::chrono::nanoseconds interval, std::optional<SlidingWindow::Limits> window)
      : interval_(interval), window_(window) {}

  /// Reads what was written since the last call. `only_listed`: only of processes that the state lists.
  void update(const MachineState& state, bool only_listed);

  /// In the order in which they were found; also those that have ended.
  [[nodiscard]] std::vector<RecordedProcess> processes() const;
  /// The last part of a recording, by position in processes(); a window was asked for.
  [[nodiscard]] AttributedStore window(std::size_t position) const;

 private:
  struct Followed {
    RecordedProcess process;
    std::unique_ptr<Follower> follower;  // null: it could not be opened
    std::optional<SlidingWindow> window;
    std::map<std::int8_t, std::string> uuids;  // of GPUs, by their number in the program
    std::optional<std::uint64_t> sampled_at_ns;
    std::uint64_t taken_until_ns = 0;  // what is read again is not counted again
  };

  void find(const MachineState& state, bool only_listed);
  void follow(const LiveRecording& recording);
  void read_anew(Followed& followed);
  void read(Followed& followed);
  static void take(Followed& followed, const Event& event);
  void sample(Followed& followed, const MachineState& state) const;

  std::chrono::nanoseconds interval_;
  std::optional<SlidingWindow::Limits> window_;
  std::map<std::string, LiveRecorder> recorders_;  // by socket
  std::vector<Followed> followed_;
  std::optional<std::chrono::steady_clock::time_point> found_at_;
};

}  // namespace tidemark
