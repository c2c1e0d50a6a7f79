// Where the library is that recorded programs preload.
#pragma once

#include <string>

#include "base/result.h"

namespace tidemark::cli {

/// Beside this program: ../lib as installed and in the build folder.
[[nodiscard]] Result<std::string> preload_library();

}  // namespace tidemark::cli
