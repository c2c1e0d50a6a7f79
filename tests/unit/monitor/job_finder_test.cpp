// Processes of this test itself: what is found of them, and what is not.
#include "monitor/job_finder.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>

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

// Whether the process has become another program by now.
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

}  // namespace
}  // namespace tidemark
