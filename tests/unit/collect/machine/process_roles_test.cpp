// Roles of processes, from files of /proc written by hand.
#include "collect/machine/process_roles.h"

#include <gtest/gtest.h>

#include "temporary_folder.h"

namespace tidemark::testing {
namespace {

using namespace std::string_literals;

class ProcessRolesTest : public ::testing::Test {
 protected:
  void add(std::int64_t pid, std::int64_t parent, const std::string& command, const std::string& comm = "python",
           const std::string& environment = "HOME=/\0"s, int started = 100) {
    const std::string folder = "proc/" + std::to_string(pid) + "/";
    std::string stat = std::to_string(pid) + " (a) b) S " + std::to_string(parent);
    for (int field = 5; field < 22; ++field) stat += " 0";
    folder_.write(folder + "stat", stat + " " + std::to_string(started) + " 7 8\n");
    folder_.write(folder + "cmdline", command);
    folder_.write(folder + "comm", comm + "\n");
    folder_.write(folder + "environ", environment);
    job_.emplace_back().pid = pid;
  }
  const HostProcess& of(std::int64_t pid) {
    for (const HostProcess& process : job_) {
      if (process.pid == pid) return process;
    }
    return job_.front();
  }

  TemporaryFolder folder_;
  std::vector<HostProcess> job_;
};

TEST_F(ProcessRolesTest, ByCommandsNamesAndParents) {
  const std::string main = "/usr/bin/python\0train.py\0--token\0secret\0"s;
  add(10, 1, "/bin/sh\0-c\0python train.py\0"s, "sh");
  add(11, 10, main);
  add(21, 11, main, "pt_data_worker");
  add(20, 11, main, "pt_data_worker");
  add(30, 11, main);
  add(31, 11, "python\0-c\0from multiprocessing.resource_tracker import main;main(5)\0"s);
  add(32, 11, "python\0-c\0from multiprocessing.forkserver import main; main(3, 4)\0"s);
  add(33, 32, "python\0-c\0from multiprocessing.forkserver import main; main(3, 4)\0"s);
  add(34, 11, "python\0-c\0from multiprocessing.spawn import spawn_main; spawn_main(tracker_fd=5)\0"s);
  add(40, 11, "python\0/x/torch/_inductor/compile_worker/__main__.py\0--workers=2\0"s);
  add(41, 40, "python\0/x/torch/_inductor/compile_worker/__main__.py\0--workers=2\0"s);
  ProcessRoles roles(folder_.path());
  roles.fill_in(job_);
  EXPECT_EQ(of(10).role, ProcessRole::other);
  EXPECT_EQ(of(11).role, ProcessRole::main);
  EXPECT_EQ(of(11).name, "python train.py") << "other arguments may hold secrets";
  EXPECT_EQ(of(11).parent_pid, 10);
  EXPECT_EQ(of(20).role, ProcessRole::data_worker);
  EXPECT_EQ(of(20).number, 0U);
  EXPECT_EQ(of(20).count, 2U);
  EXPECT_EQ(of(21).number, 1U);
  EXPECT_EQ(of(30).role, ProcessRole::child);
  EXPECT_EQ(of(30).number, std::nullopt);
  EXPECT_EQ(of(31).role, ProcessRole::resource_tracker);
  EXPECT_EQ(of(32).role, ProcessRole::fork_server);
  EXPECT_EQ(of(33).role, ProcessRole::child);
  EXPECT_EQ(of(34).role, ProcessRole::child);
  EXPECT_EQ(of(40).role, ProcessRole::compile_worker);
  EXPECT_EQ(of(41).role, ProcessRole::compile_worker);
}

TEST_F(ProcessRolesTest, RanksAndTheirLauncher) {
  add(10, 1, "python\0/usr/bin/torchrun\0train.py\0"s);
  add(11, 10, "python\0-u\0train.py\0"s, "python", "A=1\0RANK=3\0WORLD_SIZE=8\0"s);
  add(12, 11, "python\0-u\0train.py\0"s, "pt_data_worker", "A=1\0RANK=3\0WORLD_SIZE=8\0"s);
  add(13, 10, "python\0-u\0train.py\0"s, "python", "XRANK=5\0RANK=oops\0"s);
  ProcessRoles roles(folder_.path());
  roles.fill_in(job_);
  EXPECT_EQ(of(10).role, ProcessRole::launcher);
  EXPECT_EQ(of(11).role, ProcessRole::rank);
  EXPECT_EQ(of(11).number, 3U);
  EXPECT_EQ(of(11).count, 8U);
  EXPECT_EQ(of(12).role, ProcessRole::data_worker);
  EXPECT_EQ(of(12).number, 0U);
  EXPECT_EQ(of(13).role, ProcessRole::main) << "a rank that is no number";
}

TEST_F(ProcessRolesTest, WorkerIsRecognizedByItsThreadName) {
  const std::string main = "python\0train.py\0"s;
  add(11, 1, main);
  add(20, 11, main);
  ProcessRoles roles(folder_.path());
  roles.fill_in(job_);
  EXPECT_EQ(of(20).role, ProcessRole::child);
  folder_.write("proc/20/comm", "pt_data_worker\n");
  roles.fill_in(job_);
  EXPECT_EQ(of(20).role, ProcessRole::data_worker);
}

TEST_F(ProcessRolesTest, WorkerOfKilledParentKeepsItsRole) {
  add(20, 1, "python\0train.py\0"s, "pt_data_worker");
  ProcessRoles roles(folder_.path());
  roles.fill_in(job_);
  EXPECT_EQ(of(20).role, ProcessRole::data_worker);
}

TEST_F(ProcessRolesTest, ReusedPidIsAnotherProcess) {
  add(11, 1, "python\0train.py\0"s);
  ProcessRoles roles(folder_.path());
  roles.fill_in(job_);
  job_.clear();
  add(11, 1, "bash\0"s, "bash", "", 200);
  roles.fill_in(job_);
  EXPECT_EQ(of(11).role, ProcessRole::other);
  EXPECT_EQ(of(11).name, "bash");
}

TEST_F(ProcessRolesTest, GoneProcessHasNoRole) {
  job_.emplace_back().pid = 99;
  ProcessRoles roles(folder_.path());
  roles.fill_in(job_);
  EXPECT_EQ(of(99).role, ProcessRole::other);
  EXPECT_EQ(of(99).parent_pid, -1);
}

}  // namespace
}  // namespace tidemark::testing
