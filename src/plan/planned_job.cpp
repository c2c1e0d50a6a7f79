#include "plan/planned_job.h"

#include <fmt/format.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <thread>
#include <utility>

#include "collect/machine/files.h"
#include "collect/machine/processes.h"

namespace tidemark {

namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

constexpr auto kBetweenLooks = 20ms;
// For a rank that is slower than the others, or without a step: one of the program's servers, which never makes one.
constexpr auto kPatienceWithSteps = 30s;
constexpr auto kPatienceWithoutSteps = 5s;
constexpr auto kQuiet = 60s;
constexpr auto kWithoutSteps = 120s;
constexpr auto kOwnEnd = 500ms;
constexpr auto kForcedEnd = 2s;

std::vector<std::int64_t> processes_of_job(std::optional<pid_t> outsider) {
  std::vector<std::int64_t> found = descendants_of(::getpid());
  if (outsider) std::erase(found, *outsider);
  return found;
}

// Python's resource tracker, which removes the semaphores and shared memory of killed processes, and then ends.
bool is_resource_tracker(std::int64_t pid) {
  const std::string command = read_file("/proc/" + std::to_string(pid) + "/cmdline").value_or("");
  return command.find("multiprocessing.resource_tracker") != std::string::npos;
}

bool waits_to_be_ended(const PhantomProcess& process) {
  return process.stopped;
}

// Launchers first: they would report the end of their processes as a failure.
void end_job(const std::vector<PhantomProcess>& processes, std::optional<pid_t> outsider) {
  const auto is_stopped = [&](std::int64_t pid) {
    return std::any_of(processes.begin(), processes.end(),
                       [pid](const PhantomProcess& process) { return process.stopped && process.pid == pid; });
  };
  for (const std::int64_t pid : processes_of_job(outsider)) {
    const std::vector<std::int64_t> below = descendants_of(pid);
    if (std::any_of(below.begin(), below.end(), is_stopped)) ::kill(static_cast<pid_t>(pid), SIGKILL);
  }
  for (const PhantomProcess& process : processes) {
    if (process.stopped) ::kill(process.pid, SIGKILL);
  }
}

// True if none is left.
bool wait_for_ends(std::optional<pid_t> outsider, Clock::duration patience) {
  const auto deadline = Clock::now() + patience;
  for (;;) {
    const std::vector<std::int64_t> left = processes_of_job(outsider);
    if (left.empty()) return true;
    for (const std::int64_t pid : left) ::waitpid(static_cast<pid_t>(pid), nullptr, WNOHANG);
    if (Clock::now() >= deadline) return false;
    std::this_thread::sleep_for(5ms);
  }
}

bool is_interpreter(const std::string& program) {
  return std::filesystem::path(program).filename().string().starts_with("python");
}

}  // namespace

bool StepWatch::is_complete(const std::vector<PhantomProcess>& processes, Time now) {
  std::uint64_t steps = 0;
  std::uint64_t requests = 0;
  bool others = false;
  bool others_step = false;
  for (const PhantomProcess& process : processes) {
    steps += process.steps;
    requests += process.requests;
    if (process.stopped || process.requests == 0) continue;
    others = true;
    others_step = others_step || process.steps > 0;
  }
  if (std::exchange(steps_, steps) != steps) last_step_ = now;
  if (std::exchange(requests_, requests) != requests) last_request_ = now;
  if (!std::any_of(processes.begin(), processes.end(), waits_to_be_ended)) return false;
  if (!others) return true;
  return now - last_step_ > (others_step ? kPatienceWithSteps : kPatienceWithoutSteps);
}

PlannedJob::PlannedJob(const PhantomRun& phantom) : phantom_(phantom) {
  ::prctl(PR_SET_CHILD_SUBREAPER, 1);
}

void PlannedJob::watch(std::optional<pid_t> outsider) {
  const auto now = Clock::now();
  if (complete_ || now < next_look_) return;
  next_look_ = now + kBetweenLooks;
  std::vector<PhantomProcess> processes = phantom_.usage().processes;
  std::erase_if(processes, [](const PhantomProcess& process) { return !resident_bytes(process.pid); });
  complete_ = steps_.is_complete(processes, now);
  if (complete_) end_job(processes, outsider);
}

bool PlannedJob::turned_idle() {
  if (said_quiet_ || steps_.quiet_for(Clock::now()) < kQuiet) return false;
  return said_quiet_ = true;
}

bool PlannedJob::stopped_stepping() {
  const auto now = Clock::now();
  if (said_no_steps_ || steps_.steps() != 0 || steps_.time_without_step(now) < kWithoutSteps) return false;
  return said_no_steps_ = steps_.quiet_for(now) < kQuiet;
}

void PlannedJob::end_remaining(std::optional<pid_t> outsider) {
  if (wait_for_ends(outsider, kOwnEnd)) return;
  for (const std::int64_t pid : processes_of_job(outsider)) {
    if (!is_resource_tracker(pid)) ::kill(static_cast<pid_t>(pid), SIGKILL);
  }
  if (wait_for_ends(outsider, kForcedEnd)) return;
  for (const std::int64_t pid : processes_of_job(outsider)) ::kill(static_cast<pid_t>(pid), SIGKILL);
  wait_for_ends(outsider, kForcedEnd);
}

OomKills::OomKills(const std::string& root) : root_(root), group_(Cgroup::own(root)) {
  if (group_ && !group_->read().oom_kills) group_.reset();
  before_ = read().value_or(0);
}

std::optional<std::uint64_t> OomKills::read() const {
  if (group_) return group_->read().oom_kills;
  return number_after(read_file(root_ + "/proc/vmstat").value_or(""), "oom_kill ");
}

std::uint64_t OomKills::count() const {
  const std::uint64_t now = read().value_or(before_);
  return now - std::min(now, before_);
}

Result<std::vector<std::string>> ranks_command(const std::vector<std::string>& command, const std::string& python,
                                               std::uint64_t count) {
  const bool interpreter = is_interpreter(command.front());
  std::vector<std::string> ranks = {interpreter ? command.front() : python};
  std::size_t word = 1;
  // Options of the interpreter up to its program; -W and -X take the next word if nothing is attached.
  for (; interpreter && word < command.size(); ++word) {
    const std::string& option = command[word];
    if (option.size() < 2 || option[0] != '-' || option == "-m") break;
    if (option == "-c") return Error{"--nproc: a program in the command line (-c) has no ranks; write it to a file"};
    ranks.push_back(option);
    if ((option == "-W" || option == "-X") && word + 1 < command.size()) ranks.push_back(command[++word]);
  }
  if (interpreter && (word == command.size() || command[word] == "-")) {
    return Error{fmt::format("--nproc: {} is given no program to run", command.front())};
  }
  ranks.insert(ranks.end(),
               {"-m", "torch.distributed.run", "--standalone", "--nproc-per-node", fmt::format("{}", count)});
  if (!interpreter) {
    ranks.emplace_back("--no-python");
    word = 0;
  }
  ranks.insert(ranks.end(), command.begin() + static_cast<std::ptrdiff_t>(word), command.end());
  return ranks;
}

}  // namespace tidemark
