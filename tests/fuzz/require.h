// What a fuzz target promises of what it tests.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <string_view>

namespace tidemark::testing {

/// Ends the process where a promise is broken, which libFuzzer and the replay of seeds notice.
inline void require(bool kept, std::string_view promise) {
  if (kept) return;
  std::fprintf(stderr, "broken promise: %.*s\n", static_cast<int>(promise.size()), promise.data());
  std::abort();
}

}  // namespace tidemark::testing
