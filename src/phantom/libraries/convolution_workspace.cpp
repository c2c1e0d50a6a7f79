#include "phantom/libraries/convolution_workspace.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <string_view>
#include <utility>
#include <vector>

namespace tidemark::phantom {

namespace {

constexpr std::size_t kNearest = 3;
constexpr double kWeightOfFilter = 8;
constexpr double kWeightOfKind = 64;  // for another layout, or elements of another size

using Position = std::array<double, 16>;

// The coordinates of a convolution for distances. A depth counts as more height, and only the height and width of the
// filter count.
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
  std::array<double, 3> workspaces;  // per byte of the tensors
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
  std::vector<std::pair<double, double>> measured;  // distance; workspace per byte of the tensors
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

extern const char kMeasuredConvolutions[];  // cudnn_9_19_sm90.txt

namespace {

// Removes and returns the word before the next separator.
std::string_view take_word(std::string_view& text) {
  const std::string_view word = text.substr(0, text.find_first_of(" :,"));
  text.remove_prefix(std::min(text.size(), word.size() + 1));
  return word;
}

template <typename Number = std::int64_t>
Number take_number(std::string_view& text) {
  const std::string_view word = take_word(text);
  Number number = 0;
  std::from_chars(word.data(), word.data() + word.size(), number);
  return number;
}

// `float nchw 3 224 224 64 7 7 2 2 3 3 1 1 1`, as written by layer_key().
Convolution read_shape(std::string_view key) {
  Convolution shape;
  shape.type = type_named(take_word(key));
  shape.channels_last = take_word(key) == "nhwc";
  std::array<std::int64_t, 13> n = {};
  for (std::int64_t& number : n) number = take_number(key);
  shape.image = {0, n[0], n[1], n[2]};
  shape.filter = {n[3], n[0] / n[12], n[4], n[5]};
  shape.strides = {n[6], n[7]};
  shape.paddings = {n[8], n[9]};
  shape.dilations = {n[10], n[11]};
  return shape;
}

// `4:0,0,1441792 8:0,0,2883584`
MeasuredLayer read_layer(std::string_view key, std::string_view workspaces) {
  MeasuredLayer layer{.shape = read_shape(key), .workspaces = {}};
  while (!workspaces.empty()) {
    std::array<std::uint64_t, 3>& bytes = layer.workspaces[take_number(workspaces)];
    for (std::uint64_t& value : bytes) value = take_number<std::uint64_t>(workspaces);
  }
  return layer;
}

std::map<std::string, MeasuredLayer> read_layers() {
  std::map<std::string, MeasuredLayer> layers;
  for (std::string_view rest = kMeasuredConvolutions; !rest.empty();) {
    const std::string_view line = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(std::min(rest.size(), line.size() + 1));
    const std::size_t end = line.find("  ");
    if (end == std::string_view::npos || line[0] == '#') continue;
    const std::string_view key = line.substr(0, end);
    layers.emplace(key, read_layer(key, line.substr(end + 2)));
  }
  return layers;
}

}  // namespace

const std::map<std::string, MeasuredLayer>& measured_layers() {
  static auto* const kLayers = new std::map<std::string, MeasuredLayer>(read_layers());
  return *kLayers;
}

}  // namespace tidemark::phantom
