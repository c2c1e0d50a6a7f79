// Programs that put themselves under a seccomp filter, which may end them for a system call that only recording makes.
#pragma once

#include <cstdint>

namespace tidemark::process {

/// The filters that the process was started with: those of the recorder.
void set_expected_filters(std::uint32_t count) noexcept;

/// Whether there are more by now. Where there are, recording makes no system call: nothing that has to connect, to
/// begin with a thread, or to look something up. Reads a file until there are. May change errno. Thread-safe.
[[nodiscard]] bool filtered() noexcept;

}  // namespace tidemark::process
