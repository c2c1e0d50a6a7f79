// The part of the stand-in driver for arrays.
#include <map>
#include <mutex>

#include "call.h"

namespace {

using namespace fakes;
using namespace tidemark::process::cuda;

std::mutex lock;
std::map<Array, bool> arrays;  // NOLINT: whether it has memory of its own

constexpr std::int32_t kNv12 = 0xb0;
constexpr unsigned kLayered = 1;
constexpr unsigned kSparse = 0x40;

/// For the formats used by the scenes.
std::uint64_t bytes_of_texels(std::int32_t format, unsigned channels, std::uint64_t texels) {
  static const std::map<std::int32_t, std::uint64_t> kChannel = {{0x01, 1}, {0x10, 2}, {0x20, 4}};
  return format == kNv12 ? texels * 3 / 2 : kChannel.at(format) * channels * texels;
}

Result create(Array* array, const Array3DDescription& wanted, unsigned levels) {
  std::uint64_t texels = 0;
  std::size_t width = wanted.width;
  std::size_t height = std::max<std::size_t>(wanted.height, 1);
  std::size_t depth = std::max<std::size_t>(wanted.depth, 1);
  for (unsigned level = 0; level < levels; ++level) {
    texels += width * height * depth;
    width = std::max<std::size_t>(width / 2, 1);
    height = std::max<std::size_t>(height / 2, 1);
    if ((wanted.flags & kLayered) == 0) depth = std::max<std::size_t>(depth / 2, 1);
  }
  const bool has_memory = (wanted.flags & kSparse) == 0;
  std::uint64_t address = 0;
  const Result result = has_memory
                            ? state->memory.allocate(device_account(context->device),
                                                     bytes_of_texels(wanted.format, wanted.channels, texels), &address)
                            : state->memory.reserve_addresses(1, &address);
  if (result != kSuccess) return result;
  *array = reinterpret_cast<Array>(address);
  const std::lock_guard guard(lock);
  arrays[*array] = has_memory;
  return kSuccess;
}

Result destroy(const ArrayParameters& call) {
  const std::lock_guard guard(lock);
  const auto array = arrays.find(call.array);
  if (array == arrays.end()) return kInvalidValue;
  const Result result =
      array->second ? state->memory.free(number(call.array)) : state->memory.free_addresses(number(call.array), 1);
  arrays.erase(array);
  return result;
}

}  // namespace

FAKE Result cuArrayCreate_v2(Array* array, const ArrayDescription* description) {
  return call(id::ArrayCreate_v2, HERE, CreateArrayParameters{array, description},
              [](const CreateArrayParameters& call) {
                const ArrayDescription& flat = *call.description;
                return create(call.array, {flat.width, flat.height, 0, flat.format, flat.channels, 0}, 1);
              });
}
FAKE Result cuArray3DCreate_v2(Array* array, const Array3DDescription* description) {
  return call(id::Array3DCreate_v2, HERE, CreateArray3DParameters{array, description},
              [](const CreateArray3DParameters& call) { return create(call.array, *call.description, 1); });
}
FAKE Result cuMipmappedArrayCreate(Array* array, const Array3DDescription* description, unsigned levels) {
  return call(id::MipmappedArrayCreate, HERE, CreateMipmappedArrayParameters{{array, description}, levels},
              [](const CreateMipmappedArrayParameters& call) {
                return create(call.common.array, *call.common.description, call.levels);
              });
}
FAKE Result cuArrayDestroy(Array array) {
  return call(id::ArrayDestroy, HERE, ArrayParameters{array}, destroy);
}
FAKE Result cuMipmappedArrayDestroy(Array array) {
  return call(id::MipmappedArrayDestroy, HERE, ArrayParameters{array}, destroy);
}
