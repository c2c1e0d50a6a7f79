// Programs that install a seccomp filter, which may end them for a system call that only recording makes.
#pragma once

#include <cstdint>

namespace tidemark::process {

/// The number of filters at the start of the process, which are the recorder's.
void set_expected_filters(std::uint32_t count) noexcept;

/// Whether there are more filters now. If so, recording makes no system call: it does not connect, start on a new
/// thread, or look symbols up. Reads a file until it returns true. May change errno. Thread-safe.
[[nodiscard]] bool filtered() noexcept;

}  // namespace tidemark::process
