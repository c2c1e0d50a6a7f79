// Peak use of a device between two samples of it, derived from the memory of recorded processes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <utility>

namespace tidemark {

/// For one device, from the samples and processes of one recorder, with times of one clock. In an interval between two
/// samples, all other use of the device is assumed constant at its value at the first sample, `used - sum of the
/// processes' memory`, as long as the second sample allows that. The peak is the sum of this and the highest total of
/// the processes. It is a lower bound: it never exceeds the true peak, unless other use decreased within the interval
/// before the processes grew. If a change is so close to a sample that the sample may include it or not, other use is
/// the lesser of this and the previous sample's; so a change is not counted twice.
///
/// Not thread-safe. Memory is bounded.
class DevicePeaks {
 public:
  using Process = std::uint64_t;

  /// Memory of a process on the device from this time on. `bytes` is exact at that time, and an upper bound later: some
  /// may have been released. `least_bytes` is a lower bound. Times of one process do not decrease.
  void take(Process process, std::uint64_t time_ns, std::uint64_t bytes, std::uint64_t least_bytes);
  /// The process has ended.
  void end(Process process, std::uint64_t time_ns);
  /// Samples that are not later than the latest one are dropped: several recordings contain the same.
  void sample(std::uint64_t time_ns, std::uint64_t used_bytes);
  /// Samples taken between these times may include later changes, or miss earlier ones.
  void doubt(std::uint64_t from_ns, std::uint64_t to_ns);
  /// A process's memory was unknown before: intervals that begin before this time are ignored.
  void begin_anew(std::uint64_t time_ns);

  /// All changes up to this time have been added.
  void settle(std::uint64_t until_ns);
  /// There are no more samples: changes after the latest one count as well.
  void finish();

  /// The peak since the last call; std::nullopt if none was found.
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
    std::optional<Steps::iterator> latest = {};  ///< std::nullopt: it is counted already
    std::uint64_t latest_ns = 0;
    std::uint64_t latest_bytes = 0;
  };
  struct Sample {
    std::uint64_t time_ns = 0;
    std::uint64_t used_bytes = 0;
  };
  /// Begins at a sample.
  struct Interval {
    std::uint64_t begin_ns = 0;
    std::int64_t others = 0;             ///< other use of the device at the sample
    std::optional<std::int64_t> before;  ///< other use at the previous sample; std::nullopt: unknown
    bool in_doubt = false;
    std::optional<std::int64_t> highest;  ///< highest total of the processes; std::nullopt: no change
  };

  void count_until(std::uint64_t time_ns);
  void count(std::uint64_t time_ns, const Step& step);
  void next_interval(const Sample& sample);
  /// Other use of the device in the interval that ends.
  [[nodiscard]] std::optional<std::int64_t> end_interval();
  void found(std::int64_t bytes);

  std::map<Process, Known> processes_;
  Steps steps_;  // not counted yet
  std::deque<Sample> samples_;
  std::deque<std::pair<std::uint64_t, std::uint64_t>> doubts_;
  std::optional<std::uint64_t> sampled_ns_;  // time of the latest sample
  std::int64_t sum_ = 0;                     // memory of the processes, as far as it is counted
  std::int64_t least_sum_ = 0;
  std::uint64_t counted_ns_ = 0;
  std::uint64_t anew_ns_ = 0;
  std::optional<std::uint64_t> fell_ns_;
  std::optional<Interval> interval_;
  std::optional<std::uint64_t> peak_;
};

}  // namespace tidemark
