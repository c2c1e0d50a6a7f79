// Reads devices and the host, each as often as was asked for and as its cost allows.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "collect/machine/device_source.h"
#include "collect/machine/host_memory.h"
#include "collect/machine/process_roles.h"
#include "collect/recorder/clock.h"
#include "collect/recorder/readings.h"

namespace tidemark {

struct SampleOptions {
  bool enabled = true;
  std::chrono::nanoseconds interval = std::chrono::milliseconds(100);
  SourcePlaces places;
  std::function<std::vector<OpenedSource>()> open_sources = {};  ///< where devices are not those of `places`
  std::optional<std::int64_t> outsider = {};  ///< a process below the recorder that does not belong to the job
  /// Where the recorder is not above the job: the process that belongs to it with all below.
  std::optional<std::int64_t> first_process = {};
};

/// When to do something next. It takes at most a thousandth of one core: what costs 1 ms of processor time is not done
/// again for 1 s, however short the interval. What the first time costs does not count: drivers load and connect then.
class Pace {
 public:
  explicit Pace(std::chrono::nanoseconds interval) : interval_(interval) {}

  [[nodiscard]] bool due(std::chrono::steady_clock::time_point now) const { return now >= next_; }
  [[nodiscard]] std::chrono::steady_clock::time_point next() const { return next_; }
  /// It was begun at `began`, on time or late, and took `cost` of processor time and `elapsed` by the clock.
  void done(std::chrono::steady_clock::time_point began, std::chrono::nanoseconds cost,
            std::chrono::nanoseconds elapsed);
  /// Do it before its time, as soon as a thousandth of the clock allows: others may have had to wait for it.
  void hurry() { next_ = std::min(next_, earliest_); }

 private:
  std::chrono::nanoseconds interval_;
  std::chrono::steady_clock::time_point next_;
  std::chrono::steady_clock::time_point earliest_;
  bool first_ = true;
};

/// One thread. A call may block for as long as a driver does.
class SampleTaker {
 public:
  /// Loads the drivers' libraries. `job` is the process above those of the job. `clock` must outlive this.
  SampleTaker(const SampleOptions& options, std::int64_t job, const TickClock& clock);

  /// What was found; before all readings.
  [[nodiscard]] DevicesFound found() const;
  /// Appends what is due now.
  void take(std::vector<Reading>& readings);
  /// When something is due next.
  [[nodiscard]] std::chrono::steady_clock::time_point next() const;

 private:
  struct Device {
    DeviceSource* source = nullptr;
    std::size_t position = 0;  ///< within the source
    bool lost = false;
    std::uint64_t used_bytes = 0;             ///< by the latest reading that said so
    std::uint64_t used_at_listing_bytes = 0;  ///< when its processes were listed last
  };

  [[nodiscard]] bool use_has_changed() const;

  void read_devices(std::vector<Reading>& readings);
  void read_processes(std::vector<Reading>& readings);
  void find_job();
  void read_host(std::vector<Reading>& readings);
  void read_parts(std::vector<Reading>& readings);
  [[nodiscard]] bool host_has_changed() const;
  void lose(std::size_t device, const Error& error, std::vector<Reading>& readings);
  template <typename Work>
  void run(Pace& pace, std::chrono::steady_clock::time_point now, const Work& work);

  std::string root_;
  std::int64_t job_pid_;
  std::optional<std::int64_t> outsider_;
  std::optional<std::int64_t> first_process_;
  const TickClock& clock_;
  std::vector<OpenedSource> sources_;
  std::vector<Device> devices_;
  std::optional<Cgroup> cgroup_;
  std::vector<std::int64_t> job_;  ///< processes of the job, as of the last look
  bool read_pss_ = false;          ///< with the next reading of the host
  ProcessRoles roles_;
  std::vector<ProcessMemory> job_memory_;  ///< of the latest reading of the host
  std::uint64_t host_used_bytes_ = 0;      ///< likewise, by the control group, else by the job
  std::uint64_t host_used_at_parts_bytes_ = 0;
  Pace device_pace_;
  Pace process_pace_;
  Pace job_pace_;
  Pace host_pace_;
  Pace pss_pace_;
  Pace parts_pace_;
};

}  // namespace tidemark
