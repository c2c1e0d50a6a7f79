// One run of a program with chosen arguments, and what it said of its memory: what fits and sweeps are made of.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "analyze/attribution/attribution.h"

namespace tidemark {

/// An argument of the program that trials vary.
struct VariedArgument {
  std::string name;                 ///< "batch": a column of tables, and the placeholder {batch}
  std::string option;               ///< "--batch-size": what sets it where the program has no placeholder
  std::vector<std::string> values;  ///< in the order in which they were given; each once
};

struct HeldByCategory {
  Category category = Category::unknown;
  std::uint64_t bytes = 0;
};

/// Sizes in bytes, of the device that takes the most. None where they are not known.
struct TrialResult {
  std::optional<bool> fits;  ///< none: the trial failed otherwise than for memory
  std::optional<std::uint64_t> peak_allocated_bytes;
  std::optional<std::uint64_t> peak_reserved_bytes;
  std::optional<std::uint64_t> device_used_bytes;  ///< with the context
  std::optional<std::uint64_t> memory_bytes;       ///< of a device, as its driver reports it
  /// At the peak of the device that allocates most; empty where recordings do not say.
  std::vector<HeldByCategory> categories;
  bool out_of_memory = false;          ///< a request failed: the peaks are those until then
  std::vector<std::string> uncertain;  ///< what the figures do not say for certain, one sentence each
  std::string failure;                 ///< why there is no result; empty otherwise
  std::uint64_t duration_ns = 0;       ///< of the whole trial
  std::uint64_t host_bytes = 0;        ///< the highest resident memory of one of its processes

  /// What it takes of the device, as far as that is known.
  [[nodiscard]] std::optional<std::uint64_t> used_bytes() const {
    return device_used_bytes ? device_used_bytes : peak_reserved_bytes;
  }
};

}  // namespace tidemark
