// The stand-ins for one installed PyTorch: a folder of libraries under NVIDIA's names.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"

namespace tidemark {

struct Standins {
  std::vector<std::string> preload;  ///< paths in the order in which they are to be preloaded
  std::size_t functions = 0;         ///< that the stand-ins have, besides those that the phantom GPU answers
  std::size_t unanswered = 0;        ///< of them those that fail
};

/// Writes into `folder` a stand-in for each library of NVIDIA's that the libraries in `torch_folder`/lib and `others`
/// need, and for those that are opened by name (the driver, NVML). `phantom` is libtidemark_phantom.so. Errors name the
/// file.
[[nodiscard]] Result<Standins> write_standins(const std::string& folder, const std::string& torch_folder,
                                              const std::vector<std::string>& others, const std::string& phantom);

}  // namespace tidemark
