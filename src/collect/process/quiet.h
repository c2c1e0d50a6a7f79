// Waiting until no thread of this process writes into the shared memory any more.
#pragma once

#include <atomic>
#include <cstdint>

#include "collect/ring/layout.h"

namespace tidemark::process {

/// Ends the lanes' connection, so that no thread enters one anew, and waits until those have left that are in one, or
/// in the slow path behind it (`entering`). A second at most: false where somebody is still there. The gate is closed.
bool wait_until_quiet(ring::Shared* shared, const std::atomic<std::uint32_t>& entering) noexcept;

}  // namespace tidemark::process
