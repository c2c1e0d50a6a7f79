// Whether the memory of one call site grows from step to step, from the lifetimes of its blocks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "analyze/common/trend.h"
#include "base/enum_names.h"
#include "store/store.h"

namespace tidemark {

/// The boundaries at which a block was alive. Boundary k is the start of step k; the last boundary is the end of the
/// analyzed time, so that blocks freed at exit count as held.
struct StepSpan {
  std::uint32_t first = 0;  ///< born in step first - 1; 0: before the first step
  std::uint32_t last = 0;   ///< the last boundary at which it was alive
  std::uint64_t bytes = 0;
  BlockId block = {};

  [[nodiscard]] std::uint32_t boundaries() const { return last - first + 1; }
  /// Whether the block was allocated after `warmup` steps and is alive at the last boundary.
  [[nodiscard]] bool is_held(std::uint32_t all_boundaries, std::uint32_t warmup) const {
    return first > warmup && last + 1 == all_boundaries;
  }
};

enum class GrowthKind : std::uint8_t {
  retained,  ///< blocks accumulate: the blocks of most steps are still alive
  replaced,  ///< each step's block is freed, for a larger one
};
inline constexpr EnumName<GrowthKind> kGrowthKindNames[] = {{GrowthKind::retained, "retained"},
                                                            {GrowthKind::replaced, "replaced"}};
[[nodiscard]] constexpr std::string_view name_of(GrowthKind kind) {
  return name_in(kGrowthKindNames, kind);
}

enum class GrowthClass : std::uint8_t {
  leak,
  too_few,    ///< it grew in fewer than kMinGrownSteps steps, or began too shortly before the end
  stopped,    ///< it has not grown for longer than it ever paused before
  slowing,    ///< it grew in far fewer steps of the second half than of the first: a cache that fills
  unclear,    ///< its blocks are freed too, but later than the recording is long enough to show
  with_work,  ///< it grows as the steps themselves do
};
inline constexpr EnumName<GrowthClass> kGrowthClassNames[] = {
    {GrowthClass::leak, "leak"},       {GrowthClass::too_few, "too_few_steps"}, {GrowthClass::stopped, "stopped"},
    {GrowthClass::slowing, "slowing"}, {GrowthClass::unclear, "unclear"},       {GrowthClass::with_work, "with_work"}};
[[nodiscard]] constexpr std::string_view name_of(GrowthClass classification) {
  return name_in(kGrowthClassNames, classification);
}

struct Growth {
  GrowthKind kind = GrowthKind::retained;
  GrowthClass classification = GrowthClass::leak;
  Slope bytes_per_step;              ///< meaningless if `finding` is unclear
  double blocks_per_step = 0;        ///< 0 for replaced blocks
  std::uint32_t grown_steps = 0;     ///< number of analyzed steps that left memory behind
  std::uint32_t analyzed_steps = 0;  ///< 0 if `finding` is unclear
  std::uint32_t first_step = 0;      ///< first analyzed step that left memory behind
  std::uint32_t last_step = 0;       ///< last one that did, analyzed or not
  std::uint32_t every_steps = 0;     ///< steps from one growth to the next, if constant and at least 2; else 0
  std::uint32_t released_after = 0;  ///< maximum number of boundaries after which its blocks are freed; 0: never freed
};

inline constexpr std::uint32_t kMinAnalyzedSteps = 8;
inline constexpr std::uint32_t kMinGrownSteps = 4;

/// Default number of initial steps in which growth is ignored.
[[nodiscard]] std::uint32_t default_warmup(std::size_t steps);
/// For a recording with this number of steps: 0 if it is the last part of a longer one that had warmed up.
[[nodiscard]] std::uint32_t default_warmup(const Store& store, std::size_t steps);

/// Maximum number of analyzed steps: steps after `warmup` with blocks that can be seen to outlive a whole step.
[[nodiscard]] std::uint32_t analyzed_steps(std::uint32_t boundaries, std::uint32_t warmup);

/// Growth of the blocks of a call site after `warmup` steps, given the number of boundaries. nullopt: no growth.
[[nodiscard]] std::optional<Growth> find_retained_growth(std::span<const StepSpan> spans, std::uint32_t boundaries,
                                                         std::uint32_t warmup);

/// The same for blocks that live from one boundary to the next. `work[k]`: bytes both allocated and freed in step k.
[[nodiscard]] std::optional<Growth> find_replacement_growth(std::span<const StepSpan> spans, std::uint32_t boundaries,
                                                            std::uint32_t warmup, std::span<const double> work);

/// The same criterion as find_retained_growth(), without lifetimes of blocks. `held[k]`: bytes at the end of step k, at
/// the same phase of all steps. Growth of step k is the increase of the minimum of all later values: memory that is
/// freed later counts for no step. Frees determine how old memory gets, as there; the last steps, younger than that,
/// are ignored; frees of less than a tenth of the growth are ignored. `least`: minimum growth of a step, in bytes.
/// `warmup`: initial steps in which growth is ignored. nullopt: no growth.
///
/// A series has no blocks: Growth::blocks_per_step is 0. too_few also covers growth that nearly all comes from one
/// step. slowing: the later half of the steps grew by less than 76% of the earlier one, or significantly by less than
/// 90%.
[[nodiscard]] std::optional<Growth> find_series_growth(std::span<const double> held, std::uint32_t warmup,
                                                       double least);

/// `grown`: the steps of [warmup, end) that left memory behind, increasing, at least two.
struct GrownSteps {
  std::span<const std::uint32_t> grown;
  std::uint32_t warmup = 0;
  std::uint32_t end = 0;

  /// Longer than they ever paused.
  [[nodiscard]] std::uint32_t long_pause() const;
  /// Where the measured growth begins: at its first step if it began late.
  [[nodiscard]] std::uint32_t begin() const;
  /// GrowthClass::leak unless they stopped, are too few, or became rare.
  [[nodiscard]] GrowthClass classify() const;
};

/// The age up to which memory may still be freed. `usual_age`: age of memory when it is freed, 0 if nothing is freed.
/// `proof`: something is known to have outlived such a free, so that not every free releases everything.
[[nodiscard]] std::uint32_t young_age(std::uint32_t usual_age, bool proof);

/// The blocks of a stack, or of a size without a stack, that were alive at some boundary.
struct LeakGroup {
  std::vector<StackId> stacks;                   ///< several: they leak at one source line, the fastest first
  std::optional<std::uint64_t> requested_bytes;  ///< without a stack; nullopt: all sizes
  std::vector<StepSpan> spans;
};

struct GroupGrowth {
  LeakGroup group;
  Growth growth;
};

}  // namespace tidemark
