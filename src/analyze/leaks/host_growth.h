// Growth of the host's memory that is no tensors: objects of Python, a profiler's events, buffers of libraries.
#pragma once

#include <cstdint>
#include <vector>

#include "store/store.h"

namespace tidemark {

/// From the first analyzed sample to the last one.
struct HostGrowth {
  /// The other processes of the job, by PSS: workers that copy pages as they write to them, too. Otherwise the
  /// anonymous memory of the recorded process.
  bool of_other_processes = false;
  std::uint64_t from_bytes = 0;
  std::uint64_t to_bytes = 0;
  std::uint64_t from_ns = 0;
  std::uint64_t to_ns = 0;
  double bytes_per_second = 0;     ///< slope of the line of Theil and Sen
  std::uint64_t tensor_bytes = 0;  ///< growth of the recorded process's CPU tensors in the same time
};

/// Growth that continues until `to_ns`, in the samples from `from_ns` on, of at least 32 MiB and 5% of the memory at
/// its start. Left out if CPU tensors are at least half of it, because those have call sites.
[[nodiscard]] std::vector<HostGrowth> find_host_growth(const Store& store, std::uint64_t from_ns, std::uint64_t to_ns);

}  // namespace tidemark
