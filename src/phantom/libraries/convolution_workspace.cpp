#include "phantom/libraries/convolution_workspace.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <utility>
#include <vector>

#include "phantom/libraries/convolution_table.h"

namespace tidemark::phantom {
namespace {

constexpr std::size_t kNearest = 3;
constexpr double kWeightOfFilter = 8;
constexpr double kWeightOfKind = 64;  // of another layout, or elements of another size

using Position = std::array<double, 16>;

// Where a convolution lies among others. A depth counts as more height, and only the height and width of the filter
// count.
Position position_of(const Convolution& convolution) {
  Position position = {};
  std::size_t next = 0;
  const auto add = [&](std::int64_t value, double weight) {
    position[next++] = weight * std::log2(static_cast<double>(value));
  };
  const std::size_t last = convolution.image.size() - 1;
  std::int64_t height = 1;
  for (std::size_t size = 2; size < last; ++size) height *= convolution.image[size];
  for (const std::int64_t value :
       {convolution.image[0], convolution.image[1], height, convolution.image[last], convolution.filter[0]})
    add(value, 1);
  for (const std::int64_t value : {convolution.filter[std::max<std::size_t>(last - 1, 2)], convolution.filter[last]})
    add(value + 1, kWeightOfFilter);
  for (const auto* values : {&convolution.strides, &convolution.paddings, &convolution.dilations}) {
    add((*values)[values->size() > 1 ? values->size() - 2 : 0] + 1, kWeightOfFilter);
    add(values->back() + 1, kWeightOfFilter);
  }
  add(convolution.groups() + 1, kWeightOfFilter);
  add(static_cast<std::int64_t>(element_bytes(convolution.type)), kWeightOfKind);
  add(convolution.channels_last ? 2 : 1, kWeightOfKind);
  return position;
}

double distance(const Position& one, const Position& other) {
  double sum = 0;
  for (std::size_t index = 0; index < one.size(); ++index) sum += std::abs(one[index] - other[index]);
  return sum;
}

struct Measured {
  Position position;
  std::array<double, 3> workspaces;  // for each byte of the tensors
};

std::vector<Measured> measured_positions() {
  std::vector<Measured> all;
  for (const auto& [key, layer] : measured_layers()) {
    Convolution convolution = layer.shape;
    for (const auto& [batch, bytes] : layer.workspaces) {
      convolution.image[0] = batch;
      const auto tensors = static_cast<double>(tensor_bytes(convolution));
      Measured& measured = all.emplace_back(Measured{position_of(convolution), {}});
      for (std::size_t pass = 0; pass < bytes.size(); ++pass)
        measured.workspaces[pass] = static_cast<double>(bytes[pass]) / tensors;
    }
  }
  return all;
}

std::uint64_t estimate(const Convolution& convolution) {
  static const auto* const kPositions = new std::vector<Measured>(measured_positions());
  const Position position = position_of(convolution);
  std::vector<std::pair<double, double>> measured;  // distance; workspace for each byte of the tensors
  for (const Measured& other : *kPositions)
    measured.emplace_back(distance(position, other.position),
                          other.workspaces[static_cast<std::size_t>(convolution.pass)]);
  std::partial_sort(measured.begin(), measured.begin() + kNearest, measured.end());
  std::array<double, kNearest> nearest = {};
  for (std::size_t index = 0; index < kNearest; ++index) nearest[index] = measured[index].second;
  std::sort(nearest.begin(), nearest.end());
  return static_cast<std::uint64_t>(nearest[kNearest / 2] * static_cast<double>(tensor_bytes(convolution)));
}

}  // namespace

ConvolutionWorkspace convolution_workspace(const Convolution& convolution) {
  const auto layer = measured_layers().find(layer_key(convolution));
  if (layer != measured_layers().end()) {
    const auto workspaces = layer->second.workspaces.find(convolution.image[0]);
    if (workspaces != layer->second.workspaces.end())
      return {workspaces->second[static_cast<std::size_t>(convolution.pass)], true};
  }
  return {estimate(convolution), false};
}

}  // namespace tidemark::phantom
