#include "collect/recorder/sampling/sample_taker.h"

#include <time.h>

#include <algorithm>
#include <condition_variable>
#include <exception>
#include <iterator>
#include <mutex>
#include <system_error>
#include <utility>

#include "base/thread_without_signals.h"
#include "collect/machine/processes.h"

namespace tidemark {
namespace {

using Clock = std::chrono::steady_clock;
using namespace std::chrono_literals;

// Listing processes takes some drivers milliseconds under a lock that others wait for; so once a second. If it is
// quick, also when the used memory has changed by more than a hundredth, so that the list matches it.
constexpr std::chrono::nanoseconds kProcessInterval = 1s;
constexpr std::uint64_t kChangedUse = 100;
constexpr std::chrono::nanoseconds kJobInterval = 1s;
constexpr std::chrono::nanoseconds kPssInterval = 5s;
// The parts of the host's memory, less often; if that is quick, also when its use changes. A watched machine reads them
// once a second, as the list of processes.
constexpr std::chrono::nanoseconds kPartsInterval = 5s;
constexpr std::chrono::nanoseconds kWatchedPartsInterval = 1s;

bool says_anything(const DeviceSample& sample) {
  return sample.used_bytes || sample.driver_reserved_bytes || sample.utilization_percent ||
         sample.temperature_celsius || sample.power_milliwatts;
}

SampledDeviceId id_at(std::size_t position) {
  return SampledDeviceId{static_cast<std::uint32_t>(position)};
}

// Assigned in place: moving a whole Reading makes GCC 12 warn about uninitialized members of the variant.
template <typename What>
void add_reading(std::vector<Reading>& readings, std::uint64_t ticks, What what) {
  Reading& reading = readings.emplace_back();
  reading.ticks = ticks;
  reading.what = std::move(what);
}

// Readings that are not collected: the recorder is stopped, for example by a debugger.
constexpr std::size_t kMaxReadings = 100'000;

}  // namespace

std::chrono::nanoseconds processor_time() {
  timespec time{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec);
}

void Pace::done(Clock::time_point began, std::chrono::nanoseconds cost, std::chrono::nanoseconds elapsed) {
  // On the grid of intervals if on time; missed readings are skipped.
  if (std::exchange(first_, false)) cost = elapsed = 0ns;
  const Clock::time_point regular = next_ + interval_;
  next_ = std::max(regular > began ? regular : began + interval_, began + cost * share_of_core_);
  earliest_ = began + std::max(cost, elapsed) * share_of_core_;
}

SampleTaker::SampleTaker(const SampleOptions& options, std::int64_t job, const TickClock& clock)
    : root_(options.places.root),
      job_pid_(job),
      outsider_(options.outsider),
      first_process_(options.first_process),
      find_job_(options.find_job),
      clock_(clock),
      sources_(options.open_sources ? options.open_sources() : open_device_sources(options.places)),
      cgroup_(options.cgroup_of ? Cgroup::of_process(*options.cgroup_of, options.places.root) : std::nullopt),
      cgroup_pid_(cgroup_ ? options.cgroup_of : std::nullopt),
      roles_(options.places.root),
      device_pace_(options.interval, options.share_of_core),
      process_pace_(std::max(options.interval, kProcessInterval), options.share_of_core),
      job_pace_(std::max(options.interval, kJobInterval), options.share_of_core),
      host_pace_(options.interval, options.share_of_core),
      pss_pace_(std::max(options.interval, kPssInterval), options.share_of_core),
      parts_pace_(std::max(options.interval, find_job_ ? kWatchedPartsInterval : kPartsInterval),
                  options.share_of_core) {
  if (!cgroup_) cgroup_ = Cgroup::of_this_process(root_);
  for (const OpenedSource& opened : sources_) {
    const std::size_t count = opened.source == nullptr ? 0 : opened.source->devices().size();
    for (std::size_t n = 0; n < count; ++n) devices_.push_back({opened.source.get(), n, false});
  }
  if (!options.reads_device) return;
  const std::vector<DeviceInfo> devices = found().devices;
  for (std::size_t n = 0; n < devices.size(); ++n) devices_[n].skipped = !options.reads_device(devices, n);
}

DevicesFound SampleTaker::found() const {
  DevicesFound found;
  for (const OpenedSource& opened : sources_) {
    if (!opened.problem.empty()) found.problems.push_back(opened.problem);
  }
  for (const Device& device : devices_) found.devices.push_back(device.source->devices()[device.position]);
  return found;
}

template <typename Work>
void SampleTaker::run(Pace& pace, Clock::time_point now, const Work& work) {
  if (!pace.due(now)) return;
  const Clock::time_point began = Clock::now();
  const std::chrono::nanoseconds before = processor_time();
  work();
  pace.done(now, processor_time() - before, Clock::now() - began);
}

void SampleTaker::take(std::vector<Reading>& readings) {
  const Clock::time_point now = Clock::now();
  if (!find_job_) run(job_pace_, now, [&] { set_job(own_job()); });
  run(device_pace_, now, [&] { read_devices(readings); });
  if (device_use_changed()) process_pace_.sample_soon();
  run(process_pace_, now, [&] { read_processes(readings); });
  if (find_job_) run(job_pace_, now, [&] { set_job(find_job_(on_devices_)); });
  if (!host_pace_.due(now)) return;
  read_pss_ = pss_pace_.due(now);
  run(read_pss_ ? pss_pace_ : host_pace_, now, [&] { read_host(readings); });
  if (read_pss_) host_pace_.done(now, 0ns, 0ns);
  // With the processes just read, and with each PSS, so that the parts match the other values.
  if (!find_job_ && host_has_changed()) parts_pace_.sample_soon();
  if (read_pss_ && !parts_pace_.due(now)) return read_parts(readings);
  run(parts_pace_, now, [&] { read_parts(readings); });
}

Clock::time_point SampleTaker::next() const {
  return std::min({device_pace_.next(), process_pace_.next(), job_pace_.next(), host_pace_.next()});
}

std::vector<JobProcess> SampleTaker::own_job() const {
  std::vector<std::int64_t> pids = descendants_of(first_process_.value_or(job_pid_), root_);
  if (first_process_) pids.push_back(*first_process_);
  if (outsider_) std::erase(pids, *outsider_);
  std::vector<JobProcess> job;
  job.reserve(pids.size());
  for (const std::int64_t pid : pids) job.push_back({pid, ""});
  return job;
}

bool SampleTaker::is_of_job(std::int64_t pid) const {
  // On a watched machine, other processes are among them.
  return std::any_of(job_.begin(), job_.end(), [&](const JobProcess& process) {
    return process.pid == pid && (!find_job_ || process.below_recorder);
  });
}

bool SampleTaker::device_use_changed() const {
  return std::any_of(devices_.begin(), devices_.end(), [](const Device& device) {
    const auto [less, more] = std::minmax(device.used_bytes, device.used_at_listing_bytes);
    return more - less > more / kChangedUse;
  });
}

void SampleTaker::read_devices(std::vector<Reading>& readings) {
  for (std::size_t n = 0; n < devices_.size(); ++n) {
    if (devices_[n].skipped) continue;
    const std::uint64_t ticks = clock_.now();
    auto sample = devices_[n].source->read(devices_[n].position);
    if (!sample) {
      lose(n, sample.error(), readings);
    } else if (says_anything(*sample)) {
      devices_[n].used_bytes = sample->used_bytes.value_or(devices_[n].used_bytes);
      sample->device = id_at(n);
      add_reading(readings, ticks, std::move(*sample));
    }
  }
}

void SampleTaker::read_processes(std::vector<Reading>& readings) {
  on_devices_.clear();
  for (std::size_t n = 0; n < devices_.size(); ++n) {
    if (devices_[n].skipped) continue;
    devices_[n].used_at_listing_bytes = devices_[n].used_bytes;
    const std::uint64_t ticks = clock_.now();
    auto processes = devices_[n].source->processes(devices_[n].position);
    if (!processes) {
      lose(n, processes.error(), readings);
      continue;
    }
    if (!*processes) continue;
    for (SampledProcess& process : **processes) {
      name_process(process, root_);
      if (process.kind != ProcessKind::other) continue;
      if (find_job_) on_devices_.push_back(process.pid);
      if (is_of_job(process.pid)) process.kind = ProcessKind::job;
    }
    add_reading(readings, ticks, DeviceProcessesSample{0, id_at(n), std::move(**processes)});
  }
}

void SampleTaker::set_job(std::vector<JobProcess> job) {
  const bool same = std::equal(job.begin(), job.end(), job_.begin(), job_.end(),
                               [](const JobProcess& a, const JobProcess& b) { return a.pid == b.pid; });
  job_ = std::move(job);
  if (same) return;
  parts_pace_.sample_soon();
  pss_pace_.sample_soon();  // a forked process shares its pages; only this reading shows which
}

void SampleTaker::read_host(std::vector<Reading>& readings) {
  const std::uint64_t ticks = clock_.now();
  HostReading host;
  HostSample& sample = host.sample;
  for (const JobProcess& process : job_) {
    ProcessMemory memory;
    memory.pid = process.pid;
    memory.name = process.name;
    memory.below_recorder = process.below_recorder;
    memory.is_recorder = process.is_recorder;
    memory.pages = resident_pages(process.pid, root_);
    memory.rss_bytes = memory.pages.rss_bytes;
    if (!memory.rss_bytes) continue;  // it has ended
    if (read_pss_) {
      const WalkedPages walked = walked_pages(process.pid, root_);
      memory.pss_bytes = walked.pss_bytes;
      memory.private_bytes = walked.private_bytes;
    }
    add_known(sample.job_rss_bytes, memory.rss_bytes);
    add_known(sample.job_pss_bytes, memory.pss_bytes);
    add_known(sample.job_anon_bytes, memory.pages.anon_bytes);
    add_known(sample.job_file_bytes, memory.pages.file_bytes);
    add_known(sample.job_shmem_bytes, memory.pages.shmem_bytes);
    add_known(sample.job_swap_bytes, memory.pages.swap_bytes);
    host.processes.push_back(std::move(memory));
  }
  if (!host.processes.empty()) sample.job_processes = static_cast<std::uint32_t>(host.processes.size());
  if (cgroup_) {
    const CgroupReading cgroup = cgroup_->read();
    sample.cgroup_usage_bytes = cgroup.usage_bytes;
    sample.cgroup_limit_bytes = cgroup_->limit_bytes();
    sample.cgroup_oom_kills = cgroup.oom_kills;
    host.cgroup_pid = cgroup_pid_;
    if (find_job_) host.cgroup_folder = cgroup_->folder();
    if (find_job_) host.cgroup_inactive_file_bytes = cgroup_->inactive_file_bytes();
  }
  host.machine = read_host_memory(root_);
  sample.machine_available_bytes = host.machine.available_bytes;
  job_memory_ = host.processes;
  host_used_bytes_ = sample.cgroup_usage_bytes.value_or(sample.job_rss_bytes.value_or(0));
  add_reading(readings, ticks, std::move(host));
}

bool SampleTaker::host_has_changed() const {
  const auto [less, more] = std::minmax(host_used_bytes_, host_used_at_parts_bytes_);
  return more - less > more / kChangedUse;
}

void SampleTaker::read_parts(std::vector<Reading>& readings) {
  const std::uint64_t ticks = clock_.now();
  host_used_at_parts_bytes_ = host_used_bytes_;
  HostPartsSample sample;
  if (cgroup_) {
    sample.cgroup = cgroup_->parts();
    sample.cgroup_events = cgroup_->events();
  }
  MachineReading machine = read_machine_memory(root_);
  sample.machine = machine.parts;
  sample.machine_available_bytes = machine.available_bytes;
  sample.machine_oom_kills = machine.oom_kills;
  for (const ProcessMemory& memory : job_memory_) {
    HostProcess& process = sample.processes.emplace_back();
    process.pid = memory.pid;
    process.pages = memory.pages;
    process.pss_bytes = memory.pss_bytes;
    process.private_bytes = memory.private_bytes;
  }
  roles_.fill_in(sample.processes);
  add_reading(readings, ticks, std::move(sample));
}

void SampleTaker::lose(std::size_t device, const Error& error, std::vector<Reading>& readings) {
  devices_[device].skipped = true;
  add_reading(readings, 0, DeviceLost{id_at(device), error.message});
}

struct Sampler::Shared {
  Shared(SampleOptions given, std::int64_t job_pid, const TickClock& given_clock)
      : options(std::move(given)), job(job_pid), clock(given_clock) {}

