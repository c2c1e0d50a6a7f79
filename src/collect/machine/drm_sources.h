// GPUs that the kernel itself describes in /sys/class/drm, and their processes in /proc/PID/fdinfo.
#pragma once

#include "collect/machine/device_source.h"

namespace tidemark {

/// amdgpu: everything from sysfs (Documentation/gpu/amdgpu/driver-misc.rst), processes from drm-memory-vram.
[[nodiscard]] OpenedSource open_amd_source(const SourcePlaces& places);

/// xe and i915: processes from drm-total-vram0 and drm-total-local0 (Documentation/gpu/drm-usage-stats.rst). These
/// drivers do not say how much of the memory is in use in all.
[[nodiscard]] OpenedSource open_intel_source(const SourcePlaces& places);

}  // namespace tidemark
