#include "phantom/libraries/convolution_table.h"

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <string_view>

namespace tidemark::phantom {

extern const char kMeasuredConvolutions[];  // cudnn_9_19_sm90.txt

namespace {

// Takes the word before the next separator off the text.
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

// `float nchw 3 224 224 64 7 7 2 2 3 3 1 1 1`, as layer_key() writes it.
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
