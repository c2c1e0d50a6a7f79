#include "cluster/rank_identity.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

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

}  // namespace
}  // namespace tidemark
