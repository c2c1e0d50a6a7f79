// Effect of other settings of PyTorch's caching allocator on a recording.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "analyze/plan/simulation.h"
#include "base/result.h"
#include "base/units.h"
#include "simulate/pytorch_replay.h"
#include "store/symbols.h"

namespace tidemark {

/// The smallest SimulateOptions::memory: a segment of large blocks.
inline constexpr std::uint64_t kMinSimulatedMemory = 20 * kMiB;

enum class Replayer : std::uint8_t { any, pytorch, model };

struct SimulateOptions {
  std::vector<std::string> sets;        ///< each is one alternative: "expandable_segments:True"
  bool search = false;                  ///< also try candidate_settings()
  std::optional<std::string> recorded;  ///< the settings of the recording, if missing from the file
  std::optional<std::uint64_t> memory;  ///< bytes that the allocator of each GPU may reserve
  std::optional<std::string> device;    ///< only this one: "cuda:0"
  std::string python;                   ///< Python with the PyTorch to use; empty: python3
  Replayer replayer = Replayer::any;    ///< any: the model if that PyTorch cannot replay
};

/// Replays the recording's requests with the recorded settings, as a check, and with each of the others.
Result<Simulation> simulate(const Store& store, const Symbols& symbols, const SimulateOptions& options,
                            const Progress& progress = {});

}  // namespace tidemark
