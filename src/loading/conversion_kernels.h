// The kernels that convert elements, as PTX, which the driver compiles for its device: no CUDA compiler is needed to
// build Tidemark, and any device that CUDA 11 and newer know can run them.
#pragma once

#include <string>

#include "loading/element_conversion.h"

namespace tidemark {

/// A module with a kernel for each conversion. Its parameters: `to`, `from` and the number of elements, of 64 bits
/// each; the scale and what is added, float32. A thread converts an element.
[[nodiscard]] std::string conversion_module();
/// Of a conversion that converted_bytes() accepts.
[[nodiscard]] std::string conversion_kernel(const ElementConversion& conversion);

}  // namespace tidemark
