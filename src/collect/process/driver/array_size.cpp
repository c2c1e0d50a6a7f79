#include "collect/process/driver/array_size.h"

namespace tidemark::process::cuda {
namespace {

/// Bytes of one channel of a CUarray_format; 0 = unknown.
std::uint64_t channel_bytes(std::int32_t format) noexcept {
  switch (format) {
    case 0x01:  // CU_AD_FORMAT_UNSIGNED_INT8
    case 0x08:  // CU_AD_FORMAT_SIGNED_INT8
    case 0xc0:  // CU_AD_FORMAT_UNORM_INT8X1, X2, X4
    case 0xc1:
    case 0xc2:
    case 0xc6:  // CU_AD_FORMAT_SNORM_INT8X1, X2, X4
    case 0xc7:
    case 0xc8:
      return 1;
    case 0x02:  // CU_AD_FORMAT_UNSIGNED_INT16
    case 0x09:  // CU_AD_FORMAT_SIGNED_INT16
    case 0x10:  // CU_AD_FORMAT_HALF
    case 0xc3:  // CU_AD_FORMAT_UNORM_INT16X1, X2, X4
    case 0xc4:
    case 0xc5:
    case 0xc9:  // CU_AD_FORMAT_SNORM_INT16X1, X2, X4
    case 0xca:
    case 0xcb:
      return 2;
    case 0x03:  // CU_AD_FORMAT_UNSIGNED_INT32
    case 0x0a:  // CU_AD_FORMAT_SIGNED_INT32
    case 0x20:  // CU_AD_FORMAT_FLOAT
      return 4;
    default:
      return 0;
  }
}

constexpr unsigned kArrayLayered = 0x01;          // CUDA_ARRAY3D_LAYERED
constexpr unsigned kArrayCubemap = 0x04;          // CUDA_ARRAY3D_CUBEMAP
constexpr unsigned kArraySparse = 0x40;           // CUDA_ARRAY3D_SPARSE
constexpr unsigned kArrayDeferredMapping = 0x80;  // CUDA_ARRAY3D_DEFERRED_MAPPING

std::uint64_t at_least(std::uint64_t least, std::uint64_t value) noexcept {
  return value < least ? least : value;
}

}  // namespace

bool array_bytes(const Array3DDescription& array, unsigned levels, std::uint64_t* bytes) noexcept {
  *bytes = 0;
  if ((array.flags & (kArraySparse | kArrayDeferredMapping)) != 0) return true;
  const bool has_layers = (array.flags & (kArrayLayered | kArrayCubemap)) != 0;
  const std::uint64_t layers = has_layers ? at_least(1, array.depth) : 1;
  const std::uint64_t depth = has_layers ? 1 : array.depth;
  const std::uint64_t longest = at_least(at_least(array.width, array.height), at_least(1, depth));
  std::uint64_t elements = 0;
  for (unsigned level = 0; level == 0 || (level < levels && longest >> level > 0); ++level) {
    elements += at_least(1, array.width >> level) * at_least(1, array.height >> level) * at_least(1, depth >> level);
  }
  *bytes = elements * layers * array.channels * channel_bytes(array.format);
  return channel_bytes(array.format) != 0;
}

}  // namespace tidemark::process::cuda
