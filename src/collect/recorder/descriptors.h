// File descriptors of the recorder: it needs one or two for each process.
#pragma once

#include <string>

namespace tidemark {

/// Allows this process as many descriptors as it may have at all. For a recorder whose program has been started
/// already: that keeps its own limit, which it may know nothing beyond (select(2)).
void raise_descriptor_limit();

/// How many descriptors can still be had. A new descriptor has the lowest number that is free, so `newest` tells.
[[nodiscard]] unsigned long descriptors_after(int newest);

/// Why a process is not recorded for want of them: "too few file descriptors (ulimit -n 1024)".
[[nodiscard]] std::string few_descriptors();

}  // namespace tidemark
