// How many bytes the elements of a CUDA array have.
#pragma once

#include <cstdint>

#include "collect/process/driver/cupti_api.h"

namespace tidemark::process::cuda {

/// Gives in `*bytes` those of all elements: element size × channels × extents, summed over the levels of a mipmapped
/// array (each half as wide, high and deep as the one before; layers and faces stay). Levels beyond the last possible
/// one do not count, as in cuMipmappedArrayCreate. What the driver adds for alignment is not included: it tells nobody.
/// 0 for arrays without memory of their own (sparse, or mapped later). False for formats whose elements are not whole
/// bytes for each channel (block-compressed, YUV), and for those that this version does not know.
[[nodiscard]] bool array_bytes(const Array3DDescription& array, unsigned levels, std::uint64_t* bytes) noexcept;

}  // namespace tidemark::process::cuda
