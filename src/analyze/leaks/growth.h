// Whether the memory of one place grows from step to step, judged from when its blocks were born and freed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "analyze/leaks/trend.h"

namespace tidemark {

/// The boundaries at which a block was alive. Boundary k is the start of step k; the last boundary is where looking
/// ends, so that what is freed when the program ends counts as held.
struct Stay {
  std::uint32_t first = 0;  ///< born in step first - 1; 0: before the first step
  std::uint32_t last = 0;   ///< the last one at which it was alive
  std::uint64_t bytes = 0;

  [[nodiscard]] std::uint32_t boundaries() const { return last - first + 1; }
};

enum class GrowthKind : std::uint8_t {
  kept,      ///< blocks pile up: those of most steps are still there
  replaced,  ///< each step's block is freed, for a larger one
};

enum class GrowthFinding : std::uint8_t {
  leak,
  too_few,    ///< it grew in fewer than kFewestGrownSteps steps, or began too shortly before the end
  stopped,    ///< it has not grown for longer than it ever paused before
  slowing,    ///< it grew in far fewer steps of the second half than of the first: a cache that fills
  unclear,    ///< its blocks are freed too, but so late that the recording is too short to tell
  with_work,  ///< it grows as the steps themselves do
};

struct Growth {
  GrowthKind kind = GrowthKind::kept;
  GrowthFinding finding = GrowthFinding::leak;
  Slope bytes_per_step;              ///< means nothing where `finding` is unclear
  double blocks_per_step = 0;        ///< 0 for replaced blocks
  std::uint32_t grown_steps = 0;     ///< how many of the judged steps left something
  std::uint32_t judged_steps = 0;    ///< 0 where `finding` is unclear
  std::uint32_t first_step = 0;      ///< first judged step that left something
  std::uint32_t last_step = 0;       ///< last one that did, judged or not
  std::uint32_t released_after = 0;  ///< boundaries after which its blocks are freed at the latest; 0: never seen
};

inline constexpr std::uint32_t kFewestJudgedSteps = 8;
inline constexpr std::uint32_t kFewestGrownSteps = 4;

/// How many steps are judged at most: those from `warmup` on whose blocks could be seen to outlive a whole step.
[[nodiscard]] std::uint32_t judged_steps(std::uint32_t boundaries, std::uint32_t warmup);

/// What the blocks of a place do after `warmup` steps, given the number of boundaries. None: nothing that grows.
[[nodiscard]] std::optional<Growth> judge_kept(std::span<const Stay> stays, std::uint32_t boundaries,
                                               std::uint32_t warmup);

/// Likewise for blocks that live from one boundary to the next. `work[k]`: bytes allocated in step k that were freed in
/// it.
[[nodiscard]] std::optional<Growth> judge_replaced(std::span<const Stay> stays, std::uint32_t boundaries,
                                                   std::uint32_t warmup, std::span<const double> work);

}  // namespace tidemark
