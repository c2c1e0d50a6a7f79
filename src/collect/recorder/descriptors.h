// File descriptors of the recorder: it needs one or two for each process.
#pragma once

namespace tidemark {

/// Allows this process as many descriptors as it may have at all. For a recorder whose program has been started
/// already: that keeps its own limit, which it may know nothing beyond (select(2)).
void raise_descriptor_limit();

/// `ulimit -n` of this process.
[[nodiscard]] unsigned long descriptor_limit();

/// How many descriptors can still be had. A new descriptor has the lowest number that is free, so `newest` tells.
[[nodiscard]] unsigned long descriptors_after(int newest);

}  // namespace tidemark
