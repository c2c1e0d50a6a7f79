// Words for the results of analyze_patterns() and analyze_temporary(), the same in text and on a page.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "analyze/advice/patterns.h"

namespace tidemark {

/// By Lifetime.
inline constexpr std::array<const char*, kLifetimes> kLifetimeWords = {
    "never freed", "temporary (freed after at most 1 other allocation)", "across steps (freed in a later step)",
    "within a step (freed in the same step)", "freed (no training steps detected)"};

/// "up to 12.0 MiB", and whether that is too little to be advice.
[[nodiscard]] std::string avoidable_peak_text(std::uint64_t saving, std::uint64_t peak);

struct NamedPattern {
  const Pattern* pattern = nullptr;
  const char* title = nullptr;
  const char* advice = nullptr;  ///< how to save the memory
};

/// The patterns that could be searched for. Valid as long as the device's result.
[[nodiscard]] inline std::vector<NamedPattern> named_patterns(const PatternsDevice& device) {
  std::vector<NamedPattern> patterns;
  if (device.kept_into_next_step) {
    patterns.push_back({&*device.kept_into_next_step, "Kept alive into the next step",
                        "del the variable at the end of the step if the next step does not use it"});
  }
  patterns.push_back({&device.freed_after_allocation, "Freed right after another allocation",
                      "use in-place operations if the allocation is computed from these blocks"});
  return patterns;
}

}  // namespace tidemark
