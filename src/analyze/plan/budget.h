// How much more memory a run may take than another one: "5%" or "100MiB".
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"

namespace tidemark {

struct Budget {
  std::string text;       ///< as it was written
  bool relative = false;  ///< `amount` is in millionths of the other run's memory; otherwise in bytes
  std::uint64_t amount = 0;

  /// Whether `now` is more than the budget above `before`. Exact: at the limit is within it.
  [[nodiscard]] bool exceeded(std::uint64_t before, std::uint64_t now) const;
};

/// Reads a percentage with at most four decimals ("5%", "0.5%"), or a size as parse_size() does.
Result<Budget> parse_budget(std::string_view text);

}  // namespace tidemark
