// The last part of a recording that goes on and on, as a Store: every analysis of files runs on it unchanged.
//
// Kept are the events of the last while, and the blocks that were alive when it began. The Store begins with these
// blocks, allocated when they really were, inside a pause from the recording's start to the window's beginning: what
// happened then and is over is not in it (see trace/live_blocks.h, by which the flight recorder's files begin alike).
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

/// Takes events and samples in order, as Follower gives them. Not thread-safe. Memory: some 80 bytes for each event in
/// the window and 130 for each block alive at its beginning.
class SlidingWindow {
 public:
  struct Limits {
    std::chrono::nanoseconds length = std::chrono::minutes(1);  ///< by the times of events and samples
    std::size_t events = 500'000;                               ///< at most; then the window is shorter
    /// Training steps, at most, where who has the window knows them and forgets what was before; 0: any number.
    std::size_t steps = 0;
  };

  explicit SlidingWindow(Limits limits) : limits_(limits) {}

  void add(const Event& event);
  void add_sample(const SampleRecord& record);
  /// Events are missing before those that come now, which begin with what was alive then. Samples stay.
  void begin_anew();
  /// Time passes without events: the recording has come this far.
  void pass(std::uint64_t now_ns);
  /// From the next event on. What has left already does not come back.
  void set_limits(Limits limits) { limits_ = limits; }
  /// Makes the window shorter: what was before is not needed any more.
  void forget_before(std::uint64_t begin_ns) { leave(begin_ns); }

  /// Where the window begins: 0 as long as nothing has left it, and the recording is no window itself.
  [[nodiscard]] std::uint64_t begin_ns() const { return begin_ns_; }
  [[nodiscard]] std::size_t event_count() const { return events_.size(); }

  /// Builds the window anew, in time that grows with its events. `definitions` are the recording's up to now; marks
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
  std::deque<SampleRecord> devices_;  ///< SampledDevice only: they are defined for good
  std::deque<SampleRecord> samples_;
  std::uint64_t begin_ns_ = 0;
  std::uint64_t now_ns_ = 0;
  bool left_ = false;  ///< something has left the window
};

}  // namespace tidemark
