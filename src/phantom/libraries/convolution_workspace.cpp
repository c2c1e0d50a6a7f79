#include "phantom/libraries/convolution_workspace.h"

#include <array>
#include <cstdlib>
#include <map>
#include <string>
#include <string_view>

namespace tidemark::phantom {
namespace {

constexpr std::string_view kMeasured =
#include "phantom/libraries/cudnn_9_19_sm90.inc"
    ;

// Bytes by batch size, then by pass.
using Batches = std::map<std::int64_t, std::array<std::uint64_t, 3>>;

// `4:0,0,1441792 8:0,0,2883584`
Batches read_batches(const std::string& text) {
  Batches batches;
  for (const char* at = text.c_str(); *at != '\0';) {
    char* end = nullptr;
    std::array<std::uint64_t, 3>& bytes = batches[std::strtoll(at, &end, 10)];
    for (std::uint64_t& value : bytes) value = std::strtoull(end + 1, &end, 10);
    at = end;
  }
  return batches;
}

using Layers = std::map<std::string, Batches>;

// Lines of a layer's key, two spaces and its batches.
Layers read_layers() {
  Layers layers;
  for (std::string_view rest = kMeasured; !rest.empty();) {
    const std::string_view line = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(std::min(rest.size(), line.size() + 1));
    const std::size_t end = line.find("  ");
    if (end != std::string_view::npos && line[0] != '#')
      layers.emplace(line.substr(0, end), read_batches(std::string(line.substr(end + 2))));
  }
  return layers;
}

}  // namespace

ConvolutionWorkspace convolution_workspace(const Convolution& convolution) {
  static const Layers kLayers = read_layers();
  const auto layer = kLayers.find(layer_key(convolution));
  if (layer == kLayers.end()) return {};
  const auto batch = layer->second.find(convolution.image[0]);
  if (batch == layer->second.end()) return {};
  return {batch->second[static_cast<std::size_t>(convolution.pass)], true};
}

}  // namespace tidemark::phantom
