// Reads devices and the host on a thread of its own, as often as requested and as the cost allows: a driver may block
// for seconds, and the rings must be drained meanwhile.
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
#include "collect/recorder/lanes/lane_reader.h"
#include "collect/recorder/sampling/readings.h"

namespace tidemark {

/// The most that each kind of reading may use of one core: one thousandth.
inline constexpr int kShareOfCore = 1000;

/// A process of the job.
struct JobProcess {
  std::int64_t pid = -1;
  std::string name;             ///< "python train.py"; may be empty
  bool below_recorder = false;  ///< if a machine is watched: started under `tidemark run`, or records itself
  bool is_recorder = false;     ///< if a machine is watched: a Tidemark process

  bool operator==(const JobProcess&) const = default;
};

struct SampleOptions {
  bool enabled = true;
  std::chrono::nanoseconds interval = std::chrono::milliseconds(100);
  SourcePlaces places;
  std::function<std::vector<OpenedSource>()> open_sources = {};  ///< if devices do not come from `places`
  std::optional<std::int64_t> outsider = {};  ///< a process below the recorder that does not belong to the job
  /// If the recorder is not an ancestor of the job: the job's topmost process.
  std::optional<std::int64_t> first_process = {};
  // For watching a machine instead of recording a job. Both are called on the thread that reads.
  /// Which of the devices found are read, by position; empty function: all.
  std::function<bool(const std::vector<DeviceInfo>& devices, std::size_t position)> reads_device = {};
  /// The job's processes, given those that devices listed latest; empty function: those below one process.
  std::function<std::vector<JobProcess>(const std::vector<std::int64_t>& on_devices)> find_job = {};
  /// PID; read the control group of this process, if visible; else the calling process's.
  std::optional<std::int64_t> cgroup_of = {};
  int share_of_core = kShareOfCore;  ///< see Pace
};

/// Processor time used by this thread.
[[nodiscard]] std::chrono::nanoseconds processor_time();

/// Decides when to repeat an action. It takes at most a share of one core, by default a thousandth: an action that
/// costs 1 ms of processor time is not repeated for 1 s, however short the interval. The first time does not count:
/// drivers load and connect then.
class Pace {
 public:
  explicit Pace(std::chrono::nanoseconds interval, int share_of_core = kShareOfCore)
      : interval_(interval), share_of_core_(share_of_core) {}

  [[nodiscard]] bool due(std::chrono::steady_clock::time_point now) const { return now >= next_; }
  [[nodiscard]] std::chrono::steady_clock::time_point next() const { return next_; }
  /// The action began at `began`, on time or late, and took `cost` of processor time and `elapsed` by the clock.
  void done(std::chrono::steady_clock::time_point began, std::chrono::nanoseconds cost,
            std::chrono::nanoseconds elapsed);
  /// Repeats before the interval ends, as soon as the share of `elapsed` time allows: others may have waited for it.
  void sample_soon() { next_ = std::min(next_, earliest_); }
  /// Repeats at once, whatever the last time cost.
  void sample_now() { next_ = {}; }

 private:
  std::chrono::nanoseconds interval_;
  int share_of_core_;
  std::chrono::steady_clock::time_point next_;
  std::chrono::steady_clock::time_point earliest_;
  bool first_ = true;
};

/// One thread. A call may block for as long as a driver does.
class SampleTaker {
 public:
  /// Loads the drivers' libraries. `job` is the parent of the job's processes. `clock` must outlive this.
  SampleTaker(const SampleOptions& options, std::int64_t job, const TickClock& clock);

  /// The devices found; comes before all readings.
  [[nodiscard]] DevicesFound found() const;
  /// Appends the readings that are due now.
  void take(std::vector<Reading>& readings);
  /// When the next reading is due.
  [[nodiscard]] std::chrono::steady_clock::time_point next() const;
  /// Makes the next reading of devices due.
  void read_devices_now() { device_pace_.sample_now(); }

 private:
  struct Device {
    DeviceSource* source = nullptr;
    std::size_t position = 0;                 ///< within the source
    bool skipped = false;                     ///< not to be read, or lost
    std::uint64_t used_bytes = 0;             ///< from the latest reading that has it
    std::uint64_t used_at_listing_bytes = 0;  ///< when its processes were last listed
  };

  [[nodiscard]] bool device_use_changed() const;
  [[nodiscard]] std::vector<JobProcess> own_job() const;
  [[nodiscard]] bool is_of_job(std::int64_t pid) const;

  void read_devices(std::vector<Reading>& readings);
  void read_processes(std::vector<Reading>& readings);
  void set_job(std::vector<JobProcess> job);
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
  std::function<std::vector<JobProcess>(const std::vector<std::int64_t>&)> find_job_;
  const TickClock& clock_;
  std::vector<OpenedSource> sources_;
  std::vector<Device> devices_;
  std::optional<Cgroup> cgroup_;
  std::optional<std::int64_t> cgroup_pid_;  ///< the process of the group; std::nullopt: this one
  std::vector<JobProcess> job_;             ///< at the last reading
  std::vector<std::int64_t> on_devices_;    ///< processes that devices listed latest, if find_job_ needs them
  bool read_pss_ = false;                   ///< with the next reading of the host
  ProcessRoles roles_;
  std::vector<ProcessMemory> job_memory_;  ///< from the latest reading of the host
  std::uint64_t host_used_bytes_ = 0;      ///< from the same reading: the control group's usage, else the job's
  std::uint64_t host_used_at_parts_bytes_ = 0;
  Pace device_pace_;
  Pace process_pace_;
  Pace job_pace_;
  Pace host_pace_;
  Pace pss_pace_;
  Pace parts_pace_;
};

/// Owned and called by one thread.
class Sampler {
 public:
  /// Does not start the thread. `job`: the parent of the job's processes.
  Sampler(SampleOptions options, std::int64_t job, const TickClock& clock);
  /// Waits one second for a driver that does not answer, then leaves the thread running until the process exits.
  ~Sampler();
  Sampler(const Sampler&) = delete;
  Sampler& operator=(const Sampler&) = delete;

  /// Starts the thread, once. It blocks all signals, which belong to this process's other threads.
  void start();
  /// The readings since the last call, oldest first.
  [[nodiscard]] std::vector<Reading> collect();
  /// Reads the devices at once, without waiting for it; at most once a second.
  void sample_now();

 private:
  struct Shared;  ///< shared with the thread
  static void run(const std::shared_ptr<Shared>& shared);

  std::shared_ptr<Shared> shared_;
  bool started_ = false;
  std::optional<std::chrono::steady_clock::time_point> sampled_now_at_;  ///< the last call that had an effect
};

}  // namespace tidemark
