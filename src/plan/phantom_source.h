// The planned GPUs as samples see them: what the processes of the plan take, as they say in the phantom's folder.
#pragma once

#include <memory>
#include <string>

#include "collect/machine/device_source.h"
#include "plan/phantom_run.h"

namespace tidemark {

/// `folder`: that of a PhantomRun, made with `options`. Where it is gone, nothing is used.
[[nodiscard]] std::unique_ptr<DeviceSource> make_phantom_source(const std::string& folder,
                                                                const PhantomOptions& options);

}  // namespace tidemark
