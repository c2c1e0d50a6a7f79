#include "monitor/recordings_watch.h"

#include <algorithm>
#include <limits>
#include <thread>
#include <utility>
#include <variant>

#include "collect/recorder/live/kept_folder.h"
#include "collect/recorder/live/socket_folder.h"
#include "monitor/job_finder.h"
#include "trace/host_sample.h"

namespace tidemark {
namespace {

using Clock = std::chrono::steady_clock;
using namespace std::chrono_literals;

constexpr std::chrono::nanoseconds kFindInterval = 1s;
constexpr std::chrono::nanoseconds kCatchUp = 1s;    // before a report
constexpr std::chrono::nanoseconds kPatience = 30s;  // with a program that has answered before
constexpr std::chrono::nanoseconds kAnswerInterval = 20ms;
constexpr std::size_t kMaxKilled = 16;
constexpr std::size_t kPastForSteps = 50'000;  // events before watching began, if they are needed only for the last
                                               // steps
constexpr std::uint64_t kAllTime = std::numeric_limits<std::uint64_t>::max();

double seconds_between(std::uint64_t from_ns, std::uint64_t to_ns) {
  return static_cast<double>(to_ns - std::min(from_ns, to_ns)) / 1e9;
}

// For a recording that does not contain its own progress.
std::optional<double> seconds_since(const LiveRecording& recording, std::uint64_t time_ns) {
  if (recording.started_wall_ns == 0) return std::nullopt;
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  const auto now_ns = std::chrono::duration_cast<std::chrono::nanoseconds>(now).count();
  return seconds_between(recording.started_wall_ns + time_ns, static_cast<std::uint64_t>(now_ns));
}

void add_killed(std::vector<KilledProcess>& all, const KilledProcess& killed) {
  if (all.size() == kMaxKilled) all.erase(all.begin());
  all.push_back(killed);
}

bool is_listed(const MachineState& state, std::int64_t pid) {
  return std::any_of(state.processes.begin(), state.processes.end(), [pid](const WatchedProcess& process) {
    return process.pid == pid && process.kind != ProcessKind::other_namespace;
  });
}

// std::nullopt if a shorter window may have other steps: steps found by repetition in the window.
std::optional<std::uint64_t> begin_of_last(std::size_t count, const TrainingSteps& steps) {
  const bool named =
      steps.source == TrainingSteps::Source::annotation || steps.source == TrainingSteps::Source::optimizer;
  if (count == 0 || !named || steps.starts.size() <= count) return std::nullopt;
  return steps.starts[steps.starts.size() - count].time_ns;
}

}  // namespace

bool RecordingsWatch::is_of(const Followed& followed, const LiveRecording& recording) {
  return same_recording(followed.process.recording.path, recording.path) &&
         followed.process.recording.started_wall_ns == recording.started_wall_ns;
}

const LiveGrowths* RecordedProcess::growth_on(Device device) const {
  const auto found = std::find_if(growths.begin(), growths.end(), [&](const auto& of) { return of.first == device; });
  return found == growths.end() ? nullptr : &found->second;
}

RecordingsWatch::RecordingsWatch(std::chrono::nanoseconds interval, std::optional<SlidingWindow::Limits> window,
                                 std::size_t most)
    : interval_(interval),
      window_(window),
      most_(most),
      began_wall_ns_(static_cast<std::uint64_t>(
          std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::system_clock::now().time_since_epoch())
              .count())) {}

void RecordingsWatch::update(const MachineState& state, bool only_listed) {
  find(state, only_listed);
  const Clock::time_point until = Clock::now() + limits_.time;
  std::size_t left = followed_.size();
  for (Followed& followed : followed_) {
    const Clock::time_point begin = Clock::now();  // no recording uses the time of those after it
    read_newest(followed, begin + std::max<Clock::duration>(until - begin, {}) / left--);
    if (!followed.process.goes_on()) peaks_.end(followed.recording);
    sample(followed, state);
    if (asks_) ask(followed);
  }
  const Clock::time_point now = Clock::now();
  if (!window_ || !steps_pace_.due(now)) return;
  take_steps();
  const std::chrono::nanoseconds cost = Clock::now() - now;
  steps_pace_.done(now, cost, cost);
}

