// The most recent part of an endless recording, as a Store: every analysis of files runs on it unchanged.
//
// It keeps the events of the last while, and the blocks that were alive when it began. The Store begins with these
// blocks, with their true allocation times, inside a pause from the recording's start to the window's beginning: events
// that ended before are not in it (see trace/live_blocks.h, which also begins the flight recorder's files).
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>

#include "store/store.h"
#include "trace/event.h"
#include "trace/live_blocks.h"
#include "trace/sample.h"

namespace tidemark {

/// Takes events and samples in order, as Follower returns them. Not thread-safe. Memory: some 80 bytes for each event
/// in the window and 130 for each block alive at its beginning.
class SlidingWindow {
 public:
  struct Limits {
    std::chrono::nanoseconds length = std::chrono::minutes(1);  ///< by the times of events and samples
    std::size_t events = 500'000;                               ///< at most; more events make the window shorter
    /// At most this many training steps, if the caller calls forget_before(); 0: no limit.
    std::size_t steps = 0;
  };

  explicit SlidingWindow(Limits limits) : limits_(limits) {}

  void add(const Event& event);
  void add_sample(const SampleRecord& record);
  /// The next events begin with the live blocks after a gap. Samples stay.
  void begin_anew();
  /// Time passes without events: the recording has come this far.
  void pass(std::uint64_t now_ns);
  /// From the next event on. Events that have left the window do not return.
  void set_limits(Limits limits) { limits_ = limits; }
  /// Makes the window shorter, because earlier data is no longer needed.
  void forget_before(std::uint64_t begin_ns) { leave(begin_ns); }

  /// Beginning of the window: 0 while nothing has left it, unless the recording is itself a window.
  [[nodiscard]] std::uint64_t begin_ns() const { return begin_ns_; }
  [[nodiscard]] std::size_t event_count() const { return events_.size(); }

  /// Builds the window's Store, in time that grows with its events. `definitions` are the recording's up to now; marks
  /// before the window are left out.
  [[nodiscard]] Store store(std::string path, Definitions definitions) const;

 private:
  // A recording may begin with the blocks that were alive then, as a flight recorder's does.
  enum class Beginning : std::uint8_t { before, lead_in, behind };

  bool take_lead_in(const Event& event);
  void leave(std::uint64_t begin);

  Limits limits_;
  Beginning beginning_ = Beginning::before;
  LiveBlocks before_;  ///< the blocks alive at begin_ns_
  std::deque<Event> events_;
  std::deque<SampleRecord> devices_;  ///< SampledDevice only: their definitions are permanent
  std::deque<SampleRecord> samples_;
  std::uint64_t begin_ns_ = 0;
  std::uint64_t now_ns_ = 0;
  bool left_ = false;  ///< something has left the window
};

}  // namespace tidemark
