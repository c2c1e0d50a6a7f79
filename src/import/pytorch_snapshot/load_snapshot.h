// A PyTorch snapshot as what every analysis works on.
#pragma once

#include <string>

#include "base/result.h"
#include "store/store.h"

namespace tidemark::pytorch {

/// As load_overview() and load_store() for recordings. Errors name the file and, of a pickle, the offset.
Result<Overview> load_overview(const std::string& path, const Progress& progress = {});
Result<Store> load_store(const std::string& path, const Progress& progress = {});

}  // namespace tidemark::pytorch
