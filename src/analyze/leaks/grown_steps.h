// What the steps that left memory behind say: whether it is a leak.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "analyze/leaks/growth.h"

namespace tidemark {

/// `grown`: the steps of [warmup, end) that left memory behind, increasing, at least two.
struct GrownSteps {
  std::span<const std::uint32_t> grown;
  std::uint32_t warmup = 0;
  std::uint32_t end = 0;

  /// Longer than they ever paused.
  [[nodiscard]] std::uint32_t long_pause() const;
  /// Where growth that is to be measured begins: with the first of them where it began late.
  [[nodiscard]] std::uint32_t begin() const;
  /// GrowthClass::leak unless they stopped, are too few, or became rare.
  [[nodiscard]] GrowthClass classify() const;
};

/// The age up to which memory may still be freed: `usual_age` is how old what is freed gets, 0 where nothing is freed;
/// `proof`: something is known to have outlived such a free, so that not each one takes everything.
[[nodiscard]] std::uint32_t young_age(std::uint32_t usual_age, bool proof);

}  // namespace tidemark
