// Whether a running program leaks: the definition and the statistics of `tidemark leaks` (analyze/leaks), over what is
// known while it runs: how much of a memory was used at times, and how much each source held at the end of steps.
//
// A leak is growth that survives at the same phase of successive steps after warm-up. The end of a step is one phase;
// where only samples are known, the least use in each stretch of time stands for it, and more evidence is demanded.
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

/// What holds memory: a stack, a module, a type of objects. The number is the caller's.
struct SourceBytes {
  std::uint64_t source = 0;
  std::uint64_t bytes = 0;  ///< that it holds now
};

/// Growth of a memory or of one source of it.
struct LiveGrowth {
  std::optional<std::uint64_t> source;  ///< none: of the memory as a whole
  GrowthClass classification = GrowthClass::leak;
  Slope bytes_per_minute;               ///< 95% interval
  std::optional<Slope> bytes_per_step;  ///< where steps are known
  std::uint64_t held_bytes = 0;         ///< now
  double grown_bytes = 0;               ///< over the stretch that was looked at
  double seconds = 0;                   ///< its length
  std::optional<std::uint64_t> steps;   ///< in it, where they are known
  std::uint32_t grown_steps = 0;  ///< of the steps, or of the stretches of time in their place, those that left memory
  std::uint32_t analyzed_steps = 0;
};

struct LiveGrowths {
  /// From the samples; none: it does not grow. Of the class too_few: it does, but not for long enough to be a leak.
  std::optional<LiveGrowth> memory;
  std::vector<LiveGrowth> sources;  ///< that grow, leaks or not: leaks first, fastest first
  std::uint64_t steps = 0;          ///< that ended, as end_step() was told

  /// Whether sources are known at enough steps to decide.
  [[nodiscard]] bool steps_decide() const;
  /// Where they are, they do: of the memory as a whole, the growth is what its leaks add up
  /// to, whatever its allocator keeps beside them. Otherwise `memory`. None: it does not grow.
  [[nodiscard]] std::optional<LiveGrowth> whole() const;
  /// Whether the memory leaks as a whole.
  [[nodiscard]] bool leaks() const;
};

struct GrowthOptions {
  double least_bytes_per_minute = 0;  ///< slower growth is none
  std::size_t most_sources = 4096;    ///< that are followed; those that hold least are dropped for more
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
  /// What each source holds when a step ends; those that are not listed hold nothing.
  void end_step(std::uint64_t time_ns, std::span<const SourceBytes> sources);
  /// Forgets what sources held: steps end at another place from now on.
  void forget_steps();
  [[nodiscard]] LiveGrowths assess() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace tidemark
