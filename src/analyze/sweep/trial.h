// One run of a program with chosen arguments, and its reported memory: the unit of fits and sweeps.
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
  std::string option;               ///< "--batch-size": the option that sets it if the program has no placeholder
  std::vector<std::string> values;  ///< in the given order, without duplicates
};

struct HeldByCategory {
  Category category = Category::unknown;
  std::uint64_t bytes = 0;
};

/// Sizes in bytes, of the device with the largest peak. nullopt if unknown.
struct TrialResult {
  std::optional<bool> fits;  ///< nullopt: the trial failed for another reason than memory
  std::optional<std::uint64_t> peak_allocated_bytes;
  std::optional<std::uint64_t> peak_reserved_bytes;
  std::optional<std::uint64_t> device_used_bytes;  ///< with the context
  std::optional<std::uint64_t> memory_bytes;       ///< of a device, as its driver reports it
  /// At the peak of the device that allocates most; empty if recordings do not contain it.
  std::vector<HeldByCategory> categories;
  bool out_of_memory = false;          ///< a request failed: the peaks are those until then
  std::vector<std::string> uncertain;  ///< uncertainties of the figures, one sentence each
  std::string failure;                 ///< why there is no result; empty otherwise
  std::uint64_t duration_ns = 0;       ///< of the whole trial
  std::uint64_t host_bytes = 0;        ///< the highest resident memory of one of its processes

  /// Its used memory of the device, as far as it is known.
  [[nodiscard]] std::optional<std::uint64_t> used_bytes() const {
    return device_used_bytes ? device_used_bytes : peak_reserved_bytes;
  }
};

}  // namespace tidemark
