#include "monitor/monitor.h"

#include <unistd.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "monitor/job_finder.h"

namespace tidemark {
namespace {

constexpr int kShareOfCoreToWatch = 200;

SampleOptions sampling(const MonitorOptions& options) {
  SampleOptions sampled;
  sampled.interval = options.interval;
  sampled.places = options.places;
  sampled.open_sources = options.open_sources;
  sampled.share_of_core = kShareOfCoreToWatch;
  sampled.reads_device = [choice = options.choice](const std::vector<DeviceInfo>& devices, std::size_t position) {
    return StateBuilder::is_chosen(choice, devices, position);
  };
  sampled.cgroup_of = options.choice.pid;
  const auto finder = std::make_shared<JobFinder>(options.choice.pid, options.places.root);
  sampled.find_job = [finder](const std::vector<std::int64_t>& on_devices) { return finder->find(on_devices); };
  return sampled;
}

}  // namespace

// The kernel's clock: events of programs need not be related to it, and it needs no calibration at the start.
MachineMonitor::MachineMonitor(const MonitorOptions& options)
    : scripted_(options.scripted),
      clock_(ring::Clock::monotonic),
      builder_(options.choice, clock_, scripted_ ? scripted_->now() : clock_.now()),
      risks_(options.forecast),
      process_risks_(options.forecast),
      sampler_(sampling(options), ::getpid(), clock_) {}

void MachineMonitor::start() {
  if (!scripted_) sampler_.start();
}

bool MachineMonitor::update() {
  const std::vector<Reading> readings = scripted_ ? scripted_->collect() : sampler_.collect();
  for (const Reading& reading : readings) {
    builder_.add(reading);
    risks_.add(builder_.state());
  }
  builder_.update(scripted_ ? scripted_->now() : clock_.now());
  changes_.clear();
  if (readings.empty()) return false;
  process_risks_.add(builder_.state());  // process lists arrive at most once a second
  process_risks_.assess(builder_.state(), scripted_.has_value());
  if (risks_.assess(builder_.state(), scripted_.has_value())) {
    raise_risks_by_processes(builder_.state());
    changes_ = notifier_.observe(builder_.state());
  }
  return true;
}

void MachineMonitor::add_peaks(const std::vector<RecordedPeak>& peaks) {
  for (WatchedDevice& device : builder_.state().devices) {
    if (device.is_host || !device.lost.empty()) continue;
    for (const RecordedPeak& peak : peaks) {
      if (peak.uuid != device.info.uuid) continue;
      device.used.add_peak(std::min(peak.bytes, device.limit_bytes().value_or(peak.bytes)));
    }
  }
}

void MachineMonitor::assess() {
  process_risks_.assess(builder_.state(), true);
  (void)risks_.assess(builder_.state(), true);
  changes_ = notifier_.observe(builder_.state());
}

}  // namespace tidemark
