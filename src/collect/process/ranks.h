// Ranks as a launcher put them into the environment.
#pragma once

#include <stdlib.h>

#include <cstdint>

namespace tidemark::process {

/// -1 where the environment does not say.
struct Ranks {
  std::int32_t rank;
  std::int32_t local_rank;
  std::int32_t world_size;
};

inline Ranks ranks_now() noexcept {
  const auto number = [](const char* torchrun, const char* slurm) noexcept -> std::int32_t {
    for (const char* variable : {torchrun, slurm}) {
      const char* text = ::getenv(variable);
      if (text == nullptr || *text == '\0') continue;
      char* end = nullptr;
      const long value = ::strtol(text, &end, 10);
      if (*end == '\0' && value >= 0 && value <= 0x7FFFFFFF) return static_cast<std::int32_t>(value);
    }
    return -1;
  };
  return {number("RANK", "SLURM_PROCID"), number("LOCAL_RANK", "SLURM_LOCALID"), number("WORLD_SIZE", "SLURM_NTASKS")};
}

}  // namespace tidemark::process