  const SampleOptions options;
  const std::int64_t job;
  const TickClock clock;  // a copy: the thread may outlive the recorder

  std::mutex mutex;
  std::condition_variable changed;
  std::vector<Reading> readings;
  bool stop = false;
  bool now = false;  ///< a reading of the devices is asked for
  bool ended = false;
};

Sampler::Sampler(SampleOptions options, std::int64_t job, const TickClock& clock)
    : shared_(std::make_shared<Shared>(std::move(options), job, clock)) {}

Sampler::~Sampler() {
  std::unique_lock lock(shared_->mutex);
  shared_->stop = true;
  shared_->changed.notify_all();
  if (started_) shared_->changed.wait_for(lock, std::chrono::seconds(1), [this] { return shared_->ended; });
}

void Sampler::start() {
  if (started_ || !shared_->options.enabled) return;
  started_ = true;
  try {
    thread_without_signals([shared = shared_] { run(shared); }).detach();
  } catch (const std::system_error&) {
    shared_->ended = true;  // the thread could not be started: no samples
  }
}

void Sampler::run(const std::shared_ptr<Shared>& shared) {
  try {
    SampleTaker taker(shared->options, shared->job, shared->clock);
    std::vector<Reading> readings = {Reading{0, taker.found()}};
    std::unique_lock lock(shared->mutex);
    while (!shared->stop) {
      lock.unlock();
      taker.take(readings);
      lock.lock();
      if (shared->readings.size() < kMaxReadings)
        std::move(readings.begin(), readings.end(), std::back_inserter(shared->readings));
      readings.clear();
      shared->changed.wait_until(lock, taker.next(), [&] { return shared->stop || shared->now; });
      if (std::exchange(shared->now, false)) taker.read_devices_now();
    }
  } catch (const std::exception&) {  // out of memory: no more samples, the recorder may go on
  }
  const std::lock_guard lock(shared->mutex);
  shared->ended = true;
  shared->changed.notify_all();
}

void Sampler::sample_now() {
  const Clock::time_point now = Clock::now();
  if (sampled_now_at_ && now - *sampled_now_at_ < 1s) return;
  sampled_now_at_ = now;
  const std::lock_guard lock(shared_->mutex);
  shared_->now = true;
  shared_->changed.notify_all();
}

std::vector<Reading> Sampler::collect() {
  const std::lock_guard lock(shared_->mutex);
  return std::exchange(shared_->readings, {});
}

}  // namespace tidemark
