// What is said of a dump.
#pragma once

#include <string>
#include <vector>

#include "collect/recorder/session/dump.h"

namespace tidemark::cli {

/// At most ten lines: the verdict of `explain`, or who was killed, and the files. Reads the dump's recordings. Safe to
/// call on any thread, for files that nobody writes any more.
[[nodiscard]] std::vector<std::string> verdict_of(const Dump& dump);

}  // namespace tidemark::cli
