// The planned GPUs as a source of samples: memory of the plan's processes, from files in the phantom's folder.
#pragma once

#include <memory>
#include <string>

#include "collect/machine/device_source.h"
#include "plan/phantom_run.h"

namespace tidemark {

/// `folder`: of a PhantomRun, created with `options`. If it is gone, nothing is used.
[[nodiscard]] std::unique_ptr<DeviceSource> make_phantom_source(const std::string& folder,
                                                                const PhantomOptions& options);

}  // namespace tidemark
