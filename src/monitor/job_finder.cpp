#include "monitor/job_finder.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <sstream>
#include <system_error>
#include <utility>

#include "collect/machine/files.h"
#include "collect/machine/processes.h"

namespace tidemark {
namespace {

namespace fs = std::filesystem;

// The process name of recorders, both `tidemark run` and `tidemark recorder`.
constexpr const char* kRecorder = "tidemark";
constexpr const char* kWitness = "signal-witness";  // its child, launch/group_witness.cpp

// Fields of /proc/PID/stat after the name: the 4th is the parent, the 22nd the start.
std::optional<std::uint64_t> stat_field(std::int64_t pid, const std::string& root, int number) {
  const std::string text = read_file(fmt::format("{}/proc/{}/stat", root, pid)).value_or("");
  const std::size_t name_end = text.rfind(')');  // a name may contain anything
  if (name_end == std::string::npos) return std::nullopt;
  std::istringstream fields(text.substr(name_end + 1));
  std::string field;
  for (int n = 3; n <= number; ++n) fields >> field;
  return leading_number(field);
}

// `tidemark recorder` is a child of the recorded program; `tidemark run` is its parent.
bool is_child_of_program(std::int64_t pid, const std::string& root) {
  std::istringstream words(read_file(fmt::format("{}/proc/{}/cmdline", root, pid)).value_or(""));
  std::string word;
  std::getline(words, word, '\0');
  std::getline(words, word, '\0');
  return word == "recorder";
}

std::string name_of(std::int64_t pid, const std::string& root) {
  return trimmed(read_file(fmt::format("{}/proc/{}/comm", root, pid)).value_or(""));
}

// The user who started it.
std::optional<std::uint64_t> owner_of(std::int64_t pid, const std::string& root) {
  return number_after(read_file(fmt::format("{}/proc/{}/status", root, pid)).value_or(""), "Uid:");
}

bool runs_this_program(std::int64_t pid, const std::string& root) {
  struct stat of_process {};
  struct stat of_this {};
  return ::stat(fmt::format("{}/proc/{}/exe", root, pid).c_str(), &of_process) == 0 &&
         ::stat("/proc/self/exe", &of_this) == 0 && of_process.st_dev == of_this.st_dev &&
         of_process.st_ino == of_this.st_ino;
}

// It is left out of the job's memory, so the name alone is not enough if it belongs to another user.
bool is_of_recorder(std::int64_t pid, const std::string& root) {
  const std::string name = name_of(pid, root);
  return (name == kRecorder || name == kWitness) && (owner_of(pid, root) == ::getuid() || runs_this_program(pid, root));
}

// Empty if not permitted: processes of other users.
std::string executable_of(std::int64_t pid, const std::string& root) {
  std::error_code error;
  return fs::read_symlink(fmt::format("{}/proc/{}/exe", root, pid), error).string();
}

// A shell of the desktop or a notebook server starts programs that are not its own workers, and they run other
// executables.
void add_with_workers(std::int64_t pid, const std::string& root, std::vector<std::int64_t>& pids) {
  pids.push_back(pid);
  const std::string executable = executable_of(pid, root);
  if (executable.empty()) return;
  for (const std::int64_t below : descendants_of(pid, root)) {
    if (executable_of(below, root) == executable) pids.push_back(below);
  }
}

void sort_each_once(std::vector<std::int64_t>& pids) {
  std::sort(pids.begin(), pids.end());
  pids.erase(std::unique(pids.begin(), pids.end()), pids.end());
}

}  // namespace

std::optional<std::uint64_t> start_of(std::int64_t pid, const std::string& root) {
  return stat_field(pid, root, 22);
}

JobFinder::JobFinder(std::optional<std::int64_t> pid, std::string root)
    : pid_(pid), start_(pid ? start_of(*pid, root) : std::nullopt), root_(std::move(root)) {}

std::vector<JobProcess> JobFinder::find(const std::vector<std::int64_t>& on_devices) const {
  const std::vector<std::int64_t> below = recorded();
  std::vector<std::int64_t> pids;
  if (!pid_) {
    pids = below;
    for (const std::int64_t pid : on_devices) add_with_workers(pid, root_, pids);
    sort_each_once(pids);
  } else if (start_ && start_of(*pid_, root_) == start_) {
    pids = descendants_of(*pid_, root_);
    pids.insert(pids.begin(), *pid_);
  }
  std::vector<JobProcess> found;
  found.reserve(pids.size());
  for (const std::int64_t pid : pids) {
    const bool is_below = std::find(below.begin(), below.end(), pid) != below.end();
    found.push_back({pid, short_command(pid, root_), is_below, is_of_recorder(pid, root_)});
  }
  return found;
}

std::vector<std::int64_t> JobFinder::recorded() const {
  std::vector<std::int64_t> found;
  std::error_code error;
  for (fs::directory_iterator entry(root_ + "/proc", error), end; !error && entry != end; entry.increment(error)) {
    const auto number = leading_number(entry->path().filename().string());
    if (!number) continue;
    const auto pid = static_cast<std::int64_t>(*number);
    if (name_of(pid, root_) != kRecorder || pid == ::getpid()) continue;
    const auto owner = owner_of(pid, root_);
    const bool is_own = owner == ::getuid();
    if (!owner || (!is_own && ::getuid() != 0)) continue;
    // Any program can have this name: for another user's recorder, only that user's processes count.
    const auto add = [&](std::int64_t program) {
      if (is_own || owner_of(program, root_) == owner) found.push_back(program);
    };
    if (is_child_of_program(pid, root_)) {
      const auto program = stat_field(pid, root_, 4);
      if (program.value_or(1) > 1) add(static_cast<std::int64_t>(*program));  // 1: its parent has ended
      continue;
    }
    for (const std::int64_t below : descendants_of(pid, root_)) {
      if (!is_of_recorder(below, root_)) add(below);
    }
  }
  return found;
}

}  // namespace tidemark
