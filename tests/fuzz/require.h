// Assertions of the fuzz targets.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <string_view>

namespace tidemark::testing {

/// Ends the process if the condition is false, which libFuzzer and the replay of seeds detect.
inline void require(bool kept, std::string_view promise) {
  if (kept) return;
  std::fprintf(stderr, "broken promise: %.*s\n", static_cast<int>(promise.size()), promise.data());
  std::abort();
}

}  // namespace tidemark::testing