void RecordingsWatch::take_steps() {
  for (Followed& followed : followed_) {
    if (!followed.process.caught_up || !std::exchange(followed.read_since, false)) continue;
    const TrainingSteps steps = followed.sources.take(window_of(followed), followed.window->begin_ns());
    followed.process.steps = followed.process.lag.is_late() ? std::nullopt : followed.sources.steps();
    if (const auto begin = begin_of_last(window_->steps, steps)) followed.window->forget_before(*begin);
  }
}

void RecordingsWatch::ask(Followed& followed) const {
  if (!followed.process.caught_up || !is_running(followed)) return;
  if (!followed.questions) {
    followed.questions = std::make_unique<ObjectQuestions>(followed.folder, followed.process.recording.pid);
  } else if (followed.questions->update(Clock::now())) {
    followed.questions->ask();
  }
}

// Waits for programs that have answered before.
void RecordingsWatch::await_answers() {
  const Clock::time_point until = Clock::now() + kPatience;
  for (Followed& followed : followed_) {
    if (!followed.questions) continue;
    (void)followed.questions->update(Clock::now());
    if (is_running(followed)) followed.questions->ask();
  }
  const auto is_awaited = [this](Followed& followed) {
    if (!followed.questions) return false;
    (void)followed.questions->update(Clock::now());
    return followed.questions->is_awaited() && is_running(followed);
  };
  while (std::count_if(followed_.begin(), followed_.end(), is_awaited) > 0 && Clock::now() < until) {
    std::this_thread::sleep_for(kAnswerInterval);
    update_recorders();
  }
  for (Followed& followed : followed_) followed.ran_at_assessment = is_running(followed);
}

// The machine notices its end before its recorder does, and that before it is read.
bool RecordingsWatch::is_running(const Followed& followed) const {
  const std::int64_t pid = followed.process.recording.pid;
  return followed.process.goes_on() && is_told(followed) && (!followed.start || start_of(pid) == followed.start);
}

Result<ObjectAnswer> RecordingsWatch::objects(std::size_t position) const {
  const Followed& followed = followed_[position];
  if (!followed.questions) return Error{followed.ran_at_assessment ? kNoAnswer : kEndedBeforeAsked};
  return followed.questions->latest(followed.ran_at_assessment);
}

void RecordingsWatch::assess() {
  catch_up();
  if (asks_) await_answers();
  if (window_) take_steps();
  for (Followed& followed : followed_) {
    followed.process.growths.clear();
    if (!followed.process.lag.all_is_late()) followed.process.growths = followed.sources.assess();
  }
}

// A recording that its recorder still lists would be followed again.
bool RecordingsWatch::can_be_forgotten(const Followed& followed) const {
  return !followed.process.goes_on() && !is_told(followed);
}

bool RecordingsWatch::is_told(const Followed& followed) const {
  return std::any_of(recorders_.begin(), recorders_.end(), [&](const auto& entry) {
    const std::vector<LiveRecording>& told = entry.second.recordings();
    return std::any_of(told.begin(), told.end(),
                       [&](const LiveRecording& recording) { return is_of(followed, recording); });
  });
}

bool RecordingsWatch::heard() const {
  return std::all_of(recorders_.begin(), recorders_.end(), [](const auto& entry) { return entry.second.heard(); });
}

bool RecordingsWatch::caught_up() const {
  return std::all_of(followed_.begin(), followed_.end(), [](const Followed& followed) {
    return followed.process.caught_up || !followed.process.goes_on();
  });
}

void RecordingsWatch::forget_ended() {
  std::erase_if(followed_, [this](const Followed& followed) { return can_be_forgotten(followed); });
}

void RecordingsWatch::update_owners() {
  const Clock::time_point now = Clock::now();
  if (!window_ || !owners_pace_.due(now)) return;
  for (std::size_t n = 0; n < followed_.size(); ++n) {
    const Followed& followed = followed_[n];
    if (!followed.process.goes_on() || !followed.process.caught_up) continue;
    if (followed.process.lag.is_late()) {
      followed_[n].process.owners.clear();  // they are outdated
      continue;
    }
    if (has_attribution(followed.follower->definitions())) {
      add_up_owners(followed_[n].process.owners, attribute(window(n)));
    }
  }
  const Clock::duration took = Clock::now() - now;
  owners_pace_.done(now, took, took);
}

void RecordingsWatch::update_recorders() {
  for (auto recorder = recorders_.begin(); recorder != recorders_.end();) {
    const bool is_there = recorder->second.update();
    take_dumps(recorder->first, recorder->second);
    if (!is_there) told_dumps_.erase(recorder->first);
    recorder = is_there ? std::next(recorder) : recorders_.erase(recorder);
  }
}

