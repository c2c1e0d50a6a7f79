#include "phantom/libraries/convolution.h"

#include <algorithm>

namespace tidemark::phantom {
namespace {

// cudnnDataType_t
std::string type_name(int type) {
  switch (type) {
    case 0:
      return "float";
    case 1:
      return "double";
    case 2:
      return "half";
    case 9:
      return "bfloat16";
    default:
      return std::to_string(type);
  }
}

void append(std::string& key, const std::vector<std::int64_t>& values, std::size_t first = 0) {
  for (std::size_t index = first; index < values.size(); ++index) key += ' ' + std::to_string(values[index]);
}

}  // namespace

std::string layer_key(const Convolution& convolution) {
  const std::vector<std::int64_t>& filter = convolution.filter;
  std::string key = type_name(convolution.type) + (convolution.channels_last() ? " nhwc" : " nchw");
  append(key, convolution.image, 1);
  append(key, {filter.empty() ? 0 : filter[0]});
  append(key, filter, 2);
  append(key, convolution.steps);
  append(key, convolution.paddings);
  append(key, convolution.dilations);
  const bool complete = filter.size() > 1 && convolution.image.size() > 1;
  append(key, {complete ? convolution.image[1] / std::max<std::int64_t>(filter[1], 1) : 0});
  return key;
}

}  // namespace tidemark::phantom
