#include "cluster/rank_identity.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

#include "temporary_folder.h"

namespace tidemark {
namespace {

std::string environment(const std::vector<std::string>& variables) {
  std::string text;
  for (const std::string& variable : variables) text += variable + '\0';
  return text;
}

TEST(RankIdentity, IsThatOfTheLauncher) {
  const RankIdentity torchrun = identity_in(
      environment({"PATH=/bin", "RANK=11", "LOCAL_RANK=3", "WORLD_SIZE=16", "ROLE_NAME=default", "SLURM_PROCID=1"}));
  EXPECT_EQ(torchrun, (RankIdentity{-1, 11, 3, 16, ""}));
  const RankIdentity slurm = identity_in(environment({"SLURM_PROCID=5", "SLURM_LOCALID=1", "SLURM_STEP_NUM_TASKS=8"}));
  EXPECT_EQ(slurm, (RankIdentity{-1, 5, 1, 8, ""}));
  // A batch script has no step, and is no rank.
  EXPECT_EQ(identity_in(environment({"SLURM_PROCID=0", "SLURM_LOCALID=0"})), RankIdentity());
  const RankIdentity mpi =
      identity_in(environment({"OMPI_COMM_WORLD_RANK=2", "OMPI_COMM_WORLD_LOCAL_RANK=0", "OMPI_COMM_WORLD_SIZE=4"}));
  EXPECT_EQ(mpi, (RankIdentity{-1, 2, 0, 4, ""}));
  EXPECT_EQ(identity_in(environment({"JOB_COMPLETION_INDEX=6"})).rank, 6U);
  EXPECT_EQ(identity_in(environment({"JOB_COMPLETION_INDEX=6", "RANK=12"})).rank, 12U);
}

TEST(RankIdentity, RolesAreNamed) {
  EXPECT_EQ(identity_in(environment({"ROLE_NAME=trainer"})).role, "trainer");
  EXPECT_EQ(identity_in(environment({"ROLE_NAME=trainer", "TIDEMARK_ROLE=pipeline 0"})).role, "pipeline 0");
  EXPECT_EQ(identity_in(environment({"TIDEMARK_ROLE=a\x1b[31mb"})).role, "a?[31mb");
}

TEST(RankIdentity, OnlyWholeNumbersCount) {
  EXPECT_EQ(identity_in(environment({"RANK=-1"})).rank, std::nullopt);
  EXPECT_EQ(identity_in(environment({"RANK=3x"})).rank, std::nullopt);
  EXPECT_EQ(identity_in(environment({"RANK="})).rank, std::nullopt);
  EXPECT_EQ(identity_in(environment({"RANK=4294967296"})).rank, std::nullopt);
  EXPECT_EQ(identity_in(environment({"XRANK=3", "RANKS=4"})).rank, std::nullopt);
  EXPECT_EQ(identity_in(""), RankIdentity());
}

TEST(JobNumbers, ComeFromBatchSystemsAndLaunchers) {
  using Numbers = JobNumbers;
  EXPECT_EQ(job_numbers_in(environment({"PMIX_NAMESPACE=prterun-a-12@1", "SLURM_JOB_ID=4711", "RANK=0"})),
            (Numbers{{"SLURM_JOB_ID", "4711"}, {"PMIX_NAMESPACE", "prterun-a-12@1"}}));
  EXPECT_EQ(job_numbers_in(environment({"TORCHELASTIC_RUN_ID=none", "PBS_JOBID="})), Numbers());
  EXPECT_EQ(job_numbers_in(environment({"JOB_NAME=nightly"})), Numbers());  // Jenkins sets it too
  EXPECT_EQ(job_numbers_in(environment({"JOB_NAME=train", "KUBERNETES_SERVICE_HOST=10.0.0.1"})),
            (Numbers{{"JOB_NAME", "train"}}));
}

/// A machine with two ranks of each of two jobs, and a process of none.
class TwoJobs : public ::testing::Test {
 protected:
  TwoJobs() {
    add(10, {"RANK=0", "SLURM_JOB_ID=4711"});
    add(11, {"RANK=1", "SLURM_JOB_ID=4711"});
    add(20, {"RANK=0", "SLURM_JOB_ID=4712"});
    add(21, {"RANK=1", "SLURM_JOB_ID=4712"});
    add(30, {"HOME=/"});
  }

  void add(std::int64_t pid, const std::vector<std::string>& variables) {
    root_.write("proc/" + std::to_string(pid) + "/environ", environment(variables));
    WatchedProcess& process = machine_.state.processes.emplace_back();
    process.pid = pid;
    process.on_host.emplace().role = ProcessRole::other;
  }
  void record(std::int64_t pid) { machine_.recorded.emplace_back().recording.pid = static_cast<pid_t>(pid); }
  NodeRanks find(const JobNumbers& own, const std::string& job) {
    return RankIdentities(own, job, root_.path()).find(machine_);
  }
  static std::vector<std::int64_t> pids(const NodeRanks& found) {
    std::vector<std::int64_t> pids;
    for (const RankIdentity& rank : found.ranks) pids.push_back(rank.pid);
    return pids;
  }

  testing::TemporaryFolder root_;
  MonitorSnapshot machine_;
};

TEST_F(TwoJobs, AnAgentInOneCountsItsRanks) {
  record(20);
  record(40);  // not among the processes of the machine
  root_.write("proc/40/environ", environment({"SLURM_JOB_ID=4712"}));
  const NodeRanks found = find({{"SLURM_JOB_ID", "4711"}, {"PMIX_NAMESPACE", "slurm.pmix.4711.7"}}, "any name");
  EXPECT_EQ(pids(found), (std::vector<std::int64_t>{10, 11}));
  EXPECT_EQ(found.strangers, (std::set<std::int64_t>{20, 21, 30, 40}));
  EXPECT_EQ(found.problem, "");
}

TEST_F(TwoJobs, AnAgentOutsideFindsItsRanksByTheNameOfTheJob) {
  EXPECT_EQ(pids(find({}, "4712")), (std::vector<std::int64_t>{20, 21}));
}

TEST_F(TwoJobs, OtherwiseAllAreCountedAndThatIsSaid) {
  const NodeRanks found = find({}, "default");
  EXPECT_EQ(pids(found), (std::vector<std::int64_t>{10, 11, 20, 21, 30}));
  EXPECT_THAT(found.problem,
              ::testing::HasSubstr("2 jobs are counted together (SLURM_JOB_ID 4711, SLURM_JOB_ID 4712)"));
}

TEST_F(TwoJobs, AnAgentWithoutRanksOfItsJobSaysWhy) {
  const NodeRanks found = find({{"SLURM_JOB_ID", "4713"}}, "4713");
  EXPECT_TRUE(found.ranks.empty());
  EXPECT_THAT(found.problem, ::testing::HasSubstr("no rank has SLURM_JOB_ID=4713"));
}

TEST_F(TwoJobs, RanksThatEndDoNotLetOthersIn) {
  RankIdentities identities({}, "4711", root_.path());
  EXPECT_EQ(identities.find(machine_).ranks.size(), 2U);
  for (WatchedProcess& process : machine_.state.processes) process.ended = process.pid < 20;
  EXPECT_TRUE(identities.find(machine_).ranks.empty());
}

}  // namespace
}  // namespace tidemark