// Those of the first message were written before.
void RecordingsWatch::take_dumps(const std::string& socket, const LiveRecorder& recorder) {
  if (!recorder.heard()) return;
  const bool is_first = !told_dumps_.contains(socket);
  std::uint64_t& latest = told_dumps_[socket];
  for (const LiveDump& dump : recorder.dumps().dumps) {
    if (dump.number <= latest) continue;
    latest = dump.number;
    RecordedIncident incident;
    incident.kind = RecordedIncident::Kind::dump;
    incident.dump = dump;
    if (!is_first) add_incident(std::move(incident));
  }
}

void RecordingsWatch::add_incident(RecordedIncident incident) {
  if (incidents_.size() < kMaxIncidents) incidents_.push_back(std::move(incident));
}

// What happened before watching began is not news.
bool RecordingsWatch::is_new(const Followed& followed) const {
  return followed.process.caught_up || followed.process.recording.started_wall_ns >= began_wall_ns_;
}

Result<std::string> RecordingsWatch::recorder_of(std::int64_t pid) const {
  for (const auto& [socket, recorder] : recorders_) {
    const std::vector<LiveRecording>& recordings = recorder.recordings();
    const bool is_its = std::any_of(recordings.begin(), recordings.end(),
                                    [pid](const LiveRecording& recording) { return recording.pid == pid; });
    if (!is_its) continue;
    if (recorder.dumps().keeps) return socket;
    return Error{"it is recorded as a whole, not by a flight recorder (tidemark run --keep)"};
  }
  return Error{"it is not recorded by a flight recorder (tidemark run --keep)"};
}

Result<void> RecordingsWatch::ask_for_dump(std::int64_t pid, std::string_view request) {
  const auto socket = recorder_of(pid);
  if (!socket) return socket.error();
  if (recorders_.at(*socket).ask_for_dump(request)) return {};
  return Error{"its recorder does not answer"};
}

void RecordingsWatch::find(const MachineState& state, bool only_listed) {
  update_recorders();
  if (!found_at_ || Clock::now() - *found_at_ >= kFindInterval) {
    found_at_ = Clock::now();
    for (const std::string& socket : SocketFolder::live_sockets()) {
      if (recorders_.contains(socket)) continue;
      if (auto recorder = LiveRecorder::connect(socket)) recorders_.emplace(socket, std::move(*recorder));
    }
  }
  for (const auto& [socket, recorder] : recorders_) {
    for (const LiveRecording& recording : recorder.recordings()) {
      if (!only_listed || is_listed(state, recording.pid)) follow(recording, socket);
    }
  }
}

void RecordingsWatch::follow(const LiveRecording& recording, const std::string& socket) {
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
  followed.folder = socket.substr(0, socket.rfind('/'));
  followed.start = start_of(recording.pid);
  followed.recording = begin_peaks(followed);
  if (window_) {
    SlidingWindow::Limits past = *window_;
    if (past.steps > 0) past.events = std::min(past.events, kPastForSteps);
    followed.window.emplace(past);
  }
  auto follower = Follower::open_live(recording.path);
  if (follower) {
    followed.follower = std::move(*follower);
  } else {
    followed.process.problem = follower.error().message;
  }
}

RecordedPeaks::Recording RecordingsWatch::begin_peaks(const Followed& followed) {
  const LiveRecording& recording = followed.process.recording;
  return peaks_.begin(followed.folder, recording.path, recording.started_ns);
}

// For a kept window, no more than it contains is remembered; all its segments are deleted at the end of the job. Until
// it has been read as far as before, the window shows the past. `latest`: begins at the latest place, not with the
// whole kept window.
bool RecordingsWatch::read_anew(Followed& followed, bool latest) {
  const std::string& path = followed.process.recording.path;
  auto follower = latest ? Follower::open_latest(path) : Follower::open_live(path);
  if (!follower) return false;
  followed.skipped_before += followed.follower->passed_over();
  followed.follower = std::move(*follower);
  followed.sampled_devices.clear();
  followed.process.caught_up = false;
  if (window_) followed.window.emplace(*window_);
  begin_anew(followed);
  return true;
}

// The next events begin with the live blocks.
void RecordingsWatch::begin_anew(Followed& followed) {
  followed.anew_after_ns = followed.read_until_ns;
  peaks_.end(followed.recording);
  followed.recording = begin_peaks(followed);
  FollowedBatch known;
  known.samples = followed.sampled_devices;
  peaks_.add(followed.recording, known);
  followed.pinned_bytes.reset();
  followed.cpu_bytes = 0;
}

