// Any file that the reading commands take: recordings, and what other tools wrote. What a file is, its first bytes
// tell.
#pragma once

#include <string>

#include "base/result.h"
#include "store/store.h"

namespace tidemark {

/// As load_overview() and load_store() for recordings; here for files of every format of the list in open.cpp. What is
/// none of them fails as a recording does.
Result<Overview> open_overview(const std::string& path, const Progress& progress = {},
                               const SampleConsumer& samples = {});
Result<Store> open_store(const std::string& path, const Progress& progress = {});

}  // namespace tidemark
