// Processes of this test itself: which of them are found, and which are not.
#include "monitor/job_finder.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <map>
#include <string>
#include <vector>

#include "temporary_folder.h"

namespace tidemark {
namespace {

// Lives until it is killed; `run` is called in it.
template <typename Run>
pid_t start(Run run) {
  const pid_t pid = ::fork();
  if (pid == 0) {
    run();
    ::_exit(1);
  }
  return pid;
}

void end(pid_t pid) {
  ::kill(pid, SIGKILL);
  ::waitpid(pid, nullptr, 0);
}

bool finds(const JobFinder& finder, const std::vector<std::int64_t>& on_devices, pid_t pid) {
  const auto found = finder.find(on_devices);
  return std::any_of(found.begin(), found.end(), [pid](const JobProcess& process) { return process.pid == pid; });
}

// Whether the process has executed another program by now.
bool runs_sleep(pid_t pid) {
  const auto processes = JobFinder(pid, "").find({});
  return !processes.empty() && processes.front().name == "sleep";
}

TEST(JobFinderTest, WorkersBelowAProcessOfADevice) {
  const pid_t worker = start([] { ::pause(); });
  const pid_t other = start([] { ::execlp("sleep", "sleep", "1000", nullptr); });
  while (!runs_sleep(other)) ::usleep(1000);
  const JobFinder finder({}, "");
  EXPECT_TRUE(finds(finder, {::getpid()}, ::getpid()));
  EXPECT_TRUE(finds(finder, {::getpid()}, worker)) << "it runs the same executable";
  EXPECT_FALSE(finds(finder, {::getpid()}, other)) << "it does not";
  EXPECT_FALSE(finds(finder, {}, worker)) << "no device lists its parent";
  EXPECT_TRUE(finds(JobFinder(::getpid(), ""), {}, other)) << "all are below the PID";
  end(worker);
  end(other);
}

// A /proc with chosen content.
class Processes {
 public:
  void add(int pid, int parent, std::uint64_t owner, const std::string& name, const std::string& arguments = "") {
    const std::string folder = "proc/" + std::to_string(pid) + "/";
    folder_.write(folder + "comm", name + "\n");
    folder_.write(folder + "status", fmt::format("Name:\t{0}\nUid:\t{1}\t{1}\t{1}\t{1}\n", name, owner));
    folder_.write(folder + "stat", fmt::format("{} ({}) S {} {}", pid, name, parent, std::string(60, '1')));
    folder_.write(folder + "cmdline", name + std::string(1, '\0') + arguments);
    folder_.write(folder + fmt::format("task/{}/children", pid), "");
    if (std::string& children = children_[parent]; parent > 1) {
      children += std::to_string(pid) + " ";
      folder_.write(fmt::format("proc/{0}/task/{0}/children", parent), children);
    }
  }
  [[nodiscard]] std::vector<JobProcess> find() const { return JobFinder({}, folder_.path()).find({}); }
  [[nodiscard]] std::vector<std::int64_t> pids() const {
    std::vector<std::int64_t> pids;
    for (const JobProcess& process : find()) pids.push_back(process.pid);
    return pids;
  }

 private:
  testing::TemporaryFolder folder_;
  std::map<int, std::string> children_;
};

TEST(JobFinderTest, RecordedProcessesOfThisUser) {
  Processes processes;
  processes.add(100, 1, ::getuid(), "tidemark", "run");
  processes.add(101, 100, ::getuid(), "python");
  processes.add(102, 101, 4321, "python");
  processes.add(103, 100, ::getuid(), "signal-witness");
  processes.add(200, 1, ::getuid(), "python");
  processes.add(201, 200, ::getuid(), "tidemark", "recorder");
  EXPECT_EQ(processes.pids(), (std::vector<std::int64_t>{101, 102, 200}));
}

// Any program can be called "tidemark".
TEST(JobFinderTest, AnotherUsersRecorderCountsOnlyForThatUser) {
  Processes processes;
  processes.add(100, 1, 4321, "tidemark", "run");
  processes.add(101, 100, 4321, "python");
  processes.add(102, 100, 5432, "su");
  processes.add(103, 100, 4321, "tidemark");  // hidden by its name?
  processes.add(200, 1, 5432, "sshd");
  processes.add(201, 200, 4321, "tidemark", "recorder");
  const auto expected = ::getuid() == 0 ? std::vector<std::int64_t>{101, 103} : std::vector<std::int64_t>{};
  EXPECT_EQ(processes.pids(), expected);
  for (const JobProcess& process : processes.find()) EXPECT_FALSE(process.is_recorder) << process.pid;
}

}  // namespace
}  // namespace tidemark
