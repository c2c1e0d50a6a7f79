// Environments as launchers make them.
#include "collect/ring/ranks.h"

#include <gtest/gtest.h>

#include <initializer_list>
#include <tuple>
#include <utility>

namespace tidemark::ring {
namespace {

using Facts = std::tuple<std::int32_t, std::int32_t, std::int32_t>;

/// Rank, local rank and world size where exactly these variables are set.
Facts ranks_in(std::initializer_list<std::pair<const char*, const char*>> environment) {
  for (const RankVariables& launcher : kRankVariables) {
    for (const char* name : {launcher.rank, launcher.local_rank, launcher.world_size}) {
      if (name != nullptr) ::unsetenv(name);
    }
  }
  ::unsetenv("SLURM_NTASKS");
  for (const auto& [name, value] : environment) ::setenv(name, value, 1);
  const Ranks ranks = ranks_now();
  return {ranks.rank, ranks.local_rank, ranks.world_size};
}

TEST(Ranks, OfEachLauncher) {
  EXPECT_EQ(ranks_in({}), Facts(-1, -1, -1));
  EXPECT_EQ(ranks_in({{"RANK", "5"}, {"LOCAL_RANK", "1"}, {"WORLD_SIZE", "8"}}), Facts(5, 1, 8));
  EXPECT_EQ(
      ranks_in({{"OMPI_COMM_WORLD_RANK", "3"}, {"OMPI_COMM_WORLD_LOCAL_RANK", "1"}, {"OMPI_COMM_WORLD_SIZE", "4"}}),
      Facts(3, 1, 4));
  EXPECT_EQ(ranks_in({{"PMI_RANK", "2"}, {"PMI_SIZE", "4"}}), Facts(2, -1, 4)) << "MPICH";
  EXPECT_EQ(ranks_in({{"PMI_RANK", "2"}, {"MPI_LOCALRANKID", "0"}, {"PMI_SIZE", "4"}}), Facts(2, 0, 4)) << "Intel MPI";
  EXPECT_EQ(ranks_in({{"FLUX_TASK_RANK", "7"}, {"FLUX_TASK_LOCAL_ID", "3"}, {"FLUX_JOB_SIZE", "8"}}), Facts(7, 3, 8));
  EXPECT_EQ(ranks_in({{"PMIX_RANK", "6"}}), Facts(6, -1, -1));
  EXPECT_EQ(ranks_in({{"SLURM_PROCID", "9"}, {"SLURM_LOCALID", "1"}, {"SLURM_STEP_NUM_TASKS", "16"}}), Facts(9, 1, 16));
}

TEST(Ranks, ABatchScriptOfSlurmHasNone) {
  EXPECT_EQ(ranks_in({{"SLURM_PROCID", "0"}, {"SLURM_LOCALID", "0"}, {"SLURM_NTASKS", "16"}}), Facts(-1, -1, -1));
}

TEST(Ranks, TheInnermostLauncherCounts) {
  EXPECT_EQ(ranks_in({{"SLURM_PROCID", "1"},
                      {"SLURM_LOCALID", "0"},
                      {"SLURM_STEP_NUM_TASKS", "2"},
                      {"OMPI_COMM_WORLD_RANK", "5"},
                      {"OMPI_COMM_WORLD_LOCAL_RANK", "1"},
                      {"OMPI_COMM_WORLD_SIZE", "8"},
                      {"PMIX_RANK", "5"}}),
            Facts(5, 1, 8))
      << "mpirun starts its daemons by srun";
  EXPECT_EQ(ranks_in({{"SLURM_PROCID", "5"}, {"SLURM_STEP_NUM_TASKS", "8"}, {"PMIX_RANK", "5"}}), Facts(5, -1, 8))
      << "srun --mpi=pmix";
  EXPECT_EQ(ranks_in({{"PMI_RANK", "1"}, {"PMI_SIZE", "2"}, {"RANK", "9"}, {"WORLD_SIZE", "16"}}), Facts(9, -1, 16))
      << "torchrun on each node";
}

TEST(Ranks, InvalidNumbersAreUnknown) {
  EXPECT_EQ(ranks_in({{"RANK", ""}, {"LOCAL_RANK", "1x"}, {"WORLD_SIZE", "-4"}}), Facts(-1, -1, -1));
  EXPECT_EQ(ranks_in({{"RANK", "99999999999"}}), Facts(-1, -1, -1));
}

}  // namespace
}  // namespace tidemark::ring
