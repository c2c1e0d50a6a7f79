// Selects blocks of a recording for an analysis.
#pragma once

#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

namespace tidemark {

/// Default: all of them. Cheap to copy.
class BlockFilter {
 public:
  BlockFilter() = default;
  /// `chosen`: by BlockId.
  explicit BlockFilter(std::vector<bool> chosen)
      : chosen_(std::make_shared<const std::vector<bool>>(std::move(chosen))) {}

  [[nodiscard]] bool all() const { return chosen_ == nullptr; }
  [[nodiscard]] bool operator()(std::size_t block) const { return chosen_ == nullptr || (*chosen_)[block]; }

 private:
  std::shared_ptr<const std::vector<bool>> chosen_;  // null: all
};

}  // namespace tidemark