// The gap between the previous reading and the new beginning.
void RecordingsWatch::see_gap(Followed& followed, const Event& event) const {
  if (!followed.anew_after_ns || event.kind != EventKind::resume) return;
  if (event.time_ns <= *std::exchange(followed.anew_after_ns, std::nullopt)) return;
  followed.process.lag.skipped_until_ns = event.time_ns;
  followed.process.steps.reset();
  followed.sources.miss();
  // All data from before watching began has been read.
  followed.process.caught_up = true;
  if (followed.window) followed.window->set_limits(*window_);
}

// Totals first: they are current, however many events there are.
void RecordingsWatch::read_newest(Followed& followed, Clock::time_point until) {
  if (followed.follower == nullptr || !followed.process.problem.empty()) return;
  scan_ahead(followed);
  if (!followed.past_bytes) followed.past_bytes = followed.follower->behind();
  if (is_too_late(followed)) pass_over(followed);
  std::uint64_t bytes = 0;
  bool at_end = false;
  while (!at_end) {
    const std::uint64_t before = followed.follower->offset();
    at_end = !read(followed);
    bytes += followed.follower->offset() - std::min(before, followed.follower->offset());
    if (bytes >= limits_.bytes || Clock::now() >= until) break;
  }
  RecordingLag& lag = followed.process.lag;
  lag.skipped_events = followed.skipped_before + followed.follower->passed_over();
  lag.behind_bytes = at_end ? 0 : followed.follower->behind();
  lag.behind_seconds = 0.0;
  if (lag.behind_bytes == 0) return;
  scan_ahead(followed);
  lag.behind_seconds = followed.newest_ns > 0
                           ? std::optional(seconds_between(followed.read_until_ns, followed.newest_ns))
                           : seconds_since(followed.process.recording, followed.read_until_ns);
  if (lag.is_late()) followed.process.steps.reset();
}

void RecordingsWatch::scan_ahead(Followed& followed) {
  ScannedPart part;
  const bool all = followed.follower->scan_ahead(part);
  if (!part.totals) return;
  followed.newest_ns = std::max(followed.newest_ns, part.totals->time_ns);
  take(followed, *part.totals);
  followed.process.lag.has_newest_totals = all;
}

// One update was not enough: a program that resumes after a pause is not late. Data from before watching began is read
// as long as it does not grow.
bool RecordingsWatch::is_too_late(const Followed& followed) const {
  const bool is_first = !followed.process.caught_up && followed.read_until_ns == 0;
  if (!followed.follower->can_pass_over() || (followed.process.lag.behind_bytes == 0 && !is_first)) return false;
  if (seconds_between(followed.read_until_ns, followed.newest_ns) < limits_.late_seconds) return false;
  const std::uint64_t bytes = followed.follower->behind();
  return followed.process.caught_up || followed.process.lag.skipped_until_ns || bytes > limits_.past_bytes ||
         bytes > followed.past_bytes.value_or(bytes) + limits_.bytes;
}

void RecordingsWatch::pass_over(Followed& followed) {
  if (followed.follower->is_kept_part()) {
    read_anew(followed, true);
  } else {
    followed.follower->pass_over();
  }
}

// Reads the latest data for a report; events that the program adds meanwhile do not delay it.
void RecordingsWatch::catch_up() {
  const Clock::time_point until = Clock::now() + kCatchUp;
  update_recorders();
  for (Followed& followed : followed_) {
    do {
      read_newest(followed, until);
    } while (followed.process.lag.behind_bytes > 0 && followed.process.goes_on() && Clock::now() < until);
  }
}

