#include "monitor/risk_notifier.h"

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <system_error>
#include <utility>

#include "base/thread_without_signals.h"
#include "monitor/device_keys.h"

namespace tidemark {
namespace {

constexpr std::uint64_t kMinShare = 10;  // a tenth

std::uint64_t bytes_on(const WatchedProcess& process, const MachineState& state, const WatchedDevice* device) {
  if (device == nullptr) return process.pss_bytes.value_or(process.rss_bytes.value_or(0));
  std::uint64_t bytes = 0;
  for (const ProcessOnDevice& on : process.devices) {
    if (&state.devices[on.device] == device && on.held) bytes += on.bytes.value_or(0);
  }
  return bytes;
}

}  // namespace

std::optional<MemoryHolder> largest_holder(const MachineState& state, const WatchedDevice* device) {
  const WatchedProcess* largest = nullptr;
  std::uint64_t most = 0;
  for (const WatchedProcess& process : state.processes) {
    const std::uint64_t bytes = process.ended ? 0 : bytes_on(process, state, device);
    if (bytes <= most) continue;
    largest = &process;
    most = bytes;
  }
  const auto used = device == nullptr ? state.host.used_bytes() : device->used_bytes();
  if (largest == nullptr || most < used.value_or(0) / kMinShare) return std::nullopt;
  MemoryHolder holder;
  holder.process.pid = largest->pid;
  holder.process.kind = largest->kind;
  holder.process.name = largest->name;
  holder.process.on_host = largest->on_host;
  holder.bytes = most;
  return holder;
}

struct RiskNotifier::Shared {
  std::mutex mutex;
  std::condition_variable changed;
  std::vector<RiskListener> listeners;
  std::deque<RiskChange> waiting;
  std::uint64_t dropped = 0;
  bool stop = false;
  bool ended = false;
};

namespace {

// Details of the moment: the change is reported later, when the state has moved on.
void add_circumstances(RiskChange& change, const MachineState& state) {
  if (change.device == kHostKey) {
    change.free_bytes = state.host.free_bytes();
    change.holder = largest_holder(state, nullptr);
    change.new_oom_kills = state.host.new_oom_kills();
    return;
  }
  const auto device = std::find_if(state.devices.begin(), state.devices.end(),
                                   [&](const WatchedDevice& known) { return known.key == change.device; });
  if (device == state.devices.end()) return;
  change.free_bytes = device->free_bytes();
  change.holder = largest_holder(state, &*device);
}

}  // namespace

RiskNotifier::RiskNotifier() : shared_(std::make_shared<Shared>()) {}

RiskNotifier::~RiskNotifier() {
  std::unique_lock lock(shared_->mutex);
  shared_->stop = true;
  shared_->changed.notify_all();
  if (started_) shared_->changed.wait_for(lock, std::chrono::seconds(2), [this] { return shared_->ended; });
}

void RiskNotifier::add(RiskListener listener) {
  {
    const std::lock_guard lock(shared_->mutex);
    shared_->listeners.push_back(std::move(listener));
  }
  if (std::exchange(started_, true)) return;
  try {
    thread_without_signals([shared = shared_] { run(shared); }).detach();
  } catch (const std::system_error&) {
    shared_->ended = true;  // the thread could not be started: listeners are not called
  }
}

void RiskNotifier::run(const std::shared_ptr<Shared>& shared) {
  std::unique_lock lock(shared->mutex);
  while (true) {
    shared->changed.wait(lock, [&] { return shared->stop || !shared->waiting.empty(); });
    if (shared->waiting.empty()) break;
    const RiskChange change = std::move(shared->waiting.front());
    shared->waiting.pop_front();
    const std::vector<RiskListener> listeners = shared->listeners;
    lock.unlock();
    for (const RiskListener& listener : listeners) listener(change);
    lock.lock();
  }
  shared->ended = true;
  shared->changed.notify_all();
}

std::vector<RiskChange> RiskNotifier::observe(const MachineState& state) {
  std::vector<RiskChange> changes;
  bool has_host = false;
  for (const WatchedDevice& device : state.devices) {
    has_host = has_host || device.is_host;
    if (!device.assessed_at_ns) continue;
    observe({device.key, device.info.name, RiskLevel::low, device.risk, *device.assessed_at_ns,
             state.wall_ns(*device.assessed_at_ns), device.limit_bytes()},
            changes);
  }
  if (state.host.assessed_at_ns && !has_host) {
    observe({kHostKey, "", RiskLevel::low, state.host.risk, *state.host.assessed_at_ns,
             state.wall_ns(*state.host.assessed_at_ns), state.host.limit_bytes()},
            changes);
  }
  for (RiskChange& change : changes) add_circumstances(change, state);
  if (changes.empty() || !started_) return changes;
  const std::lock_guard lock(shared_->mutex);
  for (const RiskChange& change : changes) {
    if (shared_->waiting.size() < kMaxWaiting) {
      shared_->waiting.push_back(change);
    } else {
      ++shared_->dropped;
    }
  }
  shared_->changed.notify_all();
  return changes;
}

void RiskNotifier::observe(RiskChange change, std::vector<RiskChange>& changes) {
  Told& told = told_[change.device];
  const RiskLevel level = change.now.level;
  if (level != told.seen) {
    told.seen = level;
    told.seen_since_ns = change.time_ns;
  }
  const bool settled = change.time_ns - told.seen_since_ns >= static_cast<std::uint64_t>(kSettled.count());
  if (level == told.level || (level < told.level && !settled)) return;
  change.before = std::exchange(told.level, level);
  changes.push_back(std::move(change));
}

std::uint64_t RiskNotifier::dropped() const {
  const std::lock_guard lock(shared_->mutex);
  return shared_->dropped;
}

RiskListener on_risk(RiskLevel least, RiskListener act) {
  return [least, act = std::move(act)](const RiskChange& change) {
    if (change.now.level >= least && change.now.level > change.before) act(change);
  };
}

}  // namespace tidemark
