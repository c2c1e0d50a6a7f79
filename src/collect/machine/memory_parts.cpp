// What memory holds: of a control group, by memory.stat, and of the machine, by /proc/meminfo.
#include <algorithm>
#include <initializer_list>

#include "collect/machine/files.h"
#include "collect/machine/host_memory.h"

namespace tidemark {
namespace {

using Bytes = std::optional<std::uint64_t>;

Bytes minus(const Bytes& whole, const Bytes& part) {
  return whole && part ? Bytes(*whole - std::min(*whole, *part)) : whole;
}

// A file of counters, "name value" a line.
class Counters {
 public:
  Counters(const std::string& path, std::uint64_t unit) : text_(read_file(path).value_or("")), unit_(unit) {}

  [[nodiscard]] Bytes operator[](const char* key) const {
    const auto value = number_after(text_, key);
    return value ? Bytes(*value * unit_) : std::nullopt;
  }
  // Of those that are there; none where none is.
  [[nodiscard]] Bytes sum(std::initializer_list<const char*> keys) const {
    Bytes sum;
    for (const char* key : keys) {
      if (const Bytes value = (*this)[key]) sum = sum.value_or(0) + *value;
    }
    return sum;
  }

 private:
  std::string text_;
  std::uint64_t unit_;
};

}  // namespace

MemoryParts Cgroup::parts() const {
  MemoryParts parts;
  parts.used_bytes = read().usage_bytes;
  parts.limit_bytes = limit_bytes();
  const Counters stat(folder_ + "/memory.stat", 1);
  if (version_ == 2) {
    parts.anon_bytes = stat["anon "];
    parts.shmem_bytes = stat["shmem "];
    parts.cache_bytes = minus(stat["file "], parts.shmem_bytes);
    // Before Linux 5.18 there is no sum.
    parts.kernel_bytes = stat["kernel "];
    if (!parts.kernel_bytes) parts.kernel_bytes = stat.sum({"kernel_stack ", "pagetables ", "percpu ", "slab "});
    parts.socket_bytes = stat["sock "];
    parts.swap_bytes = read_number(folder_ + "/memory.swap.current");
    return parts;
  }
  parts.anon_bytes = stat["total_rss "];
  parts.shmem_bytes = stat["total_shmem "];
  parts.cache_bytes = minus(stat["total_cache "], parts.shmem_bytes);
  parts.swap_bytes = stat["total_swap "];
  parts.kernel_bytes = read_number(folder_ + "/memory.kmem.usage_in_bytes");  // sockets count apart from the usage
  return parts;
}

MemoryEvents Cgroup::events() const {
  MemoryEvents events;
  if (version_ == 2) {
    const Counters counts(folder_ + "/memory.events", 1);
    events.low = counts["low "];
    events.high = counts["high "];
    events.max = counts["max "];
    events.oom = counts["oom "];
    return events;
  }
  events.max = read_number(folder_ + "/memory.failcnt");
  const Bytes under_oom = Counters(folder_ + "/memory.oom_control", 1)["under_oom "];
  if (under_oom) events.under_oom = *under_oom != 0;
  return events;
}

MachineReading read_machine_memory(const std::string& root) {
  const Counters memory(root + "/proc/meminfo", 1024);
  MachineReading reading;
  reading.available_bytes = memory["MemAvailable:"];
  reading.oom_kills = Counters(root + "/proc/vmstat", 1)["oom_kill "];
  MemoryParts& parts = reading.parts;
  parts.limit_bytes = memory["MemTotal:"];
  if (parts.limit_bytes && memory["MemFree:"]) parts.used_bytes = minus(parts.limit_bytes, memory["MemFree:"]);
  parts.anon_bytes = memory["AnonPages:"];
  parts.shmem_bytes = memory["Shmem:"];
  parts.cache_bytes = minus(memory.sum({"Cached:", "Buffers:", "SwapCached:"}), parts.shmem_bytes);
  parts.kernel_bytes = memory.sum({"Slab:", "KernelStack:", "PageTables:", "SecPageTables:", "Percpu:"});
  parts.swap_bytes = minus(memory["SwapTotal:"], memory["SwapFree:"]);
  return reading;
}

}  // namespace tidemark
