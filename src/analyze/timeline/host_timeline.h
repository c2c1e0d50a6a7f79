// Memory of the recorded process on the host over time, as sampled.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "store/samples.h"
#include "trace/sample.h"

namespace tidemark {

/// A value that was sampled again and again. Bytes.
struct SampledBytes {
  std::uint64_t peak = 0;
  std::uint64_t peak_at_ns = 0;  ///< the first time
  std::optional<std::uint64_t>
      end;                       ///< in the last sample that has it; nullopt if that is older than kStaleNs at the end
  std::uint64_t last_at_ns = 0;  ///< when that was taken
};

/// Values older than this at the last sample of the host do not describe the end. PSS is read every 5 s, or more rarely
/// if that takes long.
inline constexpr std::uint64_t kStaleNs = 10'000'000'000;

/// nullopt if no sample has the value. Peaks are the highest samples: usage in between may have been higher.
struct HostUsage {
  std::optional<SampledBytes> rss;  ///< of the recorded process: pages that processes share count in each
  std::optional<SampledBytes> pss;  ///< proportional set size: a page that n processes share counts as 1/n in each
  // Parts of the RSS by kind of page.
  std::optional<SampledBytes> anon;
  std::optional<SampledBytes> file;
  std::optional<SampledBytes> shmem;
  std::optional<SampledBytes> swap;    ///< of the recorded process, beyond its RSS
  std::optional<SampledBytes> locked;  ///< by mlock()
  std::optional<SampledBytes> pinned;  ///< by drivers that report it to the kernel; CUDA's is not included
  std::optional<SampledBytes> job_rss;
  std::optional<SampledBytes> job_pss;  ///< of all processes below `tidemark run`
  std::optional<SampledBytes> job_anon;
  std::optional<SampledBytes> job_file;
  std::optional<SampledBytes> job_shmem;
  std::optional<SampledBytes> job_swap;
  std::optional<SampledBytes> cgroup_usage;         ///< of the control group with the lowest limit around the recorder
  std::optional<std::uint64_t> cgroup_limit_bytes;  ///< in the last sample that has it
  std::optional<std::uint32_t> most_job_processes;
  std::uint64_t cgroup_oom_kills = 0;                   ///< while the program ran
  std::optional<std::uint64_t> lowest_available_bytes;  ///< on the machine: memory available to programs without
                                                        ///< swapping
  std::uint64_t lowest_available_at_ns = 0;             ///< the first time

  [[nodiscard]] bool empty() const { return !rss && !job_rss && !cgroup_usage; }
};

/// Collects samples of the host while they go by. Memory does not grow with them.
class HostUsageCollector {
 public:
  /// Ignores samples of anything else.
  void add(const SampleRecord& record);
  void add(const HostSample& sample);
  [[nodiscard]] HostUsage result() const;

 private:
  HostUsage memory_;
  std::uint64_t last_ns_ = 0;  // of the samples
  std::optional<std::uint64_t> first_oom_kills_;
};

/// The same of a store's samples.
[[nodiscard]] HostUsage host_usage(const HostSeries& series);

/// A value from `time_ns` until the next.
struct TimedBytes {
  std::uint64_t time_ns = 0;
  std::uint64_t bytes = 0;
};

/// A value that was sampled again and again: the lowest and highest sample of each stretch of the run, and the last.
struct SampledOverTime : SampledBytes {
  std::vector<TimedBytes> points;  ///< in order of time; not empty
};

/// Resident pages of the process by kind, from `time_ns` until the next point.
struct ResidentPoint {
  std::uint64_t time_ns = 0;
  std::uint64_t anon_bytes = 0;
  std::uint64_t file_bytes = 0;
  std::uint64_t shmem_bytes = 0;

  [[nodiscard]] std::uint64_t bytes() const { return anon_bytes + file_bytes + shmem_bytes; }
};

/// nullopt if no sample has the value; at least one is set.
struct HostTimeline {
  std::optional<SampledOverTime> rss;  ///< pages that processes share count in each of them
  std::optional<SampledOverTime> pss;  ///< proportional set size; sampled more rarely

  /// The kept samples of `rss` that have its parts: about as many. Empty: none have.
  std::vector<ResidentPoint> resident = {};

  /// Time of the last kept sample.
  [[nodiscard]] std::uint64_t end_ns() const;
};

/// `points`: maximum number of points of each value, approximately; at least 4. nullopt if the samples have neither
/// value.
[[nodiscard]] std::optional<HostTimeline> host_timeline(const HostSeries& series, std::size_t points);

}  // namespace tidemark
