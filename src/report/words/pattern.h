// Words for the results of analyze_patterns(), the same in text and on a page.
#pragma once

#include <array>
#include <vector>

#include "analyze/patterns.h"

namespace tidemark {

/// By Lifetime.
inline constexpr std::array<const char*, kLifetimes> kLifetimeWords = {
    "never freed", "freed after at most one other allocation", "allocated in one step, freed in a later one",
    "allocated and freed in one step", "freed later"};

struct NamedPattern {
  const Pattern* pattern = nullptr;
  const char* title = nullptr;
  const char* advice = nullptr;  ///< what may save the memory
};

/// Those that could be looked for. Valid as long as the device's result.
[[nodiscard]] inline std::vector<NamedPattern> named_patterns(const PatternsDevice& device) {
  std::vector<NamedPattern> patterns;
  if (device.held_until_replaced) {
    patterns.push_back({&*device.held_until_replaced, "Held until the next step's are there",
                        "del the variable at the end of a step, if the next step does not use it"});
  }
  patterns.push_back({&device.freed_after_allocation, "Freed right after another allocation",
                      "work in place, if the allocation is made from them"});
  return patterns;
}

}  // namespace tidemark
