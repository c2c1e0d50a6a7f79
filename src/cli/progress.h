// "Reading run.tide: 45%" on stderr, for people who wait.
#pragma once

#include <string>

#include "store/store.h"

namespace tidemark::cli {

/// Shows nothing in the first second, and nothing at all when stderr is no terminal. The line goes away when the
/// returned object (and all its copies) does.
[[nodiscard]] Progress make_progress(const std::string& path, const char* doing = "Reading");

}  // namespace tidemark::cli
