// NVIDIA GPUs, through the driver's NVML library, which is loaded when this is called.
#pragma once

#include "collect/machine/device_source.h"

namespace tidemark {

[[nodiscard]] OpenedSource open_nvml_source(const SourcePlaces& places);

}  // namespace tidemark
