#include "collect/recorder/recorder.h"

#include <fmt/format.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <new>
#include <string_view>
#include <system_error>
#include <utility>

#include "collect/machine/processes.h"
#include "collect/recorder/process_facts.h"
#include "collect/ring/seccomp.h"

namespace tidemark {

namespace {

constexpr char kFiltered[] =
    "a process put itself under a seccomp filter, which may end it for system calls of recording";

// The rings are read this often while events arrive: at 20 million events a second they hold 25 ms.
constexpr int kBusyIntervalMs = 10;
constexpr int kIdleIntervalMs = 40;
constexpr int kIdlePolls = 10;
// A wait that returns this late means that the recorder did not run: SIGSTOP, a frozen control group, no processor.
constexpr std::chrono::milliseconds kStopped{500};
// Events reach the file at the latest after this time, so that a killed recorder loses little, and readers wait little.
constexpr std::chrono::milliseconds kFlush{1000};
constexpr std::chrono::milliseconds kFlushForReaders{100};
// Descriptors kept free for a connection and the memory sent with it. The kernel drops memory without a descriptor.
constexpr unsigned long kDescriptorsToAccept = 2;
// With fewer free descriptors, a recording has no pidfd.
constexpr unsigned long kDescriptorsToWatch = 16;

ScopedFd open_pidfd(pid_t pid) {
  ScopedFd fd(pid > 0 ? static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)) : -1);
  return fd && descriptors_after(fd.get()) < kDescriptorsToWatch ? ScopedFd() : std::move(fd);
}

// A zombie counts as gone: it no longer runs. Without a pidfd (older kernels, sandboxes, few descriptors) it is
// recognized by having no program, if there is a /proc.
bool is_gone(const ScopedFd& pidfd, pid_t pid) {
  if (!pidfd) {
    char nothing = 0;
    if (pid <= 0) return false;
    if (::kill(pid, 0) != 0) return errno == ESRCH;
    return ::readlink(fmt::format("/proc/{}/exe", pid).c_str(), &nothing, 1) < 0 && errno == ENOENT &&
           ::access("/proc/self", F_OK) == 0;
  }
  pollfd entry{pidfd.get(), POLLIN, 0};
  return ::poll(&entry, 1, 0) == 1;
}

using Clock = std::chrono::steady_clock;
using namespace std::chrono_literals;

// A program that ends after a failed request does so within this time; its dump then shows its end too.
constexpr std::chrono::seconds kOomGrace{10};
// A program that survives repeated failures must not fill the disk.
constexpr std::chrono::minutes kBetweenDumps{10};
constexpr int kMaxDumps = 16;
constexpr std::chrono::seconds kBetweenRequests{10};  // nor must readers
// A program that ends this soon after a failed request ends because of it; one failure makes one dump.
constexpr std::chrono::seconds kSameFailure{60};
// The kernel may kill several processes in a row: one dump covers all.
constexpr std::chrono::seconds kKillGrace{1};
constexpr std::size_t kMaxKilled = 64;
// If no time was given.
constexpr std::chrono::hours kKeptOfEnded{1};

constexpr std::size_t kMaxLines = 3;

// By kind; empty if the end of a run prints the total.
constexpr std::string_view kOthers[] = {
    "",
    "recordings that stopped",
    "recordings that reached --max-size",
    "processes still running, whose recordings were ended",
};

}  // namespace

Result<std::unique_ptr<Recorder>> Recorder::create(RecorderOptions options,
                                                   std::function<void(const std::string&)> say) {
  auto folder = SocketFolder::create();
  if (!folder) return folder.error();
  auto listener = folder->listen();
  if (!listener) return listener.error();
  auto readers = folder->listen_to_readers();
  if (!readers) return readers.error();
  std::shared_ptr<KeptFolder> kept;
  if (options.keep) {
    auto created = KeptFolder::create(options.output);
    if (!created) return created.error();
    kept = std::move(*created);
  }
  std::unique_ptr<Recorder> recorder(
      new Recorder(std::move(options), std::move(say), std::move(*folder), std::move(*listener), std::move(*readers)));
  recorder->kept_folder_ = std::move(kept);
  return recorder;
}

