#include "phantom/libraries/convolution.h"

#include <algorithm>
#include <cstddef>
#include <iterator>

namespace tidemark::phantom {
namespace {

struct DataType {
  int type;  // cudnnDataType_t
  const char* name;
  std::uint64_t bytes;
};
constexpr DataType kDataTypes[] = {{0, "float", 4},    {1, "double", 8}, {2, "half", 2}, {3, "int8", 1},
                                   {9, "bfloat16", 2}, {12, "e4m3", 1},  {13, "e5m2", 1}};

const DataType* data_type(int type) {
  const auto* const found = std::find_if(std::begin(kDataTypes), std::end(kDataTypes),
                                         [&](const DataType& known) { return known.type == type; });
  return found == std::end(kDataTypes) ? nullptr : found;
}

void append(std::string& key, const std::vector<std::int64_t>& values, std::size_t first = 0) {
  for (std::size_t index = first; index < values.size(); ++index) key += ' ' + std::to_string(values[index]);
}

bool all_at_least(const std::vector<std::int64_t>& values, std::int64_t least) {
  return std::all_of(values.begin(), values.end(), [&](std::int64_t value) { return value >= least; });
}

}  // namespace

bool is_valid(const Convolution& convolution) {
  const std::size_t sizes = convolution.image.size() - 2;
  return convolution.image.size() > 2 && convolution.filter.size() == sizes + 2 &&
         convolution.strides.size() == sizes && convolution.paddings.size() == sizes &&
         convolution.dilations.size() == sizes && all_at_least(convolution.image, 1) &&
         all_at_least(convolution.filter, 1) && all_at_least(convolution.strides, 1) &&
         all_at_least(convolution.paddings, 0) && all_at_least(convolution.dilations, 1);
}

std::string layer_key(const Convolution& convolution) {
  const DataType* const type = data_type(convolution.type);
  std::string key = type != nullptr ? type->name : std::to_string(convolution.type);
  key += convolution.channels_last ? " nhwc" : " nchw";
  append(key, convolution.image, 1);
  append(key, {convolution.filter[0]});
  append(key, convolution.filter, 2);
  append(key, convolution.strides);
  append(key, convolution.paddings);
  append(key, convolution.dilations);
  append(key, {convolution.groups()});
  return key;
}

int type_named(std::string_view name) {
  for (const DataType& known : kDataTypes)
    if (name == known.name) return known.type;
  return 0;
}

std::uint64_t element_bytes(int type) {
  const DataType* const found = data_type(type);
  return found != nullptr ? found->bytes : 4;
}

std::uint64_t tensor_bytes(const Convolution& convolution) {
  std::int64_t input = convolution.image[0] * convolution.image[1];
  std::int64_t output = convolution.image[0] * convolution.filter[0];
  std::int64_t filter = convolution.filter[0] * convolution.filter[1];
  for (std::size_t size = 0; size < convolution.strides.size(); ++size) {
    const std::int64_t reach = convolution.dilations[size] * (convolution.filter[size + 2] - 1) + 1;
    const std::int64_t padded = convolution.image[size + 2] + 2 * convolution.paddings[size];
    input *= convolution.image[size + 2];
    output *= std::max<std::int64_t>(0, (padded - reach) / convolution.strides[size] + 1);
    filter *= convolution.filter[size + 2];
  }
  return static_cast<std::uint64_t>(input + output + filter) * element_bytes(convolution.type);
}

}  // namespace tidemark::phantom
