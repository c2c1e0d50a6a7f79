// The stand-ins for one installed PyTorch: a folder of libraries with NVIDIA's names.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"

namespace tidemark {

/// Writes into `folder` a stand-in for each library of NVIDIA's that the libraries in `torch_folder`/lib and `others`
/// need, and for those that are opened by name (the driver, NVML). `phantom` is libtidemark_phantom.so. Returns their
/// paths in the order in which to preload them. Errors name the file.
[[nodiscard]] Result<std::vector<std::string>> write_standins(const std::string& folder,
                                                              const std::string& torch_folder,
                                                              const std::vector<std::string>& others,
                                                              const std::string& phantom);

}  // namespace tidemark
