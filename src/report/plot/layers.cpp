#include "report/plot/layers.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "base/units.h"
#include "query/words/ledger.h"
#include "query/words/printable.h"

namespace tidemark {
namespace {

constexpr std::size_t kMaxLabelWidth = 40;

}  // namespace

std::uint64_t highest_bytes(const std::vector<PlotLayer>& layers) {
  if (layers.empty() || layers.back().top.empty()) return 0;
  return *std::max_element(layers.back().top.begin(), layers.back().top.end());
}

std::vector<std::string> layer_words(const std::vector<PlotLayer>& layers, std::size_t index) {
  std::vector<std::string> words;
  std::uint64_t below = 0;
  for (const PlotLayer& layer : layers) {
    if (layer.top[index] != below) words.push_back(layer.words + " " + format_bytes(layer.top[index] - below));
    below = layer.top[index];
  }
  return words;
}

Role library_role(const LedgerDevice& device, const std::string& library) {
  constexpr std::size_t kOwnRoles = 5;
  const auto found = std::find(device.libraries.begin(), device.libraries.end(), library);
  const auto index = static_cast<std::size_t>(found - device.libraries.begin());
  if (found == device.libraries.end() || index >= kOwnRoles) return Role::other_libraries;
  return static_cast<Role>(static_cast<std::size_t>(Role::library1) + index);
}

std::vector<PlotLayer> ledger_layers(const LedgerDevice& device) {
  LayerStack stack(device.points.size());
  const auto add = [&](Role role, std::string words, const auto& value) {
    stack.add(role, std::move(words),
              [&](std::size_t index) { return std::optional<std::uint64_t>(value(device.points[index])).value_or(0); });
  };
  add(Role::allocated, "allocated", [](const LedgerPoint& point) { return point.allocated_bytes; });
  add(Role::cached, "cached", [](const LedgerPoint& point) { return point.cached_bytes; });
  for (std::size_t library = 0; library < device.libraries.size(); ++library) {
    add(library_role(device, device.libraries[library]), shown(device.libraries[library], kMaxLabelWidth),
        [&](const LedgerPoint& point) { return point.library_bytes[library]; });
  }
  add(Role::other_libraries, "other libraries", [](const LedgerPoint& point) { return point.other_library_bytes; });
  add(Role::context, line_words({LedgerPart::context, {}, {}}, device.breakdown),
      [](const LedgerPoint& point) { return point.context_bytes; });
  add(Role::processes, "other processes", [](const LedgerPoint& point) { return point.process_bytes; });
  return stack.take();
}

}  // namespace tidemark
