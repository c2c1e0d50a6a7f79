// Progress on a terminal: "Reading run.tide: 45%" on stderr.
#pragma once

#include <string>

#include "store/store.h"

namespace tidemark {

/// Shows nothing in the first second, and nothing at all when stderr is no terminal. The line is erased when the
/// returned object (and all its copies) goes. `doing`: "Reading"; kept by reference.
[[nodiscard]] Progress make_progress(const std::string& path, const char* doing = "Reading");

}  // namespace tidemark