Recorder::Recorder(RecorderOptions options, std::function<void(const std::string&)> say, SocketFolder folder,
                   ScopedFd listener, ScopedFd readers)
    : options_(std::move(options)),
      notices_(std::move(say)),
      clock_(choose_clock()),
      outputs_(options_.output, options_.overwrite),
      sampler_(options_.samples, ::getpid(), clock_),
      folder_(std::move(folder)),
      reception_(std::move(listener)),
      readers_(std::move(readers)) {
  if (options_.samples.enabled || options_.keep) oom_watch_.emplace(options_.samples.places.root);
}

// If it ends early, the kept segments stay.
Recorder::~Recorder() {
  if (finished_) return;
  for (Client& client : clients_) {
    if (client.window != nullptr) client.window->leave();
  }
  for (Retired& retired : retired_) {
    for (const auto& file : retired.window.files) file->leave();
  }
}

std::vector<std::string> Recorder::environment() const {
  std::vector<std::string> variables = {
      fmt::format("{}={}", ring::kSocketVariable, folder_.socket()),
      fmt::format("{}={}", ring::kStacksVariable, options_.stack_mode),
      fmt::format("{}={}", ring::kAttributeVariable, options_.attribute ? "on" : "off"),
      fmt::format("{}={}", ring::kClockVariable, clock_.clock() == ring::Clock::tsc ? "tsc" : "monotonic")};
  const std::uint32_t filters = ring::seccomp_filters() + options_.seccomp_filters;
  if (filters > 0) variables.push_back(fmt::format("{}={}", ring::kFiltersVariable, filters));
  if (options_.paused) variables.push_back(fmt::format("{}=1", ring::kPausedVariable));
  return variables;
}

void Recorder::poll_once(std::span<pollfd> others) {
  std::vector<pollfd> polled(others.begin(), others.end());
  reception_.add_to(polled);
  for (const Client& client : clients_) polled.push_back({client.pidfd.get(), POLLIN, 0});
  const auto before = std::chrono::steady_clock::now();
  ::poll(polled.data(), polled.size(), idle_polls_ < kIdlePolls ? kBusyIntervalMs : kIdleIntervalMs);
  const bool was_stopped = std::chrono::steady_clock::now() - before > kStopped;
  std::copy_n(polled.begin(), others.size(), others.begin());

  reception_.take([this](Arrival arrival) {
    if (!arrival.refused.empty()) return not_recorded(arrival.pid, arrival.refused);
    admit(std::move(arrival.memory), arrival.pid);
  });
  ++idle_polls_;
  take_samples();
  for (Client& client : clients_) drain(client, was_stopped);
  find_failures();
  end_exited();
  if (options_.keep) {
    dump_if_due();
    take_written_dump();
  }
  notify_readers();
}

void Recorder::not_recorded(pid_t pid, const std::string& why) {
  if (unrecorded_.count++ == 0) unrecorded_.reason = why;
  notices_.say(Notices::Kind::not_recorded,
               fmt::format("process {} is not recorded: {}; the program continues", pid, why));
}

bool Recorder::end_earlier_image(pid_t pid) {
  bool ended = false;
  for (Client& client : clients_) {
    if (pid <= 0 || client.pid != pid || client.session == nullptr) continue;
    if (is_gone(client.pidfd, pid)) record_exit_reason(client);  // else the process is alive
    end(client, true);
    ended = true;
  }
  return ended;
}

void Recorder::admit(ScopedFd memory, pid_t pid) {
  // A process that called exec: its earlier image is gone, and nothing writes to the earlier memory any more. The
  // descriptors of that recording are free.
  const bool room = end_earlier_image(pid) || descriptors_after(memory.get()) >= kDescriptorsToAccept - 1;
  if (oom_watch_) oom_watch_->began(pid);
  auto shared = SharedMemory::map(std::move(memory));
  if (!shared) return not_recorded(pid, shared.error().message);
  ring::Control& control = (*shared)->get()->control;
  const auto refuse = [&](const std::string& why) {
    control.stop.store(1, std::memory_order_relaxed);
    not_recorded(pid, why);
  };
  if (!room) return refuse(few_descriptors());
  ProcessInfo process;
  process.pid = pid;
  process.parent_pid = control.parent_pid;
  process.rank = unless_negative(control.rank);
  process.local_rank = unless_negative(control.local_rank);
  process.world_size = unless_negative(control.world_size);
  process.hostname = hostname();
  process.command_line = command_line(pid);
  process.stack_mode = options_.stack_mode;
  process.recorder_version = TIDEMARK_VERSION;
  process.start_wall_ns = clock_.wall_ns(control.start_ticks);

  Client client;
  auto writer = open_writer(process, client);
  if (!writer) return refuse(writer.error().message);
  client.pid = pid;
  client.pidfd = open_pidfd(pid);
  client.command = short_command(pid);
  client.session = std::make_unique<Session>(std::move(*shared), clock_, std::move(*writer), std::move(process),
                                             Session::Limits{options_.max_file_bytes, client.window});
  if (devices_) client.session->add(*devices_);
  clients_.push_back(std::move(client));
  sampler_.start();
}

