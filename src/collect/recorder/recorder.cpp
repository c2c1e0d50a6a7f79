#include "collect/recorder/recorder.h"

#include <fmt/format.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <new>
#include <system_error>

#include "collect/machine/processes.h"
#include "collect/recorder/descriptors.h"
#include "collect/recorder/process_facts.h"

namespace tidemark {
namespace {

// While events come in, the rings are looked at this often: at 20 million events a second they hold 25 ms.
constexpr int kBusyIntervalMs = 10;
constexpr int kIdleIntervalMs = 40;
constexpr int kIdlePolls = 10;
// Who comes back from a wait this late did not run meanwhile: SIGSTOP, a frozen control group, no processor.
constexpr std::chrono::milliseconds kStopped{500};
// Events end up in the file at the latest after this time, so that a killed recorder loses little, and that those who
// read it meanwhile wait little.
constexpr std::chrono::milliseconds kFlush{1000};
constexpr std::chrono::milliseconds kFlushForReaders{100};
// What is kept free: for a connection, and the memory that comes with it. The kernel drops memory without a descriptor.
constexpr unsigned long kDescriptorsToAccept = 2;
// With fewer, a recording does without a pidfd.
constexpr unsigned long kDescriptorsToWatch = 16;

ScopedFd open_pidfd(pid_t pid) {
  ScopedFd fd(pid > 0 ? static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)) : -1);
  return fd && descriptors_after(fd.get()) < kDescriptorsToWatch ? ScopedFd() : std::move(fd);
}

// A zombie counts as gone: it runs nothing any more. Without a pidfd (older kernels, sandboxes, few descriptors) it is
// known by having no program, where there is a /proc.
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

// What ends before its time leaves what it has kept.
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
  end_exited();
  if (options_.keep) {
    look_for_oom();
    take_written_dump();
  }
  tell_readers();
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
    if (is_gone(client.pidfd, pid)) record_exit_reason(client);  // else the process lives on
    end(client, true);
    ended = true;
  }
  return ended;
}

void Recorder::admit(ScopedFd memory, pid_t pid) {
  // A process that has called exec: its earlier image is gone, and with it whatever wrote to the earlier memory. What
  // that recording needed is free.
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

// Workers that do not say so themselves: PyTorch has named their threads since version 2.7 only.
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
  client.session->flush_after(readers_.any() ? kFlushForReaders : kFlush);
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
    if (session.size_limit_reached()) say_size_limit(client);  // by what was still in its rings
  }
  if (client.window != nullptr) {
    if (has_failed(client)) note_oom();
    retire(client);
  }
  // Of a job that runs for weeks nobody reads a list.
  if (!options_.keep || files_.empty())
    files_.push_back({client.path, client.pid, session.event_count(), session.dropped_count(), session.bytes_written(),
                      session.stopped()});
  client.pidfd.reset();
  client.session = nullptr;
  reception_.try_again();
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

void Recorder::tell_readers() {
  readers_.welcome();
  if (!readers_.any()) return;
  std::vector<LiveRecording> recordings;
  for (const Client& client : clients_) {
    if (client.session->stopped()) continue;
    if (folder_.has_question(client.pid)) client.session->tell_of_question();
    const ProcessInfo& process = client.session->process();
    std::error_code error;
    const std::string path = client.window != nullptr ? client.window->path() : client.path;
    recordings.push_back({client.pid, std::filesystem::absolute(path, error).string(), process.rank, client.command,
                          process.start_wall_ns.value_or(0), client.session->started_ns()});
  }
  readers_.tell(recordings);
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
  notices_.say_others();
}

std::string Recorder::why_nothing() const {
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

}  // namespace tidemark
