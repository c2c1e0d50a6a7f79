#include "inprocess/performance/training_monitor.h"

#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <condition_variable>
#include <thread>

#include "base/thread_without_signals.h"
#include "base/worker.h"
#include "collect/machine/host_activity.h"
#include "collect/machine/processes.h"

namespace tidemark {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

constexpr std::chrono::nanoseconds kPatienceForDrivers = 2s;
constexpr std::chrono::nanoseconds kMinBetweenSamples = 50ms;  // of processors; their time has a resolution of 10 ms

// The number of forks from the first process to this one, to recognize monitors of the parent.
std::atomic<std::uint64_t> fork_count = 0;

std::uint64_t count_forks() {
  static const int watched =
      ::pthread_atfork(nullptr, nullptr, [] { fork_count.fetch_add(1, std::memory_order_relaxed); });
  static_cast<void>(watched);
  return fork_count.load(std::memory_order_relaxed);
}

std::uint64_t wall_ns() {
  return static_cast<std::uint64_t>(std::chrono::system_clock::now().time_since_epoch() / 1ns);
}

std::optional<double> memory_percent(const HostMemory& memory) {
  if (!memory.total_bytes || *memory.total_bytes == 0 || !memory.available_bytes) return {};
  const auto total = static_cast<double>(*memory.total_bytes);
  return (total - std::min(static_cast<double>(*memory.available_bytes), total)) / total * 100;
}

}  // namespace

// State changed by the thread. In a forked child it may be inconsistent, and is left as it is if the thread held the
// lock.
struct TrainingMonitor::Background {
  std::mutex mutex;
  std::condition_variable changed;
  bool watching = false;
  bool stopping = false;
  bool read_once = false;
  std::unique_ptr<MonitorEngine> machine;  // null if it is not watched
  std::optional<MachineState> machine_seen;
  std::uint64_t machine_began_ns = 0;
  SystemReport system;
  HostActivity processors_read;  // at the last reading
  ValueHistory step_history;
  std::vector<ValueHistory> metric_histories;  // in the order of the names in the table
  std::uint64_t sampled_at_ns = 0;
  std::thread thread;
};

TrainingMonitor::TrainingMonitor(TrainingMonitorOptions options)
    : options_(std::move(options)),
      began_(Clock::now()),
      began_wall_ns_(wall_ns()),
      forks_(count_forks()),
      background_(std::make_unique<Background>()) {
  background_->system.disk = options_.disk;
  background_->system.processors = usable_processors();
}

TrainingMonitor::~TrainingMonitor() {
  stop();
  // The thread is the parent's, and may be waiting on objects that would be destroyed.
  if (forked()) static_cast<void>(background_.release());
}

std::uint64_t TrainingMonitor::age_ns() const {
  return static_cast<std::uint64_t>(std::max<std::int64_t>((Clock::now() - began_) / 1ns, 0));
}

bool TrainingMonitor::forked() const noexcept {
  return fork_count.load(std::memory_order_relaxed) != forks_;
}

bool TrainingMonitor::taking() noexcept {
  if (taking_.load(std::memory_order_relaxed) && !forked()) return true;
  late_.fetch_add(1, std::memory_order_relaxed);
  return false;
}

void TrainingMonitor::start() {
  if (forked()) return;
  const std::lock_guard control(control_);
  taking_ = true;
  {
    const std::lock_guard lock(background_->mutex);
    if (background_->watching) return;
    background_->watching = true;
    background_->stopping = false;
  }
  if (background_->thread.joinable()) background_->thread.join();
  background_->thread = thread_without_signals([this] { run(); });
}

void TrainingMonitor::stop() {
  taking_ = false;
  if (forked()) return;
  const std::lock_guard control(control_);
  {
    const std::lock_guard lock(background_->mutex);
    background_->stopping = true;
  }
  background_->changed.notify_all();
  if (background_->thread.joinable()) background_->thread.join();
}

bool TrainingMonitor::watching() const {
  if (forked()) return false;
  const std::lock_guard lock(background_->mutex);
  return background_->watching;
}

void TrainingMonitor::run() {
  Background& background = *background_;
  std::unique_lock lock(background.mutex);
  EngineOptions machine;
  machine.machine.interval = options_.interval;
  machine.machine.choice = options_.choice;
  machine.machine.places = options_.places;
  machine.follow = false;  // the training program reports its steps by step()
  background.machine_began_ns = age_ns();
  background.machine = std::make_unique<MonitorEngine>(machine);
  background.machine->start();
  background.read_once = false;
  background.processors_read = read_host_activity(options_.disk, options_.places.root);
  if (!background.system.first.cpu_total_ticks) background.system.first = background.processors_read;
  auto next = Clock::now() + options_.interval;
  while (!background.stopping) {
    background.changed.wait_until(lock, std::min(next, background.machine->next_tick()),
                                  [&] { return background.stopping; });
    if (Clock::now() >= next || background.stopping) {
      sample();
      next = Clock::now() + options_.interval;
    } else if (Clock::now() >= background.machine->next_tick()) {
      sample_machine();
    }
  }
  background.machine_seen = background.machine->state();
  const std::unique_ptr<MonitorEngine> ending = std::move(background.machine);
  background.watching = false;
  background.changed.notify_all();
  lock.unlock();  // destroying `ending` waits for a driver
}