Result<std::unique_ptr<RecordingWriter>> Recorder::open_writer(const ProcessInfo& process, Client& client) {
  if (options_.keep) {
    client.path = kept_folder_->path();
    const auto pid = static_cast<pid_t>(process.pid.value_or(0));
    auto window = WindowWriter::create(open_segments(kept_folder_, pid), options_.keep->limits, process);
    if (!window) return window.error();
    client.window = window->get();
    return std::unique_ptr<RecordingWriter>(std::move(*window));
  }
  auto file = outputs_.open_next(process);
  if (!file) return file.error();
  if (file->renamed)
    notices_.say(fmt::format("{} is taken by another run: recording to {}", options_.output, file->path));
  client.path = file->path;
  auto writer = TraceWriter::create(std::move(file->sink), process);
  if (!writer) return writer.error();
  return std::unique_ptr<RecordingWriter>(std::move(*writer));
}

void Recorder::take_samples() {
  for (Reading& reading : sampler_.collect()) {
    if (const auto* found = std::get_if<DevicesFound>(&reading.what)) {
      devices_ = reading;
      for (const std::string& problem : found->problems) notices_.say(fmt::format("no samples of GPUs: {}", problem));
    }
    if (auto* parts = std::get_if<HostPartsSample>(&reading.what)) name_workers(*parts);
    for (Client& client : clients_) {
      if (client.session != nullptr) client.session->add(reading);
    }
    if (!oom_watch_) continue;
    for (KilledProcess& killed : oom_watch_->take(reading)) add_killed(std::move(killed), reading.ticks);
  }
}

// Workers without a thread name of their own: PyTorch has named their threads since version 2.7 only.
void Recorder::name_workers(HostPartsSample& sample) const {
  for (HostProcess& process : sample.processes) {
    if (process.role != ProcessRole::child && process.role != ProcessRole::main) continue;
    const bool worker = std::any_of(clients_.begin(), clients_.end(), [&](const Client& client) {
      return client.pid == process.pid && client.session != nullptr && client.session->is_data_worker();
    });
    if (worker) process.role = ProcessRole::data_worker;
  }
  number_workers(sample.processes);
}

void Recorder::add_killed(KilledProcess killed, std::uint64_t ticks) {
  note_killed(killed);
  Reading reading;
  reading.ticks = ticks;
  reading.what = std::move(killed);
  for (Client& client : clients_) {
    if (client.session != nullptr) client.session->add(reading);
  }
}

void Recorder::drain(Client& client, bool was_stopped) {
  if (client.session == nullptr || client.session->stopped()) return;
  client.session->flush_after(readers_.count() != 0 ? kFlushForReaders : kFlush);
  Result<std::uint64_t> taken = std::uint64_t{0};
  try {
    taken = client.session->drain(was_stopped);
  } catch (const std::bad_alloc&) {
    taken = client.session->out_of_memory();
  }
  if (!taken) {
    say_stopped(client, taken.error().message);
  } else if (*taken > 0) {
    idle_polls_ = 0;
  }
  if (client.session->size_limit_reached()) {
    say_size_limit(client);
    if (auto finished = client.session->finish(false); !finished) say_stopped(client, finished.error().message);
  }
}

void Recorder::say_stopped(const Client& client, const std::string& why) {
  notices_.say(Notices::Kind::stopped,
               fmt::format("recording of process {} stopped: {}; the program continues", client.pid, why));
}

void Recorder::say_size_limit(const Client& client) {
  notices_.say(Notices::Kind::size_limit,
               fmt::format("recording of process {} stopped: {} reached --max-size; the program continues", client.pid,
                           client.path));
}

void Recorder::record_exit_reason(const Client& client) {
  if (!oom_watch_ || client.session->ended_by_process()) return;
  const std::uint64_t now = clock_.now();
  auto killed = oom_watch_->ended(client.pid, ending_signal(client.pid, client.pidfd.get()), now);
  if (!killed) return;
  if (killed->process.name.empty()) killed->process.name = client.command;
  add_killed(std::move(*killed), now);
}

