// The processes of one job side by side: the maximum memory of each, and outliers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "analyze/common/recording_info.h"
#include "analyze/usage/summary.h"
#include "base/result.h"
#include "trace/event.h"

namespace tidemark {

/// A GPU that a process allocated on beside the one that it used most.
struct OtherGpu {
  Device device;
  std::uint64_t peak_allocated_bytes = 0;
  NamedStack stack;  ///< the call site that held most at that peak
  /// Rank of the device: the rank with its highest use, on the same machine, if no two ranks of that machine have their
  /// highest use on one GPU. nullopt: no rank's.
  std::optional<std::int32_t> rank = {};
};

/// One recording. Peaks are of `device`.
struct RankRow {
  std::size_t index = 0;  ///< of the recording among the given ones
  RecordingInfo recording;
  bool child = false;            ///< a DataLoader worker, or started by another one of the processes
  std::optional<bool> chosen;    ///< Summary::chosen
  std::optional<Device> device;  ///< the GPU with the highest peak allocated, else the CPU; nullopt: nothing was
                                 ///< allocated
  std::uint64_t peak_allocated_bytes = 0;
  std::optional<std::uint64_t> peak_reserved_bytes;
  std::optional<std::uint64_t> device_used_bytes;  ///< reported by the driver, at its peak; nullopt without samples
  std::vector<OtherGpu> other_gpus;                ///< GPUs by number
  bool out_of_memory = false;                      ///< on any device
  std::optional<double> difference;                ///< of the peak allocated to the median, as a share of the median
  bool outlier = false;
};

/// Comparable processes: all main processes with a device of one type, or all child processes with one.
struct RankGroup {
  DeviceType type = DeviceType::cuda;
  bool children = false;
  std::size_t count = 0;
  std::uint64_t median_bytes = 0;  ///< of the peaks allocated; of an even number the mean of the middle two
  std::uint64_t limit_bytes = 0;   ///< an outlier differs from the median by more

  /// Fewer than three processes have no outlier.
  [[nodiscard]] bool has_outliers() const { return count >= 3; }
};

struct RankComparison {
  std::vector<RankRow> rows;      ///< by rank, rows without one last; main processes before their children
  std::vector<RankGroup> groups;  ///< in order of the rows
};

[[nodiscard]] RankRow rank_row(std::size_t index, const Summary& summary);

/// Outliers are those of OutlierLimit; see also RankGroup::has_outliers().
[[nodiscard]] RankComparison compare_ranks(std::vector<RankRow> rows);

/// The summaries of several processes.
struct JobSummary {
  std::optional<RankComparison> ranks;    ///< nullopt for a single recording
  std::vector<const Summary*> summaries;  ///< in the order of the table; the summaries shown in detail
};

/// Fails, listing the available ranks, if the requested rank is not among them.
Result<void> check_rank(const std::vector<RankRow>& rows);

/// Details of the requested rank, else of all if there are at most `detailed`. `summaries` has to outlive the result.
[[nodiscard]] Result<JobSummary> compare_summaries(const std::vector<Summary>& summaries, std::size_t detailed);

}  // namespace tidemark
