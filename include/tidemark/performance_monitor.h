/// @file
/// What a training run does over time: its metrics, its steps, and the machine.
///
///     tidemark::PerformanceMonitor monitor;
///     monitor.start_monitoring();
///     tidemark::Metric loss = monitor.metric("loss");
///     for (;;) {
///       Batch batch;
///       {
///         auto waiting = monitor.waiting_for_data();
///         if (!loader.next(batch)) break;
///       }
///       loss.log(train(batch));
///       monitor.step(batch.size());
///     }
///     std::cout << monitor.get_performance_report();
#ifndef TIDEMARK_PERFORMANCE_MONITOR_H
#define TIDEMARK_PERFORMANCE_MONITOR_H

#include <tidemark/error.h>
#include <tidemark/export.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tidemark {
TIDEMARK_INLINE
namespace v1 {
/// What a monitor watches besides logged values.
struct PerformanceSettings {
  double interval_seconds = 1;       ///< between two samples of the machine: 0.01 to 3600
  std::vector<std::string> devices;  ///< GPUs, as `tidemark devices` numbers them: "0", "0:1"; empty: all
  std::string disk = "/";            ///< a path on the file system whose use is reported
};

/// The parts of a training step.
enum class StepPhase : std::uint8_t {
  data = 0,       ///< waiting for data
  forward = 1,    ///< the model's forward pass
  backward = 2,   ///< its backward pass
  optimizer = 3,  ///< the optimizer's step
};

/// Statistics of the values logged under one name. NaN and infinite values are counted but excluded from the other
/// numbers. nullopt: unknown.
struct MetricSummary {
  std::string name;                  ///< name of the metric
  std::uint64_t count = 0;           ///< number of finite values
  std::optional<double> mean;        ///< arithmetic
  std::optional<double> std;         ///< standard deviation of these values (divided by count, as numpy.std)
  std::optional<double> min;         ///< exact
  std::optional<double> max;         ///< exact
  std::optional<double> p50;         ///< the median, within 1% of a value that has this rank
  std::optional<double> p90;         ///< 90th percentile, estimated as p50 is
  std::optional<double> p99;         ///< 99th percentile, estimated as p50 is
  std::uint64_t nan_count = 0;       ///< values that were not a number
  std::uint64_t infinite_count = 0;  ///< values that were infinite
};

class PerformanceMonitor;

/// A name that was looked up once, for code that logs it often. Valid as long as its monitor.
class TIDEMARK_API Metric {
 public:
  /// Takes a value: some 30 ns, without waiting for other threads. Any thread.
  void log(double value) noexcept;

 private:
  friend class PerformanceMonitor;
  Metric(void* monitor, void* metric) : monitor_(monitor), metric_(metric) {}
  void* monitor_;
  void* metric_;  // null: there were too many names
};

/// Measures a part of the step as long as it lives. Must not outlive its monitor.
class TIDEMARK_API PhaseScope {
 public:
  ~PhaseScope();
  PhaseScope(PhaseScope&& other) noexcept;             ///< `other` no longer measures anything.
  PhaseScope& operator=(PhaseScope&& other) = delete;  ///< It is one measurement.

 private:
  friend class PerformanceMonitor;
  PhaseScope(void* monitor, StepPhase phase) noexcept;
  void* monitor_;
  StepPhase phase_;
  std::int64_t began_ns_;
};

/// Statistics of what a program logs, in memory that does not grow with the number of values. All functions are
/// thread-safe. Values logged after stop_monitoring() or in a forked child are dropped, with one message on stderr.
class TIDEMARK_API PerformanceMonitor {
 public:
  static constexpr std::size_t kMaxNames = 1000;  ///< Values of further names are counted only.

  /// Values are taken from now on. Throws Error for settings that cannot be.
  explicit PerformanceMonitor(const PerformanceSettings& settings = {});
  ~PerformanceMonitor();
  PerformanceMonitor(const PerformanceMonitor&) = delete;             ///< It has threads.
  PerformanceMonitor& operator=(const PerformanceMonitor&) = delete;  ///< It has threads.

  /// Starts watching the machine on separate threads; does nothing if already started. Logged values are accepted
  /// again.
  void start_monitoring();
  /// Ends. The report stays.
  void stop_monitoring();
  /// Whether the machine is being watched.
  [[nodiscard]] bool is_monitoring() const;

  /// Logs a value under a name of at most 256 bytes (longer names are cut).
  void log_metric(std::string_view name, double value) noexcept;
  /// Looks a name up, once.
  Metric metric(std::string_view name);

  /// Ends the current step and begins the next one. `samples`: number of samples in the ended step.
  void step(std::uint64_t samples = 0) noexcept;
  /// Measures a part of the step until the end of the scope, in host time. Asynchronous GPU work counts where the host
  /// waits for it.
  [[nodiscard]] PhaseScope phase(StepPhase phase) noexcept;
  /// The same for the time that a loop waits for its data.
  [[nodiscard]] PhaseScope waiting_for_data() noexcept { return phase(StepPhase::data); }

  /// The metrics so far, in the order in which they were first logged.
  [[nodiscard]] std::vector<MetricSummary> metrics() const;
  /// Everything so far, as JSON: gpu_metrics, training_metrics, system_metrics and steps
  /// (docs/performance-monitor.md).
  [[nodiscard]] std::string get_performance_report() const;
  /// The same as a page for Prometheus, in its text format 0.0.4.
  [[nodiscard]] std::string prometheus() const;
  /// Draws the metrics and the machine over time, as PNG, or as SVG if the name ends in ".svg". Throws Error if the
  /// file cannot be written.
  void save_chart(const std::string& path) const;

 private:
  friend class Metric;
  friend class PhaseScope;
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

}  // namespace v1
}  // namespace tidemark

#endif