bool RecordingsWatch::read(Followed& followed) {
  FollowedBatch batch;
  const FollowState before = followed.follower->state();
  const bool lost_track = followed.follower->is_kept_part() && before == FollowState::changed;
  const bool is_over = lost_track || (before == FollowState::growing && followed.follower->moved_on());
  const bool is_anew = is_over && read_anew(followed, false);
  const auto more = followed.follower->next(batch);
  followed.process.state = followed.follower->state();
  if (!more) {
    followed.process.problem = more.error().message;
    return false;
  }
  if (batch.begins_anew) {
    begin_anew(followed);
    if (followed.window) followed.window->begin_anew();
  }
  for (const SampleRecord& record : batch.samples) {
    if (std::holds_alternative<SampledDevice>(record)) followed.sampled_devices.push_back(record);
    if (const auto* killed = std::get_if<KilledProcess>(&record)) {
      add_killed(followed.process.killed, *killed);
      RecordedIncident incident;
      incident.kind = RecordedIncident::Kind::killed;
      incident.pid = killed->process.pid;
      incident.process = killed->process.name;
      if (is_new(followed)) add_incident(std::move(incident));
    }
    const auto* device = std::get_if<SampledDevice>(&record);
    if (device == nullptr || !device->cuda_index) continue;
    followed.uuids[static_cast<std::int8_t>(*device->cuda_index)] = device->uuid;
  }
  for (const Event& event : batch.events) {
    see_gap(followed, event);
    count_pinned(followed.pinned_bytes, event);
    take(followed, event);
    if (event.kind == EventKind::out_of_memory && is_new(followed)) {
      RecordedIncident incident;
      incident.pid = followed.process.recording.pid;
      incident.device = device_of(followed, event.device).key;
      if (incident.device.empty()) incident.device = to_string(event.device);
      incident.bytes = event.size;
      add_incident(std::move(incident));
    }
  }
  if (!batch.events.empty()) {
    followed.read_until_ns = batch.events.back().time_ns;
    followed.taken_until_ns = std::max(followed.taken_until_ns, followed.read_until_ns);
  }
  const bool is_newest = followed.read_until_ns >= followed.taken_until_ns;
  if (is_newest && followed.pinned_bytes) followed.process.cuda_pinned_bytes = followed.pinned_bytes;
  peaks_.add(followed.recording, batch);
  if (!*more) {
    followed.process.caught_up = true;
    if (followed.window) followed.window->set_limits(*window_);
    peaks_.caught_up(followed.recording);
  }
  followed.read_since = followed.read_since || *more;
  if (followed.window) batch.deliver_to(*followed.window);
  // A program may run for weeks: unused marks before the window are dropped.
  followed.follower->forget_marks_before(followed.window ? followed.window->begin_ns() : kAllTime);
  return *more || is_anew;
}

RecordedDevice& RecordingsWatch::device_of(Followed& followed, Device device) {
  std::vector<RecordedDevice>& devices = followed.process.devices;
  const auto known = std::ranges::find(devices, device, &RecordedDevice::device);
  if (known != devices.end()) return *known;
  devices.emplace_back().device = device;
  return devices.back();
}

// Totals of events that are not read yet.
void RecordingsWatch::take(Followed& followed, const RunningTotals& totals) {
  if (totals.time_ns < followed.taken_until_ns || totals.time_ns <= followed.read_until_ns) return;
  followed.taken_until_ns = totals.time_ns;
  for (const DeviceRunningTotals& of : totals.devices) {
    if (is_driver_memory(of.device)) {
      if (!followed.process.cuda_pinned_bytes) followed.process.cuda_pinned_bytes = 0;
      if (of.device.type == DeviceType::cuda_host) followed.process.cuda_pinned_bytes = of.live;
      continue;
    }
    if (!of.has_totals && of.device.type != DeviceType::cpu) continue;
    RecordedDevice& device = device_of(followed, of.device);
    device.allocated_bytes = of.has_totals ? of.allocated : of.live;
    device.peak_allocated_bytes =
        std::max(device.peak_allocated_bytes, of.has_totals ? of.peak_allocated : of.peak_live);
    if (!of.has_totals) continue;
    device.reserved_bytes = of.reserved;
    device.peak_reserved_bytes = std::max(device.peak_reserved_bytes, of.peak_reserved);
  }
}

void RecordingsWatch::take(Followed& followed, const Event& event) {
  const bool is_block = event.kind == EventKind::allocate || event.kind == EventKind::free;
  const bool on_cpu = is_block && event.device.type == DeviceType::cpu;
  // A new beginning starts with the live blocks. A free has the size of its block.
  if (on_cpu) followed.cpu_bytes = held_after(event.kind, event.size, followed.cpu_bytes);
  if (event.time_ns < followed.taken_until_ns) return;
  if ((!event.has_totals && !on_cpu) || is_driver_memory(event.device)) return;
  RecordedDevice* const device = &device_of(followed, event.device);
  device->allocated_bytes = event.has_totals ? event.total_allocated : followed.cpu_bytes;
  device->peak_allocated_bytes = std::max(device->peak_allocated_bytes, device->allocated_bytes);
  if (!event.has_totals) return;
  device->reserved_bytes = event.total_reserved;
  device->peak_reserved_bytes = std::max(device->peak_reserved_bytes, event.total_reserved);
}

