// From samples of a machine to the rows of a history: one a second for each memory and each process.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "monitor/machine_state.h"

namespace tidemark {

/// Whose memory it is.
struct HistoryKey {
  std::string device;  ///< the same tomorrow: UUID, PCI address, "host"
  std::string key;
  std::string name;
  std::int64_t pid = 0;  ///< 0: all of it
  std::string process;

  auto operator<=>(const HistoryKey&) const = default;
};

struct HistoryRow {
  HistoryKey key;
  std::int64_t time_ms = 0;
  std::int64_t span_ms = 0;
  std::int64_t high_bytes = 0;
  std::int64_t mean_bytes = 0;
  std::int64_t count = 0;  ///< of samples
  std::optional<std::int64_t> limit_bytes;
};

struct HistoryEvent {
  std::int64_t time_ms = 0;
  std::string device;
  std::string key;
  std::string before;
  std::string level;
  std::string assessment;
};

struct HistoryBatch {
  std::vector<HistoryRow> rows;
  std::vector<HistoryEvent> events;
};

/// One thread.
class HistoryCollector {
 public:
  static constexpr std::int64_t kSpanMs = 1000;  ///< of a row

  /// Takes what is new since the last call: all samples, as long as there are no more than WatchedUsage::kNewest.
  void add(const MachineState& state);
  /// The rows whose span ends before this time.
  [[nodiscard]] std::vector<HistoryRow> take(std::int64_t before_ms);

 private:
  struct Seen {
    std::uint64_t samples = 0;
    std::uint64_t high = 0;  ///< of the latest of these
    std::uint64_t look = 0;  ///< that it was there at
  };
  struct Sum {
    std::int64_t time_ms = 0;
    std::uint64_t high = 0;
    double sum = 0;
    std::int64_t count = 0;
    std::optional<std::uint64_t> limit = {};
  };
  void add(const HistoryKey& key, std::int64_t time_ms, const WatchedSample& sample,
           const std::optional<std::uint64_t>& limit);
  void raise(const HistoryKey& key, std::int64_t time_ms, const WatchedSample& sample,
             const std::optional<std::uint64_t>& limit);
  void close(const HistoryKey& key, const Sum& sum);

  std::uint64_t looks_ = 0;
  std::map<HistoryKey, Seen> seen_;
  std::map<HistoryKey, Sum> open_;  ///< rows under way
  std::vector<HistoryRow> done_;
};

}  // namespace tidemark
