// Sizes of CUDA arrays.
#pragma once

#include <cstdint>

#include "collect/process/driver/cupti_api.h"

namespace tidemark::process::cuda {

/// Sets `*bytes` to the size of all elements: element size × channels × extents, summed over the levels of a mipmapped
/// array (each half as wide, high and deep as the one before; the number of layers and faces is constant). Levels
/// beyond the last possible one do not count, as in cuMipmappedArrayCreate. The driver's padding for alignment is not
/// included, because the driver does not report it. 0 for arrays without memory of their own (sparse, or mapped later).
/// False for formats without whole bytes for each channel (block-compressed, YUV), and for unknown formats.
[[nodiscard]] bool array_bytes(const Array3DDescription& array, unsigned levels, std::uint64_t* bytes) noexcept;

}  // namespace tidemark::process::cuda
