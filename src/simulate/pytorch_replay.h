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

/// Sizes above this, of which no device has so much, are written as this.
inline constexpr std::uint64_t kMaxRequestBytes = std::uint64_t{1} << 50;

Result<void> write_request_file(const Store& store, const Requests& requests, const std::string& path);

/// The time of the request that the pair of this number, from 0, stands for; none where there is no such pair.
[[nodiscard]] std::optional<std::uint64_t> time_of_pair(const Store& store, const Requests& requests,
                                                        std::uint64_t pair);

struct ReplayLimits {
  std::vector<std::optional<std::uint64_t>> bytes;  ///< by device; none: more than anybody needs
  bool by_fraction =
      false;  ///< as torch.cuda.set_per_process_memory_fraction() sets them; otherwise as the GPU's memory
};

/// One for each of `settings`, in order: what it did, or why PyTorch refused it. Starts one interpreter, which replays
/// each setting in a process of its own, as many at a time as there are processors; `progress` gets how many are done.
/// An error where that fails.
Result<std::vector<Result<SimulatedSettings>>> replay_with_pytorch(const Store& store, const Requests& requests,
                                                                   const std::vector<std::string>& settings,
                                                                   const ReplayLimits& limits,
                                                                   const InterpreterFacts& python,
                                                                   const Progress& progress);

}  // namespace tidemark
