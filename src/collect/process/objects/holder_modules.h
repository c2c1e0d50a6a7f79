// The modules of the Python package that find out who holds which storages, as text: made by the build from
// python/tidemark/_holders.
#pragma once

#include <cstddef>

namespace tidemark::process {

struct HolderModule {
  const char* name;
  const char* text;
};

/// In the order in which they are to be loaded.
extern const HolderModule kHolderModules[];
extern const std::size_t kHolderModuleCount;

}  // namespace tidemark::process