void Recorder::end(Client& client, bool exited) {
  Session& session = *client.session;
  if (!session.size_limit_reached()) {
    const bool failed_before = session.stopped();
    if (unrecorded_.count > 0) session.add({QualityId::unrecorded_processes, unrecorded_.count});
    if (auto finished = session.finish(exited); !finished && !failed_before) {
      notices_.say(Notices::Kind::stopped, finished.error().message);
    }
    if (session.size_limit_reached()) say_size_limit(client);  // because of events that were still in its rings
  }
  if (client.window != nullptr) {
    if (has_failed(client)) note_oom();
    retire(client);
  }
  // A job that runs for weeks has no use for a list of files.
  if (!options_.keep || files_.empty())
    files_.push_back({client.path, client.pid, session.event_count(), session.dropped_count(), session.bytes_written(),
                      session.stopped()});
  client.pidfd.reset();
  client.session = nullptr;
  reception_.retry_listening();
}

void Recorder::end_exited() {
  for (Client& client : clients_) {
    if (client.session == nullptr) continue;
    const bool gone = !client.session->ended_by_process() && is_gone(client.pidfd, client.pid);
    if (gone) record_exit_reason(client);
    if (gone || client.session->ended_by_process()) end(client, true);
  }
  std::erase_if(clients_, [](const Client& client) { return client.session == nullptr; });
}

void Recorder::notify_readers() {
  readers_.welcome();
  for (const std::string& request : readers_.take_requests()) dump_for_request(request);
  if (readers_.count() == 0) return;
  std::vector<LiveRecording> recordings;
  for (const Client& client : clients_) {
    if (client.session->stopped()) continue;
    if (folder_.has_question(client.pid)) client.session->announce_question();
    const ProcessInfo& process = client.session->process();
    std::error_code error;
    const std::string path = client.window != nullptr ? client.window->path() : client.path;
    recordings.push_back({client.pid, std::filesystem::absolute(path, error).string(), process.rank, client.command,
                          process.start_wall_ns.value_or(0), client.session->started_ns()});
  }
  told_dumps_.keeps = options_.keep.has_value();
  readers_.send(recordings, told_dumps_);
}

std::vector<std::string> Recorder::open_files() const {
  std::vector<std::string> paths;
  for (const Client& client : clients_) paths.push_back(client.path);
  return paths;
}

void Recorder::finish(std::chrono::milliseconds grace) {
  const auto deadline = std::chrono::steady_clock::now() + grace;
  do {
    poll_once({});
  } while (!clients_.empty() && std::chrono::steady_clock::now() < deadline);
  for (Client& client : clients_) {
    notices_.say(Notices::Kind::still_running,
                 fmt::format("process {} is still running: its recording {} was ended", client.pid, client.path));
    end(client, false);
  }
  clients_.clear();
  note_filtered();
  notices_.say_counts();
}

// They do not report it themselves, because that takes system calls.
void Recorder::note_filtered() {
  const std::string marks = folder_.marks();
  const auto count = static_cast<std::uint64_t>(std::count(marks.begin(), marks.end(), 'S'));
  if (count == 0) return;
  if (unrecorded_.count == 0) unrecorded_.reason = kFiltered;
  unrecorded_.count += count;
  notices_.say(Notices::Kind::not_recorded, fmt::format("not recorded: {}", kFiltered));
}

std::string Recorder::no_recording_reason() const {
  if (unrecorded_.count > 0) return unrecorded_.reason;
  const std::string marks = folder_.marks();
  const auto marked = [&marks](char letter) { return marks.find(letter) != std::string::npos; };
  if (marked('F')) return "the collector could not start in the program, which has said why";
  if (options_.paused && marked('T')) {
    return "recording began paused, and no process that loaded PyTorch called tidemark_resume()";
  }
  if (options_.manual && !marks.empty()) {
    return "the program loaded the collector, but did not call tidemark_attach() after PyTorch was loaded, or "
           "allocated no tensor after it";
  }
  if (options_.manual) {
    return "the program did not load the collector (--manual): it loads the library that TIDEMARK_LIBRARY names, and "
           "calls tidemark_attach()";
  }
  if (marked('T')) return "PyTorch was loaded, but it allocated no tensor memory that could be seen";
  if (marked('N')) return "no process of the program loaded PyTorch";
  return "no process of the program reported to the recorder; likely causes: it is statically linked or setuid, clears "
         "LD_PRELOAD, runs as another user or in a container, or was killed before it used PyTorch";
}

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

