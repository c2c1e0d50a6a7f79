/// @file
/// Monitors: what the commands `profile`, `oom`, `leak` and `fragment` see, from inside a program.
///
///     tidemark::OomDetector detector;
///     detector.add_warning_callback([](const std::string& device, const tidemark::RiskPrediction& prediction) {
///       std::cerr << device << ": " << name_of(prediction.risk_level) << "\n";
///     });
///     detector.start_monitoring();
///     train();
///     detector.stop_monitoring();
///     detector.generate_report("oom_report.json");
///
/// Each monitor watches the machine on separate threads: its devices, their processes and the host's memory, as
/// reported by drivers and the kernel. The reports also list the processes that are being recorded.
#ifndef TIDEMARK_MONITORS_H
#define TIDEMARK_MONITORS_H

#include <tidemark/error.h>
#include <tidemark/export.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace tidemark {
TIDEMARK_INLINE
namespace v1 {
/// Settings of all monitors.
struct MonitorSettings {
  double interval_seconds = 1;       ///< between two samples: 0.01 to 3600
  std::vector<std::string> devices;  ///< as `tidemark devices` numbers them: "0", "0:1", "cpu"; empty: all
  std::optional<std::int64_t> pid;   ///< only this process and its children; nullopt: all processes
};

/// How likely a memory runs out.
enum class RiskLevel : std::uint8_t {
  low = 0,       ///< no growth that would reach the limit
  medium = 1,    ///< above the threshold, or the limit is far
  high = 2,      ///< the limit is reached within ten minutes
  critical = 3,  ///< it is about to be reached
};
/// "low", "medium", "high" or "critical".
TIDEMARK_API const char* name_of(RiskLevel level) noexcept;

/// A forecast for one memory. nullopt: unknown.
struct RiskPrediction {
  RiskLevel risk_level = RiskLevel::low;             ///< how bad it is
  std::optional<double> confidence;                  ///< how often such forecasts are right, 0 to 1
  std::optional<double> current_usage_percent;       ///< of the limit
  std::optional<double> growth_rate_mb_per_sec;      ///< of the running peaks, in MiB; 0 if they do not grow
  std::optional<double> predicted_oom_time_seconds;  ///< until the limit is reached; nullopt if it will not be
  std::string recommendation;                        ///< explanation and advice, in sentences
};

/// Called with a device ("0", or "cpu" for the host) and the forecast. Runs on a separate thread, one call at a time.
/// Exceptions are printed to stderr, and the monitor continues.
using WarningCallback = std::function<void(const std::string& device, const RiskPrediction& prediction)>;

/// Common part of all monitors. Thread-safe. A forked child does not monitor; requesting a report there throws Error.
class TIDEMARK_API Monitor {
 public:
  virtual ~Monitor();
  Monitor(const Monitor&) = delete;             ///< It has threads.
  Monitor& operator=(const Monitor&) = delete;  ///< It has threads.

  /// Starts monitoring, again after a stop; does nothing while monitoring. Drivers are loaded on another thread.
  void start_monitoring();
  /// Stops; waits at most one second for a running driver call. Does nothing if already stopped.
  void stop_monitoring();
  /// Whether it watches.
  [[nodiscard]] bool is_monitoring() const;
  /// Observations since the start, as the JSON that the matching command prints. Can be called while monitoring. Also
  /// written to `path` unless that is empty. Throws Error if monitoring was never started, the device does not exist or
  /// the file cannot be written.
  std::string generate_report(const std::string& path = "");

 protected:
  /// Implementation inside the library.
  struct Parts;
  /// Called by the monitors below.
  explicit Monitor(std::unique_ptr<Parts> parts);
  /// Used by the monitors below.
  std::unique_ptr<Parts> parts_;
};

/// Memory of devices and processes over time: the report of `tidemark profile`.
class TIDEMARK_API MemoryProfiler : public Monitor {
 public:
  /// Throws Error for invalid settings.
  explicit MemoryProfiler(const MonitorSettings& settings = {});
};

/// Whether a memory runs out, and when: the report of `tidemark oom`.
class TIDEMARK_API OomDetector : public Monitor {
 public:
  /// `threshold_percent`: share of a memory's limit from which usage alone is a medium risk. Throws Error for invalid
  /// settings.
  explicit OomDetector(const MonitorSettings& settings = {}, double threshold_percent = 85);
  /// Calls `callback` when a risk rises to medium or above, once for each rise. Call before start_monitoring().
  void add_warning_callback(WarningCallback callback);
};

/// How fragmented the memory of recorded processes is: the report of `tidemark fragment`.
class TIDEMARK_API FragmentationAnalyzer : public Monitor {
 public:
  /// Throws Error for invalid settings.
  explicit FragmentationAnalyzer(const MonitorSettings& settings = {});
};

/// Growing memories and their rates: the report of `tidemark leak`.
class TIDEMARK_API MemoryLeakDetector : public Monitor {
 public:
  /// Growth above `threshold_mb_per_minute` (MiB) is reported. `tracking`: also by stack and module, of processes
  /// that are being recorded. Throws Error for invalid settings.
  explicit MemoryLeakDetector(const MonitorSettings& settings = {}, double threshold_mb_per_minute = 10,
                              bool tracking = false);
};

}  // namespace v1
}  // namespace tidemark

#endif
