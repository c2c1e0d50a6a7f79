#include "report/plot/ledger_layers.h"

#include <algorithm>
#include <utility>

#include "analyze/common/arithmetic.h"
#include "report/words/ledger.h"
#include "report/words/printable.h"

namespace tidemark {
namespace {

constexpr std::size_t kMostLabelWidth = 40;

class Stack {
 public:
  explicit Stack(const std::vector<LedgerPoint>& points) : points_(points), top_(points.size(), 0) {}

  template <typename Value>
  void add(Role role, std::string words, const Value& value) {
    bool empty = true;
    for (std::size_t index = 0; index < points_.size(); ++index) {
      const std::uint64_t bytes = std::optional<std::uint64_t>(value(points_[index])).value_or(0);
      empty &= bytes == 0;
      top_[index] = saturating_add(top_[index], bytes);
    }
    if (!empty) layers_.push_back({role, std::move(words), top_});
  }
  [[nodiscard]] std::vector<LedgerLayer> take() { return std::move(layers_); }

 private:
  const std::vector<LedgerPoint>& points_;
  std::vector<std::uint64_t> top_;
  std::vector<LedgerLayer> layers_;
};

}  // namespace

Role library_role(const LedgerDevice& device, const std::string& library) {
  constexpr std::size_t kOwnRoles = 5;
  const auto found = std::find(device.libraries.begin(), device.libraries.end(), library);
  const auto index = static_cast<std::size_t>(found - device.libraries.begin());
  if (found == device.libraries.end() || index >= kOwnRoles) return Role::other_libraries;
  return static_cast<Role>(static_cast<std::size_t>(Role::library1) + index);
}

std::vector<LedgerLayer> ledger_layers(const LedgerDevice& device) {
  Stack stack(device.points);
  stack.add(Role::allocated, "allocated", [](const LedgerPoint& point) { return point.allocated_bytes; });
  stack.add(Role::cached, "cached", [](const LedgerPoint& point) { return point.cached_bytes; });
  for (std::size_t library = 0; library < device.libraries.size(); ++library) {
    stack.add(library_role(device, device.libraries[library]), shown(device.libraries[library], kMostLabelWidth),
              [&](const LedgerPoint& point) { return point.library_bytes[library]; });
  }
  stack.add(Role::other_libraries, "other libraries",
            [](const LedgerPoint& point) { return point.other_library_bytes; });
  stack.add(Role::context, line_words({LedgerPart::context, {}, {}}, device.breakdown),
            [](const LedgerPoint& point) { return point.context_bytes; });
  stack.add(Role::processes, "other processes", [](const LedgerPoint& point) { return point.process_bytes; });
  return stack.take();
}

std::uint64_t highest_bytes(const LedgerDevice& device, const std::vector<LedgerLayer>& layers) {
  std::uint64_t highest = 0;
  for (const LedgerPoint& point : device.points) highest = std::max(highest, point.used_bytes);
  if (!layers.empty()) {
    for (const std::uint64_t bytes : layers.back().top) highest = std::max(highest, bytes);
  }
  return highest;
}

}  // namespace tidemark