// The free memory at a failed request is known from samples: the nearer, the better.
void Recorder::find_failures() {
  for (Client& client : clients_) {
    if (client.session == nullptr || !has_failed(client)) continue;
    sampler_.sample_now();
    if (options_.keep) note_oom();
  }
}

void Recorder::dump_if_due() {
  if (!options_.keep->dump.on_oom || dump_writer_.busy()) return;  // a due dump stays due
  if (!killed_.empty() && Clock::now() - first_killed_ > kKillGrace) dump(DumpReason::host_oom);
  if (first_oom_ && Clock::now() - *first_oom_ > kOomGrace) dump(DumpReason::device_oom);
}

void Recorder::dump_for_signal() {
  if (!options_.keep || !options_.keep->dump.on_signal) return;
  if (dump_writer_.busy()) return notices_.say("a dump is being written already: this signal asks for no other");
  dump(DumpReason::signal);
}

void Recorder::dump_for_request(const std::string& request) {
  const auto refuse = [&](const std::string& why) {
    tell_of_dump({0, std::string(name_in(kDumpReasonNames, DumpReason::request)), request, {}, why});
  };
  if (!options_.keep) return refuse("this is no flight recorder (--keep): its recording has everything");
  if (dump_writer_.busy()) return refuse("another dump is being written");
  if (last_request_ && Clock::now() - *last_request_ < kBetweenRequests) {
    return refuse("the dump before was requested just now");
  }
  last_request_ = Clock::now();
  if (!dump(DumpReason::request, request)) refuse("nothing has been recorded so far");
}

void Recorder::tell_of_dump(LiveDump dump) {
  dump.number = ++told_dump_count_;
  if (told_dumps_.dumps.size() == LiveDumps::kMaxDumps) told_dumps_.dumps.erase(told_dumps_.dumps.begin());
  told_dumps_.dumps.push_back(std::move(dump));
}

bool Recorder::dump(DumpReason reason, const std::string& request) {
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
  // The first window that began gets the requested name.
  std::stable_sort(windows.begin(), windows.end(), [](const KeptWindow& left, const KeptWindow& right) {
    return left.process.start_wall_ns < right.process.start_wall_ns;
  });
  std::vector<KilledProcess> killed;
  if (reason == DumpReason::host_oom) killed = std::exchange(killed_, {});
  // A requested dump does not report an OOM.
  if (!is_asked_for(reason)) {
    first_oom_.reset();
    last_dump_ = Clock::now();
  }
  const bool another_is_due = first_oom_ || !killed_.empty();
  if (windows.empty()) {
    notices_.say("no dump: nothing has been recorded so far");
    return false;
  }
  dump_writer_.wait();
  take_written_dump();
  Dump wanted;
  wanted.reason = reason;
  wanted.request = request;
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
  return true;
}

void Recorder::take_written_dump() {
  auto written = dump_writer_.take();
  if (!written) return;
  LiveDump told{0, std::string(name_in(kDumpReasonNames, written->reason)), written->request, {}, ""};
  std::error_code error;
  for (const DumpedFile& file : written->files) told.paths.push_back(std::filesystem::absolute(file.path, error));
  if (!written->errors.empty()) told.problem = written->errors.front();
  tell_of_dump(std::move(told));
  dumps_.push_back(std::move(*written));
}

void Recorder::retire(Client& client) {
  retired_.push_back({{client.session->process(), client.window->complete()}, Clock::now()});
  client.window = nullptr;
  forget_retired();
}

// Processes come and go for weeks: windows of ended processes are limited to twice the window's size.
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
  readers_.send({}, told_dumps_);
  has_unrequested_window_ = dump_count_ == 0 && !retired_.empty();
  retired_.clear();
  finished_ = true;
}

void Notices::say(Kind kind, const std::string& message) {
  if (counts_[static_cast<std::size_t>(kind)]++ < kMaxLines) say_(message);
}

void Notices::say_counts() {
  for (std::size_t kind = 0; kind < counts_.size(); ++kind) {
    if (counts_[kind] > kMaxLines && !kOthers[kind].empty()) {
      say_(fmt::format("more {}: {}", kOthers[kind], counts_[kind] - kMaxLines));
    }
    counts_[kind] = 0;
  }
}

}  // namespace tidemark
