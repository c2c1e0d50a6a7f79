// A PyTorch snapshot as what every analysis works on.
#pragma once

#include <string>

#include "base/result.h"
#include "import/pytorch_snapshot/model/snapshot.h"
#include "store/store.h"

namespace tidemark::pytorch {

/// As load_overview() and load_store() for recordings. Errors name the file and, of a pickle, the offset.
Result<Overview> load_overview(const std::string& path, const Progress& progress = {});
Result<Store> load_store(const std::string& path, const Progress& progress = {});

/// The same of a snapshot that was read from `path`.
Overview make_overview(Snapshot snapshot, const std::string& path);
Result<Store> make_store(Snapshot snapshot, const std::string& path);

}  // namespace tidemark::pytorch
