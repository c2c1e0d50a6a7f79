// Ranks that a launcher has set in the environment: of the recorded process, and of a recorder that a launcher started.
#pragma once

#include <stdlib.h>

#include <cstdint>

namespace tidemark::ring {

/// -1 if not set in the environment.
struct Ranks {
  std::int32_t rank;
  std::int32_t local_rank;
  std::int32_t world_size;
};

/// Variables of a launcher; null if it has none.
struct RankVariables {
  const char* rank;
  const char* local_rank;
  const char* world_size;
  const char* required;  ///< without it, the others do not determine the rank
};

// In order of priority: a launcher started by another one comes before it. torchrun, or a script, sets PyTorch's
// variables (PyTorch, "torchrun", Environment Variables); mpirun (Open MPI, "Environment variables set for MPI
// applications"); Hydra and Intel MPI (MPICH wiki, "PMI" and "Using the Hydra Process Manager"); flux run
// (flux-environment(7)); PMIx (PRRTE, OpenPMIx), without a size; srun (srun(1), OUTPUT ENVIRONMENT VARIABLES). A batch
// script is rank 0 of SLURM too, but is not in a step.
inline constexpr RankVariables kRankVariables[] = {
    {"RANK", "LOCAL_RANK", "WORLD_SIZE", nullptr},
    {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_SIZE", nullptr},
    {"PMI_RANK", "MPI_LOCALRANKID", "PMI_SIZE", nullptr},
    {"FLUX_TASK_RANK", "FLUX_TASK_LOCAL_ID", "FLUX_JOB_SIZE", nullptr},
    {"PMIX_RANK", nullptr, nullptr, nullptr},
    {"SLURM_PROCID", "SLURM_LOCALID", "SLURM_STEP_NUM_TASKS", "SLURM_STEP_NUM_TASKS"},
};

/// Each number from the first launcher that sets it.
inline Ranks ranks_now() noexcept {
  const auto number = [](const char* RankVariables::*name) noexcept -> std::int32_t {
    for (const RankVariables& launcher : kRankVariables) {
      if (launcher.required != nullptr && ::getenv(launcher.required) == nullptr) continue;
      const char* text = launcher.*name != nullptr ? ::getenv(launcher.*name) : nullptr;
      if (text == nullptr || *text == '\0') continue;
      char* end = nullptr;
      const long value = ::strtol(text, &end, 10);
      if (*end == '\0' && value >= 0 && value <= 0x7FFFFFFF) return static_cast<std::int32_t>(value);
    }
    return -1;
  };
  return {number(&RankVariables::rank), number(&RankVariables::local_rank), number(&RankVariables::world_size)};
}

}  // namespace tidemark::ring
