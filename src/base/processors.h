// How many processors there are for this process.
#pragma once

#include <sched.h>

#include <cstdint>

namespace tidemark {

/// Those that this process may use (its affinity); 0: not known. Any thread.
[[nodiscard]] inline std::uint32_t usable_processors() {
  cpu_set_t usable;
  return ::sched_getaffinity(0, sizeof(usable), &usable) == 0 ? static_cast<std::uint32_t>(CPU_COUNT(&usable)) : 0;
}

}  // namespace tidemark
