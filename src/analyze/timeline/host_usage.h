// Memory of the host, as sampled while the program ran: what the process and its job held outside GPUs.
#pragma once

#include <cstdint>
#include <optional>

#include "store/samples.h"
#include "trace/sample.h"

namespace tidemark {

/// A value that was sampled again and again. Bytes.
struct SampledBytes {
  std::uint64_t peak = 0;
  std::uint64_t peak_at_ns = 0;  ///< the first time
  std::uint64_t end = 0;         ///< in the last sample that has it
};

/// None where no sample has the value. Peaks are the highest samples: in between there may have been more.
struct HostUsage {
  std::optional<SampledBytes> rss;  ///< of the recorded process: pages that processes share count in each
  std::optional<SampledBytes> pss;  ///< likewise: a page that n processes share counts as 1/n in each
  // Of the RSS, by what the pages hold.
  std::optional<SampledBytes> anon;
  std::optional<SampledBytes> file;
  std::optional<SampledBytes> shmem;
  std::optional<SampledBytes> swap;    ///< of the recorded process, beyond its RSS
  std::optional<SampledBytes> locked;  ///< by mlock()
  std::optional<SampledBytes> pinned;  ///< by drivers that the kernel knows of; CUDA's is not among them
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
  std::optional<std::uint64_t> lowest_available_bytes;  ///< on the machine: what programs could get without swapping
  std::uint64_t lowest_available_at_ns = 0;             ///< the first time

  [[nodiscard]] bool empty() const { return !rss && !job_rss && !cgroup_usage; }
};

/// Collects samples of the host while they go by. Memory does not grow with them.
class HostUsageCollector {
 public:
  /// Ignores samples of anything else.
  void add(const SampleRecord& record);
  void add(const HostSample& sample);
  [[nodiscard]] const HostUsage& result() const { return memory_; }

 private:
  HostUsage memory_;
  std::optional<std::uint64_t> first_oom_kills_;
};

/// The same of a store's samples.
[[nodiscard]] HostUsage host_usage(const HostSeries& series);

}  // namespace tidemark
