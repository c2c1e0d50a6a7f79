// The samples of one memory, in bounded room: recent ones as they came, older ones joined.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace tidemark {

/// How much was used at a time.
struct UsageSample {
  std::uint64_t time_ns = 0;  ///< of a monotonic clock, in ascending order
  std::uint64_t used_bytes = 0;
  std::optional<std::uint64_t> peak_bytes;  ///< maximum since the previous sample, if a recorder observed it
  std::optional<std::uint64_t> steps;       ///< training steps completed by then; nullopt if unknown
};

inline constexpr double kNanosecondsPerSecond = 1e9;

/// Samples that follow each other.
struct UsageSpan {
  std::uint64_t from_ns = 0;  ///< of the first one
  std::uint64_t to_ns = 0;    ///< of the last one
  std::uint64_t peak_bytes = 0;
  std::uint64_t floor_bytes = 0;
  std::uint64_t last_bytes = 0;  ///< used at the last one
  std::uint64_t samples = 0;
  std::optional<std::uint64_t> steps;  ///< at the last one
  std::uint64_t recorded_peaks = 0;    ///< samples with a peak that a recorder saw
};

/// A stretch of the history, cut into cells of equal length in time.
struct UsageGrid {
  double cell_seconds = 0;
  std::vector<double> peaks;   ///< by cell; a cell without a sample has the last value of the previous one
  std::vector<double> floors;  ///< minimum by cell, filled in the same way
};

/// Not for charts, which need the same resolution at all times (monitor/watched_usage.h): here older data is
/// coarser. A sample is merged at a cost independent of the number of samples. Data of age t is kept in spans of about
/// t / 128 at any sampling rate; three weeks at 10 Hz are 1,750 spans, 136 KiB.
class UsageHistory {
 public:
  /// A sample older than the latest one is dropped. A sample with fewer steps than the latest one restarts the history.
  void add(const UsageSample& sample);

  [[nodiscard]] bool empty() const { return samples_ == 0; }
  [[nodiscard]] std::uint64_t samples() const { return samples_; }
  [[nodiscard]] const UsageSpan& latest() const { return levels_.front().back(); }
  [[nodiscard]] std::uint64_t from_ns() const { return from_ns_; }
  [[nodiscard]] double span_seconds() const;
  [[nodiscard]] std::size_t span_count() const;

  /// All, the oldest first.
  [[nodiscard]] std::vector<UsageSpan> spans() const;

 private:
  std::vector<std::vector<UsageSpan>> levels_;  // a span of level k has 2^k samples; oldest first; level 0 comes last
  std::uint64_t samples_ = 0;
  std::uint64_t from_ns_ = 0;
};

/// Usage in `spans` (oldest first, not empty) from `from_ns` until their end. A span belongs to the cell of its middle.
[[nodiscard]] UsageGrid cut_into_cells(std::span<const UsageSpan> spans, std::uint64_t from_ns, std::size_t cells);

}  // namespace tidemark