void TrainingMonitor::add_percent(WatchedPercent& watched, const std::optional<double>& percent,
                                  std::uint64_t begin_ns) const {
  watched.latest = percent;
  if (!percent) return;
  watched.all.add(*percent);
  RunningMoments moment;
  moment.add(*percent);
  watched.history.add(begin_ns, age_ns(), moment);
}

void TrainingMonitor::sample_machine() {
  Background& background = *background_;
  (void)background.machine->tick();
  if (background.read_once || !background.machine->state().complete()) return;
  background.read_once = true;
  background.changed.notify_all();
}

void TrainingMonitor::sample() {
  Background& background = *background_;
  SystemReport& system = background.system;
  sample_machine();
  const std::uint64_t begin_ns = background.sampled_at_ns;
  add_histories();
  background.sampled_at_ns = age_ns();
  system.process = resident_pages(::getpid(), options_.places.root);
  const HostActivity now = read_host_activity(options_.disk, options_.places.root);
  add_percent(system.memory, memory_percent(read_host_memory(options_.places.root)), begin_ns);
  system.disk_percent = disk_percent(now);
  system.latest = now;
  if (now.at - background.processors_read.at < kMinBetweenSamples) return;
  add_percent(system.cpu, cpu_percent(background.processors_read, now), begin_ns);
  add_percent(system.process_cpu, process_cpu_percent(background.processors_read, now), begin_ns);
  background.processors_read = now;
}

void TrainingMonitor::add_histories() {
  Background& background = *background_;
  const std::uint64_t now = age_ns();
  background.metric_histories.resize(metrics_.size());
  for (std::size_t n = 0; n < background.metric_histories.size(); ++n)
    background.metric_histories[n].add(background.sampled_at_ns, now, metrics_[n].values.take_recent());
  background.step_history.add(background.sampled_at_ns, now, steps_.take_recent());
}

bool TrainingMonitor::log(std::string_view name, double value) noexcept {
  return taking() && (log(metrics_.find(name), value), true);
}

bool TrainingMonitor::log(NamedMetric* metric, double value) noexcept {
  if (!taking()) return false;
  if (metric != nullptr) {
    metric->values.add(value);
  } else {
    unnamed_.fetch_add(1, std::memory_order_relaxed);
  }
  return true;
}

bool TrainingMonitor::step(std::uint64_t samples) noexcept {
  if (!taking()) return false;
  steps_.step_ended(samples, StepTimes::now_ns());
  return true;
}

bool TrainingMonitor::part_ended(StepPart part, std::int64_t began_ns) noexcept {
  if (!taking()) return false;
  steps_.part_ended(part, began_ns, StepTimes::now_ns());
  return true;
}

PerformanceReport TrainingMonitor::report() {
  PerformanceReport report;
  report.began_wall_ns = began_wall_ns_;
  report.pid = ::getpid();
  report.unnamed_values = unnamed_.load();
  report.late_values = late_.load();
  report.steps = steps_.summary(!forked());
  std::unique_lock lock(background_->mutex, std::defer_lock);
  const bool locked = forked() ? lock.try_lock() : (lock.lock(), true);
  if (locked && !forked()) {
    background_->changed.wait_for(lock, kPatienceForDrivers,
                                  [&] { return !background_->watching || background_->read_once; });
    // Processor use is known from the second reading on.
    if (background_->machine && background_->system.cpu.all.count == 0) {
      background_->changed.wait_until(lock, background_->processors_read.at + kMinBetweenSamples,
                                      [&] { return !background_->watching; });
    }
    if (background_->machine) sample();
  }
  for (std::size_t n = 0; n < metrics_.size(); ++n) {
    const NamedMetric& metric = metrics_[n];
    const bool has_history = locked && n < background_->metric_histories.size();
    report.metrics.push_back({metric.name, metric.values.summary(!forked()),
                              has_history ? background_->metric_histories[n] : ValueHistory()});
  }
  report.now_ns = age_ns();
  report.now_wall_ns = wall_ns();
  if (!locked) return report;
  report.watching = background_->watching && !forked();
  report.step_history = background_->step_history;
  report.system = background_->system;
  report.machine_began_ns = background_->machine_began_ns;
  report.machine = background_->machine ? std::optional(background_->machine->state()) : background_->machine_seen;
  return report;
}

std::vector<std::pair<std::string, ValueSummary>> TrainingMonitor::metrics() const {
  std::vector<std::pair<std::string, ValueSummary>> all;
  for (std::size_t n = 0; n < metrics_.size(); ++n) {
    all.emplace_back(metrics_[n].name, metrics_[n].values.summary(!forked()));
  }
  return all;
}

}  // namespace tidemark
