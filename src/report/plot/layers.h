// Bytes over time as layers on top of each other.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "analyze/attribution/attribution.h"
#include "analyze/ledger/ledger.h"
#include "analyze/timeline/timeline.h"
#include "base/arithmetic.h"
#include "report/plot/palette.h"
#include "report/plot/time_plot.h"

namespace tidemark {

struct PlotLayer {
  Role role = Role::allocated;
  std::string words;               ///< printable
  std::vector<std::uint64_t> top;  ///< for each point, the sum of this layer and the layers below it
};

/// Layers over the points of a plot, from the lowest to the highest.
class LayerStack {
 public:
  explicit LayerStack(std::size_t points) : top_(points, 0) {}

  /// `value` gives the bytes of the point of an index. A layer that is empty all the time is left out.
  template <typename Value>
  void add(Role role, std::string words, const Value& value) {
    bool empty = true;
    for (std::size_t index = 0; index < top_.size(); ++index) {
      const std::uint64_t bytes = value(index);
      empty &= bytes == 0;
      top_[index] = saturating_add(top_[index], bytes);
    }
    if (!empty) layers_.push_back({role, std::move(words), top_});
  }
  [[nodiscard]] std::vector<PlotLayer> take() { return std::move(layers_); }

 private:
  std::vector<std::uint64_t> top_;
  std::vector<PlotLayer> layers_;
};

/// The layers of a timeline: call sites or owners, others, and unrecorded memory.
[[nodiscard]] std::vector<PlotLayer> plot_layers(const TimelineLayers& split);

/// The overall maximum; 0 without layers.
[[nodiscard]] std::uint64_t highest_bytes(const std::vector<PlotLayer>& layers);

/// "allocated 1.2 GiB" for each layer that is not empty at the point.
[[nodiscard]] std::vector<std::string> layer_words(const std::vector<PlotLayer>& layers, std::size_t index);

/// Fills them, with a key for each.
template <typename Point>
void add_layers(TimePlot& time, const std::vector<Point>& points, const std::vector<PlotLayer>& layers) {
  const Point* const first = points.data();
  // From the highest to the lowest: each covers the part of the one before that lies below its top.
  for (auto layer = layers.rbegin(); layer != layers.rend(); ++layer) {
    time.add_curve(layer->role, 0, 1, points, [&](const Point& point) -> std::optional<std::uint64_t> {
      return layer->top[static_cast<std::size_t>(&point - first)];
    });
  }
  for (const PlotLayer& layer : layers) {
    time.plot().legend.push_back({layer.role, PlotKey::Sample::box, layer.words});
  }
}

[[nodiscard]] constexpr Role category_role(std::optional<Category> category) {
  const Category of = category.value_or(Category::unknown);
  return static_cast<Role>(static_cast<std::size_t>(Role::parameters) + static_cast<std::size_t>(of));
}
static_assert(category_role(Category::activation) == Role::activations);
static_assert(category_role(Category::unknown) == Role::unknown_category);

/// The role of a library of LedgerDevice::libraries; of any other, other_libraries.
[[nodiscard]] Role library_role(const LedgerDevice& device, const std::string& library);

/// From the lowest to the highest, without layers that are always empty. Unknown values are empty.
[[nodiscard]] std::vector<PlotLayer> ledger_layers(const LedgerDevice& device);

}  // namespace tidemark
