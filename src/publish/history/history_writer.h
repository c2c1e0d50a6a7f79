// Writes the monitor's data to a file: SQLite, so that any tool can read it while it is written.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "base/worker.h"
#include "monitor/machine_state.h"
#include "monitor/risk_notifier.h"
#include "publish/history/database.h"

namespace tidemark {

/// The owner of the memory.
struct HistoryKey {
  std::string device;  ///< permanent id: UUID, PCI address, "host"
  std::string key;
  std::string name;
  std::int64_t pid = 0;  ///< 0: the whole memory
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

  /// Takes the samples since the last call: all of them, up to WatchedUsage::kNewest.
  void add(const MachineState& state);
  /// The rows with a span that ends before this time.
  [[nodiscard]] std::vector<HistoryRow> take(std::int64_t before_ms);

 private:
  struct Seen {
    std::uint64_t samples = 0;
    std::uint64_t high = 0;  ///< of the latest sample
    std::uint64_t look = 0;  ///< the latest look at which it was present
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
  std::map<HistoryKey, Sum> open_;  ///< incomplete rows
  std::vector<HistoryRow> done_;
};

struct HistoryOptions {
  std::string path;
  std::chrono::seconds keep = std::chrono::hours(30 * 24);
  std::function<void(const std::string&)> problem;  ///< called with a sentence when a failure begins; on another thread
};

/// Rows older than `older_than` have one point for each `span`.
struct HistoryTier {
  std::chrono::seconds older_than;
  std::chrono::seconds span;
};

/// Writes on a thread of its own, every five seconds. A file that cannot be written does not stop the monitor:
/// `problem` is called, and writing is retried, unless the file is damaged or not a history.
class HistoryWriter {
 public:
  explicit HistoryWriter(HistoryOptions options);
  /// Writes the remaining rows, for at most 3 s.
  ~HistoryWriter();

  /// Takes the new samples. Never waits. One thread at a time.
  void add(const MachineState& state);
  /// `assessment`: JSON.
  void add(const RiskChange& change, const WatchedDevice* device, std::string assessment);
  /// Batches that could not be written.
  [[nodiscard]] std::uint64_t dropped() const { return worker_.dropped(); }

 private:
  void flush(bool all);
  void write(const HistoryBatch& batch, std::int64_t now_ms);
  bool open();
  bool write_rows(const HistoryBatch& batch);
  std::optional<std::int64_t> series(const HistoryKey& key);
  void report(const DatabaseError& error);
  void report(const std::string& text);

  HistoryOptions options_;
  HistoryCollector collector_;
  HistoryBatch waiting_;
  std::chrono::steady_clock::time_point next_flush_;
  std::int64_t latest_ms_ = 0;
  // Used by the worker's thread.
  std::optional<Database> database_;
  std::map<HistoryKey, std::int64_t> series_;
  std::chrono::steady_clock::time_point next_care_;
  std::string told_;
  bool given_up_ = false;
  Worker worker_;
};

/// Merges old points and removes points older than `keep`, and series without points. In one transaction. False after
/// an error.
bool maintain(Database& database, std::int64_t now_ms, std::chrono::seconds keep);

}  // namespace tidemark
