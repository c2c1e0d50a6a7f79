// The metrics of a monitor by name: found without a lock, never removed.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <string>
#include <string_view>

#include "inprocess/performance/metric_values.h"
#include "inprocess/performance/value_history.h"

namespace tidemark {

struct NamedMetric {
  explicit NamedMetric(std::string_view text) : name(text) {}

  const std::string name;
  MetricValues values;
  ValueHistory history;  ///< of the monitor's thread
};

/// Thread-safe. Names have at most kMaxNameBytes bytes; longer ones are cut.
class MetricTable {
 public:
  static constexpr std::size_t kMaxNames = 1000;
  static constexpr std::size_t kMaxNameBytes = 256;

  MetricTable() = default;
  MetricTable(const MetricTable&) = delete;
  MetricTable& operator=(const MetricTable&) = delete;
  ~MetricTable();

  /// Adds a new name. Null where there are too many, or no memory.
  NamedMetric* find(std::string_view name) noexcept;
  /// Names so far, and each of them in the order in which they were added.
  [[nodiscard]] std::size_t size() const { return size_.load(std::memory_order_acquire); }
  [[nodiscard]] NamedMetric& operator[](std::size_t position) const { return *ordered_[position]; }

 private:
  static constexpr std::size_t kSlots = 2048;  // a power of two, at most half full
  NamedMetric* add(std::string_view name, std::size_t slot) noexcept;

  std::array<std::atomic<NamedMetric*>, kSlots> slots_{};
  std::array<NamedMetric*, kMaxNames> ordered_{};
  std::atomic<std::size_t> size_ = 0;
  std::mutex adding_;
};

}  // namespace tidemark
