#include "report/plot/layers.h"

#include <algorithm>

#include "base/units.h"

namespace tidemark {

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

}  // namespace tidemark
