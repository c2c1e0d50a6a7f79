// Whether memory grows from step to step, from how much of it there was at the end of each.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "analyze/leaks/growth.h"

namespace tidemark {

/// The same criterion as find_retained_growth(), where lifetimes of blocks are not known. `held[k]`: bytes at the end
/// of step k, at the same phase of all steps. What step k left behind is what the least that was held from it on is
/// more than before: what is freed later counts for no step. What is freed tells how old memory gets, as there; the
/// last steps, younger than that, say nothing; frees of less than a tenth of the growth do not count. `least`: what
/// counts as growth of a step, in bytes. `warmup`: steps at the beginning that may leave anything. None: nothing that
/// grows.
///
/// A series has no blocks: Growth::blocks_per_step is 0. Too few also means that one step left nearly all; slowing that
/// the later half of the steps left less than the earlier one: 70% of it, or surely less than 90%.
[[nodiscard]] std::optional<Growth> find_series_growth(std::span<const double> held, std::uint32_t warmup,
                                                       double least);

}  // namespace tidemark
