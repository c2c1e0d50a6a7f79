// How much of a device was used at most between two samples of it, from what recorded processes took of it meanwhile.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <utility>

namespace tidemark {

/// Of one device, by the samples and processes of one recorder, whose times are of one clock. In an interval between
/// two samples, what else uses the device is taken for what it was at the first one, `used - sum of what the processes
/// had`, as long as the second one allows that much. So the most that was used is that and the most that the processes
/// had at one time. It is a lower bound: never more than what was used, unless what else uses the device went down
/// within the interval before the processes went up. Where a change is so close to a sample that this may have it or
/// not, what else was used is the less of this and of the sample before; so a change is not counted twice.
///
/// Not thread-safe. Memory is bounded.
class DevicePeaks {
 public:
  using Process = std::uint64_t;

  /// What a process has of the device from a time on. `bytes` is exact at that time, and later what it had latest: it
  /// may have given some of it back. `least_bytes` it has for sure. Times of one process do not decrease.
  void take(Process process, std::uint64_t time_ns, std::uint64_t bytes, std::uint64_t least_bytes);
  /// The process has ended.
  void end(Process process, std::uint64_t time_ns);
  /// Samples that are not later than the latest one are dropped: several recordings have the same.
  void sample(std::uint64_t time_ns, std::uint64_t used_bytes);
  /// Samples that were taken between these times may have changes of later, or not yet those of before.
  void doubt(std::uint64_t from_ns, std::uint64_t to_ns);
  /// Who takes what has not been known before: no interval that begins before this time says anything.
  void begin_anew(std::uint64_t time_ns);

  /// All was told that happened until then.
  void settle(std::uint64_t until_ns);
  /// There will be no other sample: what was told after the latest one counts as well.
  void finish();

  /// The most since the last call; none where nothing was found.
  [[nodiscard]] std::optional<std::uint64_t> take_peak();

 private:
  struct Step {
    Process process = 0;
    std::uint64_t bytes = 0;
    std::uint64_t least_bytes = 0;
    bool last = false;
  };
  using Steps = std::multimap<std::uint64_t, Step>;
  struct Known {
    std::uint64_t bytes = 0;
    std::uint64_t least_bytes = 0;
    std::optional<Steps::iterator> latest = {};  ///< none: it counts already
    std::uint64_t latest_ns = 0;
    std::uint64_t latest_bytes = 0;
  };
  struct Sample {
    std::uint64_t time_ns = 0;
    std::uint64_t used_bytes = 0;
  };
  /// From a sample on.
  struct Interval {
    std::uint64_t begin_ns = 0;
    std::int64_t others = 0;             ///< what else uses the device, by the sample
    std::optional<std::int64_t> before;  ///< by the one before; none: not known
    bool in_doubt = false;
    std::optional<std::int64_t> highest;  ///< that the processes had at one time; none: nothing changed
  };

  void count_until(std::uint64_t time_ns);
  void count(std::uint64_t time_ns, const Step& step);
  void next_interval(const Sample& sample);
  /// What else used the device in the interval that ends.
  [[nodiscard]] std::optional<std::int64_t> end_interval();
  void found(std::int64_t bytes);

  std::map<Process, Known> processes_;
  Steps steps_;  // that are not counted yet
  std::deque<Sample> samples_;
  std::deque<std::pair<std::uint64_t, std::uint64_t>> doubts_;
  std::optional<std::uint64_t> sampled_ns_;  // the latest one
  std::int64_t sum_ = 0;                     // of what the processes have, as far as it is counted
  std::int64_t least_sum_ = 0;
  std::uint64_t counted_ns_ = 0;
  std::uint64_t anew_ns_ = 0;
  std::optional<std::uint64_t> fell_ns_;
  std::optional<Interval> interval_;
  std::optional<std::uint64_t> peak_;
};

}  // namespace tidemark
