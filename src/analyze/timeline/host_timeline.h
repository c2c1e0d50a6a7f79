// Memory of the recorded process on the host over time, as sampled.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "analyze/timeline/host_usage.h"
#include "store/samples.h"

namespace tidemark {

/// A value from `time_ns` until the next.
struct TimedBytes {
  std::uint64_t time_ns = 0;
  std::uint64_t bytes = 0;
};

/// A value that was sampled again and again: the lowest and highest sample of each stretch of the run, and the last.
struct SampledOverTime : SampledBytes {
  std::vector<TimedBytes> points;  ///< in order of time; not empty
};

/// Resident pages of the process by what they hold, from `time_ns` until the next.
struct ResidentPoint {
  std::uint64_t time_ns = 0;
  std::uint64_t anon_bytes = 0;
  std::uint64_t file_bytes = 0;
  std::uint64_t shmem_bytes = 0;

  [[nodiscard]] std::uint64_t bytes() const { return anon_bytes + file_bytes + shmem_bytes; }
};

/// None where no sample has the value; one of them is there.
struct HostTimeline {
  std::optional<SampledOverTime> rss;  ///< pages that processes share count in each of them
  std::optional<SampledOverTime> pss;  ///< likewise as 1/n; sampled more rarely

  /// The samples of `rss` that are kept, where they say what it holds: about as many. Empty: none do.
  std::vector<ResidentPoint> resident = {};

  /// Of the last sample that is kept.
  [[nodiscard]] std::uint64_t end_ns() const;
};

/// `points`: about so many of each value at most, at least 4. None where the samples hold neither value.
[[nodiscard]] std::optional<HostTimeline> host_timeline(const HostSeries& series, std::size_t points);

}  // namespace tidemark