// Also after a new beginning, which starts with the live blocks.
void RecordingsWatch::count_pinned(std::optional<std::uint64_t>& pinned, const Event& event) {
  if (!is_driver_memory(event.device)) return;
  if (!pinned) pinned = 0;
  if (event.device.type == DeviceType::cuda_host) pinned = held_after(event.kind, event.size, *pinned);
}

// Without a GPU, the host is a device.
bool RecordingsWatch::is_same(const Followed& followed, Device device, const WatchedDevice& watched) {
  if (device.type == DeviceType::cpu) return watched.is_host;
  const auto uuid = followed.uuids.find(device.index);
  return uuid != followed.uuids.end() && !uuid->second.empty() && watched.info.uuid == uuid->second;
}

void RecordingsWatch::sample(Followed& followed, const MachineState& state) const {
  RecordedProcess& process = followed.process;
  const bool is_known = process.caught_up || process.lag.has_newest_totals;
  if (!is_known || process.lag.all_is_late() || !process.goes_on()) return;
  const bool first = !followed.sampled_at_ns.has_value();
  if (!first && state.now_ns < *followed.sampled_at_ns + static_cast<std::uint64_t>(interval_.count())) return;
  followed.sampled_at_ns = state.now_ns;
  for (RecordedDevice& device : process.devices) {
    if (device.key.empty()) {
      for (const WatchedDevice& watched : state.devices) {
        if (is_same(followed, device.device, watched)) device.key = watched.key;
      }
    }
    // Peaks from before watching began do not count.
    const bool begins = device.allocated.empty() && first;
    const auto peak_allocated = begins ? std::nullopt : std::optional(device.peak_allocated_bytes);
    device.allocated.add(state.now_ns, device.allocated_bytes, peak_allocated);
    followed.sources.add(device.device, {state.now_ns, device.allocated_bytes, peak_allocated, process.steps});
    device.peak_allocated_bytes = device.allocated_bytes;
    if (!device.reserved_bytes) continue;
    const std::uint64_t reserved = *device.reserved_bytes;
    device.reserved.add(state.now_ns, reserved, begins ? std::nullopt : std::optional(device.peak_reserved_bytes));
    if (reserved > 0 && device.allocated_bytes <= reserved) {
      device.unused_share.add(1 - static_cast<double>(device.allocated_bytes) / static_cast<double>(reserved));
    }
    device.peak_reserved_bytes = reserved;
  }
}

std::optional<std::uint64_t> cuda_pinned_bytes(const std::vector<RecordedProcess>& processes) {
  std::optional<std::uint64_t> all;
  for (const RecordedProcess& process : processes) {
    if (process.goes_on()) add_known(all, process.cuda_pinned_bytes);
  }
  return all;
}

std::vector<RecordedProcess> RecordingsWatch::processes() const {
  std::vector<RecordedProcess> processes;
  processes.reserve(followed_.size());
  for (const Followed& followed : followed_) processes.push_back(followed.process);
  return processes;
}

std::vector<ProcessSteps> RecordingsWatch::steps() const {
  std::vector<ProcessSteps> all;
  for (const Followed& followed : followed_) {
    const RecordedProcess& process = followed.process;
    if (!process.steps || !process.goes_on() || process.lag.is_late()) continue;
    const std::int64_t pid = process.recording.pid;
    for (const RecordedDevice& device : process.devices) {
      all.push_back({pid, device.key, device.reserved_bytes.value_or(0), *process.steps});
    }
    if (process.devices.empty()) all.push_back({pid, "", 0, *process.steps});
  }
  return all;
}

Store RecordingsWatch::window(std::size_t position) const {
  return window_of(followed_[position]);
}

const Definitions& RecordingsWatch::definitions_of(const Followed& followed) {
  static const Definitions kNone;
  return followed.follower == nullptr ? kNone : followed.follower->definitions();
}

Store RecordingsWatch::window_of(const Followed& followed) {
  Store store = followed.window->store(followed.process.recording.path, definitions_of(followed));
  store.source.growing = followed.process.state == FollowState::growing;  // a missing end is not a loss yet
  return store;
}

std::uint64_t RecordingsWatch::window_begin_ns(std::size_t position) const {
  return followed_[position].window->begin_ns();
}

}  // namespace tidemark
