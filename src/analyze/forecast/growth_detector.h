// Whether a running program leaks: the definition and the statistics of `tidemark leaks` (analyze/leaks), applied to
// live data: memory usage over time, and the memory of each source at the end of steps.
//
// A leak is growth that survives at the same phase of successive steps after warm-up. The end of a step is one phase;
// if only samples are known, the minimum usage in each stretch of time replaces it, and more evidence is required.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "analyze/forecast/usage_history.h"
#include "analyze/leaks/growth.h"

namespace tidemark {

/// Memory of one source: a stack, a module, a type of objects. The caller assigns the numbers.
struct SourceBytes {
  std::uint64_t source = 0;
  std::uint64_t bytes = 0;  ///< current bytes
};

/// Growth of a memory or of one source of it.
struct LiveGrowth {
  std::optional<std::uint64_t> source;  ///< nullopt: the memory as a whole
  GrowthClass classification = GrowthClass::leak;
  Slope bytes_per_minute;               ///< 95% interval
  std::optional<Slope> bytes_per_step;  ///< nullopt if steps are unknown
  std::uint64_t held_bytes = 0;         ///< now
  double grown_bytes = 0;               ///< over the stretch that was looked at
  double seconds = 0;                   ///< its length
  std::optional<std::uint64_t> steps;   ///< number of steps in it; nullopt if unknown
  std::uint32_t grown_steps = 0;        ///< number of steps, or of stretches of time instead, that left memory
  std::uint32_t analyzed_steps = 0;
};

struct LiveGrowths {
  /// From the samples; nullopt: no growth. Class too_few: growth that is too short to be called a leak.
  std::optional<LiveGrowth> memory;
  std::vector<LiveGrowth> sources;  ///< growing sources, including non-leaks: leaks first, fastest first
  std::uint64_t steps = 0;          ///< number of end_step() calls

  /// Whether sources are known at enough steps to decide.
  [[nodiscard]] bool steps_decide() const;
  /// If steps_decide(), the sum of the leaks, regardless of memory that the allocator keeps besides. Otherwise
  /// `memory`. nullopt: no growth.
  [[nodiscard]] std::optional<LiveGrowth> whole() const;
  /// Whether the memory leaks as a whole.
  [[nodiscard]] bool leaks() const;
};

struct GrowthOptions {
  double least_bytes_per_minute = 0;  ///< slower growth is ignored
  std::size_t most_sources = 4096;    ///< maximum number of sources; beyond it the smallest are dropped
};

/// Keeps a bounded number of values, older ones joined. One thread at a time. No call fails.
class GrowthDetector {
 public:
  explicit GrowthDetector(const GrowthOptions& options = {});
  ~GrowthDetector();
  GrowthDetector(GrowthDetector&&) noexcept;
  GrowthDetector& operator=(GrowthDetector&&) noexcept;

  /// How much of the memory is used.
  void add(const UsageSample& sample);
  /// Memory of each source at the end of a step; unlisted sources hold nothing.
  void end_step(std::uint64_t time_ns, std::span<const SourceBytes> sources);
  /// Drops the history of sources: steps end at another place from now on.
  void forget_steps();
  [[nodiscard]] LiveGrowths assess() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace tidemark
