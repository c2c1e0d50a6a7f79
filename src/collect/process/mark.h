// Named moments and ranges that the program tells about.
#pragma once

#include "collect/ring/layout.h"

namespace tidemark::process {

/// Nothing for a null name. Not on the hot path: the name goes through the lane each time.
void record_mark(ring::MarkKind kind, const char* name) noexcept;

}  // namespace tidemark::process
