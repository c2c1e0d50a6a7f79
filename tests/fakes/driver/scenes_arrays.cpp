// Scenes of arrays.
#include "scenes.h"

namespace fakes {
namespace {

// CUarray_format, CUDA_ARRAY3D_...
constexpr std::int32_t kUint8 = 0x01;
constexpr std::int32_t kHalf = 0x10;
constexpr std::int32_t kFloat = 0x20;
constexpr std::int32_t kNv12 = 0xb0;
constexpr unsigned kLayered = 0x01;
constexpr unsigned kSparse = 0x40;

Array create_flat(const ArrayDescription& description) {
  Array array = nullptr;
  DRIVER(cuArrayCreate_v2)(&array, &description);
  return array;
}

Array create(const Array3DDescription& description) {
  Array array = nullptr;
  DRIVER(cuArray3DCreate_v2)(&array, &description);
  return array;
}

Array create_mipmapped(const Array3DDescription& description, unsigned levels) {
  Array array = nullptr;
  DRIVER(cuMipmappedArrayCreate)(&array, &description, levels);
  return array;
}

}  // namespace

int arrays() {
  start();
  Array line = create_flat({1000, 0, kFloat, 1});
  Array image = create_flat({1920, 1080, kUint8, 4});
  Array volume = create({64, 32, 16, kHalf, 2, 0});
  Array layers = create({256, 0, 10, kFloat, 4, kLayered});
  Array pyramid = create_mipmapped({100, 60, 0, kFloat, 1, 0}, 7);
  Array layered_pyramid = create_mipmapped({64, 64, 3, kUint8, 1, kLayered}, 4);
  Array sparse = create({4096, 4096, 0, kFloat, 4, kSparse});
  DRIVER(cuArrayDestroy)(image);
  DRIVER(cuMipmappedArrayDestroy)(pyramid);
  DRIVER(cuArrayDestroy)(volume);  // the script makes it fail
  DRIVER(cuArrayDestroy)(sparse);
  DRIVER(cuArrayDestroy)(line);
  DRIVER(cuMipmappedArrayDestroy)(layered_pyramid);
  return layers != nullptr ? 0 : 1;
}

/// Their size is known only to the driver.
int unknown_arrays() {
  start();
  Array frames[2] = {};
  for (Array& frame : frames) frame = create_flat({1920, 1080, kNv12, 3});
  Array image = create_flat({16, 16, kUint8, 1});
  for (Array frame : frames) DRIVER(cuArrayDestroy)(frame);
  DRIVER(cuArrayDestroy)(image);
  return 0;
}

}  // namespace fakes
