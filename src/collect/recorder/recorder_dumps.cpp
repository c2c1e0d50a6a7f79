// What is kept of a job's processes, and when it is written.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "collect/recorder/recorder.h"

namespace tidemark {
namespace {

using Clock = std::chrono::steady_clock;
using namespace std::chrono_literals;

// A program that does not survive a failed request ends meanwhile; its dump then shows its end too.
constexpr std::chrono::seconds kOomGrace{10};
// A program that survives its failures, over and over, shall not fill the disk.
constexpr std::chrono::minutes kBetweenDumps{10};
constexpr int kMaxDumps = 16;
// What ends so soon after a failed request ends because of it; and one failure is told by one dump.
constexpr std::chrono::seconds kSameFailure{60};
// The kernel may kill one process after the other: one dump tells of all.
constexpr std::chrono::seconds kKillGrace{1};
constexpr std::size_t kMaxKilled = 64;
// Where no time was given.
constexpr std::chrono::hours kKeptOfEnded{1};

}  // namespace

bool Recorder::may_dump() const {
  return !last_dump_ || (Clock::now() - *last_dump_ > kBetweenDumps && dump_count_ < kMaxDumps);
}

void Recorder::note_killed(const KilledProcess& killed) {
  if (!options_.keep || !options_.keep->dump.on_oom || killed_.size() >= kMaxKilled) return;
  if (killed_.empty()) {
    if (!may_dump()) return;
    first_killed_ = Clock::now();
  }
  killed_.push_back(killed);
}

bool Recorder::has_failed(Client& client) {
  const std::uint64_t count = client.session->oom_count();
  return std::exchange(client.oom_count, count) != count;
}

void Recorder::note_oom() {
  last_oom_ = Clock::now();
  if (!first_oom_ && may_dump()) first_oom_ = last_oom_;
}

void Recorder::look_for_oom() {
  for (Client& client : clients_) {
    if (client.session != nullptr && has_failed(client)) note_oom();
  }
  if (!options_.keep->dump.on_oom || dump_writer_.busy()) return;  // what is due stays so
  if (!killed_.empty() && Clock::now() - first_killed_ > kKillGrace) dump(DumpReason::host_oom);
  if (first_oom_ && Clock::now() - *first_oom_ > kOomGrace) dump(DumpReason::device_oom);
}

void Recorder::dump_for_signal() {
  if (!options_.keep || !options_.keep->dump.on_signal) return;
  if (dump_writer_.busy()) return notices_.say("a dump is being written already: this signal asks for no other");
  dump(DumpReason::signal);
}

void Recorder::dump(DumpReason reason) {
  std::vector<KeptWindow> windows;
  const auto add = [&](ProcessInfo process, SegmentFiles files) {
    if (!files.empty()) windows.push_back({std::move(process), std::move(files)});
  };
  for (const Retired& retired : retired_) add(retired.window.process, retired.window.files);
  for (Client& client : clients_) {
    if (client.session == nullptr) continue;
    if (auto cut = client.session->cut(); !cut) say_stopped(client, cut.error().message);
    add(client.session->process(), client.window->complete());
  }
  // The first that began gets the name that was asked for.
  std::stable_sort(windows.begin(), windows.end(), [](const KeptWindow& left, const KeptWindow& right) {
    return left.process.start_wall_ns < right.process.start_wall_ns;
  });
  std::vector<KilledProcess> killed;
  if (reason == DumpReason::host_oom) killed = std::exchange(killed_, {});
  // The dump that somebody asks for tells nobody that memory has run out.
  if (reason != DumpReason::signal) {
    first_oom_.reset();
    last_dump_ = Clock::now();
  }
  const bool another_is_due = first_oom_ || !killed_.empty();
  if (windows.empty()) return notices_.say("no dump: nothing has been recorded so far");
  dump_writer_.wait();
  take_written_dump();
  Dump wanted;
  wanted.reason = reason;
  if (reason == DumpReason::host_oom) {
    wanted.unexplained_kills = killed.empty() ? oom_watch_->unexplained() : 0;
    wanted.killed = std::move(killed);
    wanted.cgroup = oom_watch_->cgroup();
  }
  ++dump_count_;
  dump_writer_.start(std::move(wanted), std::move(windows),
                     dump_count_ == 1 ? options_.output : numbered_output(options_.output, dump_count_),
                     options_.overwrite, kept_folder_->path(), options_.keep->describe);
  if (!another_is_due) retired_.clear();
}

void Recorder::take_written_dump() {
  if (auto written = dump_writer_.take()) dumps_.push_back(std::move(*written));
}

void Recorder::retire(Client& client) {
  retired_.push_back({{client.session->process(), client.window->complete()}, Clock::now()});
  client.window = nullptr;
  forget_retired();
}

// Processes come and go for weeks: of those that have gone, not more is kept than two may have.
void Recorder::forget_retired() {
  const WindowLimits& limits = options_.keep->limits;
  const std::chrono::nanoseconds longest =
      limits.time_ns != 0 ? std::chrono::nanoseconds(limits.time_ns) : std::chrono::nanoseconds(kKeptOfEnded);
  std::uint64_t bytes = 0;
  auto first = retired_.end();
  while (first != retired_.begin()) {
    const Retired& retired = *std::prev(first);
    for (const auto& file : retired.window.files) bytes += file->bytes;
    const bool too_much = first != retired_.end() && limits.bytes != 0 && bytes / 2 > limits.bytes;
    if (too_much || Clock::now() - retired.ended > longest) break;
    --first;
  }
  retired_.erase(retired_.begin(), first);
}

void Recorder::program_ended(std::optional<int> exit_code) {
  if (!options_.keep) return;
  const bool failed = exit_code != 0;
  const DumpTriggers& triggers = options_.keep->dump;
  const auto recently = [](const auto& time) { return time && Clock::now() - *time < kSameFailure; };
  for (const KilledProcess& killed : oom_watch_->program_ended()) note_killed(killed);
  const bool others_killed = failed && !recently(last_dump_) && oom_watch_->unexplained() > 0;
  if (!killed_.empty() || (triggers.on_oom && others_killed)) {
    dump(DumpReason::host_oom);
  } else if (triggers.on_oom && (first_oom_ || (failed && recently(last_oom_) && !recently(last_dump_)))) {
    dump(DumpReason::device_oom);
  } else if (triggers.on_exit_code && failed && !recently(last_dump_)) {
    dump(DumpReason::exit_code);
  }
  dump_writer_.wait();
  take_written_dump();
  has_unrequested_window_ = dump_count_ == 0 && !retired_.empty();
  retired_.clear();
  finished_ = true;
}

}  // namespace tidemark
