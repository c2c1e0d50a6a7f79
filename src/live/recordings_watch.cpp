#include "live/recordings_watch.h"

#include <algorithm>
#include <utility>
#include <variant>

#include "collect/recorder/kept_folder.h"
#include "collect/recorder/socket_folder.h"

namespace tidemark {
namespace {

using Clock = std::chrono::steady_clock;
using namespace std::chrono_literals;

constexpr std::chrono::nanoseconds kFindInterval = 1s;
constexpr std::chrono::nanoseconds kReadAtMost = 50ms;

bool is_listed(const MachineState& state, std::int64_t pid) {
  return std::any_of(state.processes.begin(), state.processes.end(), [pid](const WatchedProcess& process) {
    return process.pid == pid && process.kind != ProcessKind::other_namespace;
  });
}

}  // namespace

bool RecordingsWatch::is_of(const Followed& followed, const LiveRecording& recording) {
  return same_recording(followed.process.recording.path, recording.path) &&
         followed.process.recording.started_wall_ns == recording.started_wall_ns;
}

void RecordingsWatch::update(const MachineState& state, bool only_listed) {
  find(state, only_listed);
  const Clock::time_point until = Clock::now() + kReadAtMost;
  for (Followed& followed : followed_) {
    while (followed.follower != nullptr && followed.process.problem.empty() && Clock::now() < until) {
      const std::uint64_t before = followed.follower->offset();
      read(followed);
      if (followed.follower->offset() == before) break;
    }
    sample(followed, state);
  }
}

bool RecordingsWatch::is_over(const Followed& followed) {
  return followed.process.state != FollowState::growing || !followed.process.problem.empty();
}

// One that its recorder still tells of would be followed again.
bool RecordingsWatch::can_be_forgotten(const Followed& followed) const {
  if (!is_over(followed)) return false;
  return std::none_of(recorders_.begin(), recorders_.end(), [&](const auto& entry) {
    const std::vector<LiveRecording>& told = entry.second.recordings();
    return std::any_of(told.begin(), told.end(),
                       [&](const LiveRecording& recording) { return is_of(followed, recording); });
  });
}

bool RecordingsWatch::heard() const {
  return std::all_of(recorders_.begin(), recorders_.end(), [](const auto& entry) { return entry.second.heard(); });
}

bool RecordingsWatch::caught_up() const {
  return std::all_of(followed_.begin(), followed_.end(),
                     [](const Followed& followed) { return followed.process.caught_up || is_over(followed); });
}

void RecordingsWatch::forget_ended() {
  std::erase_if(followed_, [this](const Followed& followed) { return can_be_forgotten(followed); });
}

void RecordingsWatch::update_owners() {
  const Clock::time_point now = Clock::now();
  if (!window_ || !owners_pace_.due(now)) return;
  for (std::size_t n = 0; n < followed_.size(); ++n) {
    const Followed& followed = followed_[n];
    if (is_over(followed) || !followed.process.caught_up) continue;
    if (has_attribution(followed.follower->definitions())) {
      add_up_owners(followed_[n].process.owners, window(n));
    }
  }
  const Clock::duration took = Clock::now() - now;
  owners_pace_.done(now, took, took);
}

void RecordingsWatch::find(const MachineState& state, bool only_listed) {
  for (auto recorder = recorders_.begin(); recorder != recorders_.end();) {
    recorder = recorder->second.update() ? std::next(recorder) : recorders_.erase(recorder);
  }
  if (!found_at_ || Clock::now() - *found_at_ >= kFindInterval) {
    found_at_ = Clock::now();
    for (const std::string& socket : SocketFolder::live_sockets()) {
      if (recorders_.contains(socket)) continue;
      if (auto recorder = LiveRecorder::connect(socket)) recorders_.emplace(socket, std::move(*recorder));
    }
  }
  for (const auto& [socket, recorder] : recorders_) {
    for (const LiveRecording& recording : recorder.recordings()) {
      if (!only_listed || is_listed(state, recording.pid)) follow(recording);
    }
  }
}

void RecordingsWatch::follow(const LiveRecording& recording) {
  const bool known = std::any_of(followed_.begin(), followed_.end(),
                                 [&](const Followed& followed) { return is_of(followed, recording); });
  if (known) return;
  if (followed_.size() >= most_) {
    const auto over = std::find_if(followed_.begin(), followed_.end(),
                                   [this](const Followed& followed) { return can_be_forgotten(followed); });
    if (over == followed_.end()) return;
    followed_.erase(over);
  }
  Followed& followed = followed_.emplace_back();
  followed.process.recording = recording;
  if (window_) followed.window.emplace(*window_);
  auto follower = Follower::open_live(recording.path);
  if (follower) {
    followed.follower = std::move(*follower);
  } else {
    followed.process.problem = follower.error().message;
  }
}

// Of a part that is kept no more than that is remembered; all of it is gone when the job is.
void RecordingsWatch::read_anew(Followed& followed) {
  auto follower = Follower::open_live(followed.process.recording.path);
  if (!follower) return;
  followed.follower = std::move(*follower);
  if (window_) followed.window.emplace(*window_);
}

void RecordingsWatch::read(Followed& followed) {
  FollowedBatch batch;
  const FollowState before = followed.follower->state();
  const bool lost_track = followed.follower->is_kept_part() && before == FollowState::changed;
  if (lost_track || (before == FollowState::growing && followed.follower->moved_on())) read_anew(followed);
  const auto more = followed.follower->next(batch);
  followed.process.state = followed.follower->state();
  if (!more) {
    followed.process.problem = more.error().message;
    return;
  }
  if (!*more) followed.process.caught_up = true;
  for (const SampleRecord& record : batch.samples) {
    const auto* device = std::get_if<SampledDevice>(&record);
    if (device == nullptr || !device->cuda_index) continue;
    followed.uuids[static_cast<std::int8_t>(*device->cuda_index)] = device->uuid;
  }
  for (const Event& event : batch.events) {
    if (event.time_ns >= followed.taken_until_ns) take(followed, event);
  }
  if (!batch.events.empty()) followed.taken_until_ns = std::max(followed.taken_until_ns, batch.events.back().time_ns);
  if (followed.window) batch.deliver_to(*followed.window);
}

void RecordingsWatch::take(Followed& followed, const Event& event) {
  if (!event.has_totals || is_driver_memory(event.device)) return;
  std::vector<RecordedDevice>& devices = followed.process.devices;
  auto device = std::find_if(devices.begin(), devices.end(),
                             [&](const RecordedDevice& known) { return known.device == event.device; });
  if (device == devices.end()) {
    device = devices.emplace(devices.end());
    device->device = event.device;
  }
  device->allocated_bytes = event.total_allocated;
  device->reserved_bytes = event.total_reserved;
  device->peak_allocated_bytes = std::max(device->peak_allocated_bytes, event.total_allocated);
  device->peak_reserved_bytes = std::max(device->peak_reserved_bytes, event.total_reserved);
}

void RecordingsWatch::sample(Followed& followed, const MachineState& state) const {
  RecordedProcess& process = followed.process;
  if (!process.caught_up || process.state != FollowState::growing || !process.problem.empty()) return;
  const bool first = !followed.sampled_at_ns.has_value();
  if (!first && state.now_ns < *followed.sampled_at_ns + static_cast<std::uint64_t>(interval_.count())) return;
  followed.sampled_at_ns = state.now_ns;
  for (RecordedDevice& device : process.devices) {
    if (device.key.empty() && followed.uuids.contains(device.device.index)) {
      for (const WatchedDevice& watched : state.devices) {
        const std::string& uuid = followed.uuids[device.device.index];
        if (!uuid.empty() && watched.info.uuid == uuid) device.key = watched.key;
      }
    }
    // Peaks from before watching began are not its own.
    const bool begins = device.reserved.empty() && first;
    device.allocated.add(state.now_ns, device.allocated_bytes,
                         begins ? std::nullopt : std::optional(device.peak_allocated_bytes));
    device.reserved.add(state.now_ns, device.reserved_bytes,
                        begins ? std::nullopt : std::optional(device.peak_reserved_bytes));
    if (device.reserved_bytes > 0 && device.allocated_bytes <= device.reserved_bytes) {
      device.unused_share.add(1 -
                              static_cast<double>(device.allocated_bytes) / static_cast<double>(device.reserved_bytes));
    }
    device.peak_allocated_bytes = device.allocated_bytes;
    device.peak_reserved_bytes = device.reserved_bytes;
  }
}

std::vector<RecordedProcess> RecordingsWatch::processes() const {
  std::vector<RecordedProcess> processes;
  processes.reserve(followed_.size());
  for (const Followed& followed : followed_) processes.push_back(followed.process);
  return processes;
}

AttributedStore RecordingsWatch::window(std::size_t position) const {
  const Followed& followed = followed_[position];
  const Definitions none;
  const Definitions& definitions = followed.follower == nullptr ? none : followed.follower->definitions();
  return attribute(followed.window->store(followed.process.recording.path, definitions));
}

std::uint64_t RecordingsWatch::window_begin_ns(std::size_t position) const {
  return followed_[position].window->begin_ns();
}

}  // namespace tidemark
