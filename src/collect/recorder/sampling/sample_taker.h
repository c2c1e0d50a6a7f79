// Reads devices and the host, each as often as was asked for and as its cost allows, on a thread of its own: a driver
// may block for seconds, and the rings must be drained meanwhile.
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

/// Of one core, what each kind of reading may take: one thousandth.
inline constexpr int kShareOfCore = 1000;

/// A process of the job.
struct JobProcess {
  std::int64_t pid = -1;
  std::string name;             ///< "python train.py"; may be empty
  bool below_recorder = false;  ///< where a machine is watched: started under `tidemark run`, or recording itself
  bool is_recorder = false;     ///< likewise: tidemark's own

  bool operator==(const JobProcess&) const = default;
};

struct SampleOptions {
  bool enabled = true;
  std::chrono::nanoseconds interval = std::chrono::milliseconds(100);
  SourcePlaces places;
  std::function<std::vector<OpenedSource>()> open_sources = {};  ///< where devices are not those of `places`
  std::optional<std::int64_t> outsider = {};  ///< a process below the recorder that does not belong to the job
  /// Where the recorder is not above the job: the process that belongs to it with all below.
  std::optional<std::int64_t> first_process = {};
  // For who watches a machine instead of recording a job. Both are called on the thread that reads.
  /// Which of the devices found are read, by position; empty: all.
  std::function<bool(const std::vector<DeviceInfo>& devices, std::size_t position)> reads_device = {};
  /// The job's processes, given those that devices listed latest; empty: those below one process.
  std::function<std::vector<JobProcess>(const std::vector<std::int64_t>& on_devices)> find_job = {};
  /// Whose control group is read, where that can be seen; else, and where it is none, this process's.
  std::optional<std::int64_t> cgroup_of = {};
  int share_of_core = kShareOfCore;  ///< see Pace
};

/// That this thread has used.
[[nodiscard]] std::chrono::nanoseconds processor_time();

/// When to do something next. It takes at most a share of one core, a thousandth unless told otherwise: what costs 1 ms
/// of processor time is not done again for 1 s, however short the interval. What the first time costs does not count:
/// drivers load and connect then.
class Pace {
 public:
  explicit Pace(std::chrono::nanoseconds interval, int share_of_core = kShareOfCore)
      : interval_(interval), share_of_core_(share_of_core) {}

  [[nodiscard]] bool due(std::chrono::steady_clock::time_point now) const { return now >= next_; }
  [[nodiscard]] std::chrono::steady_clock::time_point next() const { return next_; }
  /// It was begun at `began`, on time or late, and took `cost` of processor time and `elapsed` by the clock.
  void done(std::chrono::steady_clock::time_point began, std::chrono::nanoseconds cost,
            std::chrono::nanoseconds elapsed);
  /// Do it before its time, as soon as that share of the clock allows: others may have had to wait for it.
  void sample_soon() { next_ = std::min(next_, earliest_); }

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
    std::size_t position = 0;                 ///< within the source
    bool skipped = false;                     ///< not to be read, or lost
    std::uint64_t used_bytes = 0;             ///< by the latest reading that said so
    std::uint64_t used_at_listing_bytes = 0;  ///< when its processes were listed last
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
  std::optional<std::int64_t> cgroup_pid_;  ///< of which process; none: of this one
  std::vector<JobProcess> job_;             ///< as of the last look
  std::vector<std::int64_t> on_devices_;    ///< processes that devices listed latest, where find_job_ wants them
  bool read_pss_ = false;                   ///< with the next reading of the host
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

/// Owned and called by one thread.
class Sampler {
 public:
  /// Starts nothing yet. `job`: the process above those of the job.
  Sampler(SampleOptions options, std::int64_t job, const TickClock& clock);
  /// Waits a second for a driver that does not answer, then leaves the thread to the end of this process.
  ~Sampler();
  Sampler(const Sampler&) = delete;
  Sampler& operator=(const Sampler&) = delete;

  /// Starts the thread, once. It takes no signals: they are this process's own.
  void start();
  /// What was read since the last call, oldest first.
  [[nodiscard]] std::vector<Reading> collect();

 private:
  struct Shared;  ///< with the thread
  static void run(const std::shared_ptr<Shared>& shared);

  std::shared_ptr<Shared> shared_;
  bool started_ = false;
};

}  // namespace tidemark
