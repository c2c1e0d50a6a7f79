// Memory reports of a training with DP-SGD: by phase and, for the memory attached to its parameters, by component.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "analyze/sweep/sweep.h"

namespace tidemark {

/// The phase "forward" comes with each batch: these are the most of all times.
struct PhaseMemory {
  std::string name;
  std::uint64_t end_bytes = 0;   ///< allocated at its end
  std::uint64_t peak_bytes = 0;  ///< allocated at most during it
};

struct ComponentBytes {
  std::string name;  ///< of a part of the model: "attention"
  std::uint64_t bytes = 0;
};

/// Memory kept for the parameters before an optimizer step.
struct ParameterMemory {
  std::string kind;  ///< "per_sample_gradients"
  std::vector<ComponentBytes> components;

  [[nodiscard]] std::uint64_t bytes() const;
};

struct DpSgdReport {
  std::vector<PhaseMemory> phases;  ///< in the order in which they first ended
  std::vector<ParameterMemory> kinds;
  std::string torch_version;
  std::string opacus_version;

  /// nullopt if it is not reported.
  [[nodiscard]] std::optional<std::uint64_t> bytes_of(std::string_view kind) const;
  [[nodiscard]] const PhaseMemory* phase(std::string_view name) const;
};

struct DpSgdSweep {
  Sweep sweep;
  std::string model;                                ///< its name, or the file of its configuration
  std::vector<std::optional<DpSgdReport>> reports;  ///< by row of the sweep; nullopt if the trial failed

  /// Share of the allocated peak of a row; nullopt if one of them is unknown.
  [[nodiscard]] std::optional<double> per_sample_share(std::size_t row) const;
  /// The row with a report that has the highest allocated peak.
  [[nodiscard]] std::optional<std::size_t> largest() const;
};

inline constexpr std::string_view kPerSampleGradients = "per_sample_gradients";

}  // namespace tidemark
