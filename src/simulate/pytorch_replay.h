// Requests replayed by PyTorch's own allocator, in an interpreter of the machine, on phantom GPUs.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "analyze/plan/simulation.h"
#include "base/result.h"
#include "launch/interpreter_probe.h"
#include "simulate/requests.h"

namespace tidemark {

/// Maximum size in the file: larger ones, which fit on no device, are reduced to this.
inline constexpr std::uint64_t kMaxRequestBytes = std::uint64_t{1} << 50;

Result<void> write_request_file(const Store& store, const Requests& requests, const std::string& path);

/// Time of the request for the pair with this number, from 0; nullopt if there is no such pair.
[[nodiscard]] std::optional<std::uint64_t> time_of_pair(const Store& store, const Requests& requests,
                                                        std::uint64_t pair);

struct ReplayLimits {
  std::vector<std::optional<std::uint64_t>> bytes;  ///< by device; nullopt: practically unlimited
  bool by_fraction =
      false;  ///< as torch.cuda.set_per_process_memory_fraction() sets them; otherwise as the GPU's memory
};

/// One result for each of `settings`, in order: its outcome, or why PyTorch refused it. Starts one interpreter, which
/// replays each setting in a separate process, as many at a time as there are processors; `progress` receives the
/// number of finished ones. Fails if that is impossible.
Result<std::vector<Result<SimulatedSettings>>> replay_with_pytorch(const Store& store, const Requests& requests,
                                                                   const std::vector<std::string>& settings,
                                                                   const ReplayLimits& limits,
                                                                   const InterpreterFacts& python,
                                                                   const Progress& progress);

}  // namespace tidemark
