#include "collect/machine/host_memory.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <initializer_list>
#include <sstream>
#include <vector>

#include "collect/machine/files.h"

namespace tidemark {

namespace {

namespace fs = std::filesystem;

// Version 1 has no value for "no limit"; it uses a number larger than any memory.
constexpr std::uint64_t kNoLimit = std::uint64_t{1} << 62;

std::optional<std::uint64_t> limit_of(int version, const std::string& folder) {
  const auto bytes = read_number(folder + (version == 2 ? "/memory.max" : "/memory.limit_in_bytes"));
  return bytes && *bytes < kNoLimit ? bytes : std::nullopt;
}

struct Group {
  int version = 0;
  std::string path;  ///< as in /proc/PID/cgroup
};

/// "4:memory:/path" is version 1, "0::/path" is version 2, which has no memory controller if version 1 has it.
std::optional<Group> group_of(const std::string& process, const std::string& root) {
  std::istringstream lines(read_file(fmt::format("{}/proc/{}/cgroup", root, process)).value_or(""));
  std::optional<Group> group;
  for (std::string line; std::getline(lines, line);) {
    const std::size_t first = line.find(':');
    const std::size_t second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    const std::string controllers = fmt::format(",{},", line.substr(first + 1, second - first - 1));
    if (controllers.find(",memory,") != std::string::npos) return Group{1, line.substr(second + 1)};
    if (controllers == ",,") group = Group{2, line.substr(second + 1)};
  }
  return group;
}

struct Mount {
  std::string root;   ///< the group visible at `point`
  std::string point;  ///< a folder
};

/// Lines of mountinfo: id parent device root point options [tags] - type source options.
std::vector<Mount> mounts_of(int version, const std::string& root) {
  std::vector<Mount> mounts;
  std::istringstream lines(read_file(root + "/proc/self/mountinfo").value_or(""));
  for (std::string line; std::getline(lines, line);) {
    const std::size_t dash = line.find(" - ");
    if (dash == std::string::npos) continue;
    std::istringstream before(line.substr(0, dash));
    std::istringstream after(line.substr(dash + 3));
    std::string skipped;
    std::string type;
    std::string options;
    Mount mount;
    before >> skipped >> skipped >> skipped >> mount.root >> mount.point;
    after >> type >> skipped >> options;
    const bool has_memory = ("," + options + ",").find(",memory,") != std::string::npos;
    if (version == 2 ? type == "cgroup2" : type == "cgroup" && has_memory) mounts.push_back(mount);
  }
  return mounts;
}

bool is_in(const std::string& path, const std::string& folder) {
  return path.rfind(folder, 0) == 0 && (path.size() == folder.size() || path[folder.size()] == '/');
}

/// `path` relative to a mount that shows only what is below `mount_root`; std::nullopt if it is not below it. Both are
/// relative to this process's cgroup namespace: paths outside it begin with "/..".
std::optional<std::string> below(const std::string& path, const std::string& mount_root) {
  const std::string above = mount_root == "/" ? "" : mount_root;
  if (!is_in(path, above)) return std::nullopt;
  const std::string rest = path.substr(above.size());
  if (is_in(rest, "/..")) return std::nullopt;
  return rest == "/" ? "" : rest;
}

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
  // Sum of the counters that exist; std::nullopt if none exists.
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

HostMemory read_host_memory(const std::string& root) {
  const std::string text = read_file(root + "/proc/meminfo").value_or("");
  const auto bytes = [&](const char* key) {
    const auto kib = number_after(text, key);
    return kib ? std::optional(*kib << 10) : std::nullopt;
  };
  return {bytes("MemTotal:"), bytes("MemAvailable:")};
}

std::optional<Cgroup> Cgroup::find(const std::string& process, bool or_top, const std::string& root) {
  const auto group = group_of(process, root);
  const auto mounts = group ? mounts_of(group->version, root) : std::vector<Mount>();
  for (const Mount& mount : mounts) {
    const std::string top = root + mount.point;
    const auto rest = below(group->path, mount.root);
    std::error_code error;
    if (rest && fs::exists(top + *rest, error)) return Cgroup(group->version, top + *rest, top.size());
  }
  // A mount made before the cgroup namespace shows the groups above it first: its top is another group.
  const auto shown =
      std::find_if(mounts.begin(), mounts.end(), [](const Mount& mount) { return !is_in(mount.root, "/.."); });
  if (shown == mounts.end() || !or_top) return std::nullopt;
  const std::string top = root + shown->point;
  return Cgroup(group->version, top, top.size());
}

Cgroup Cgroup::with_lowest_limit() const {
  Cgroup best = *this;
  std::optional<std::uint64_t> lowest;
  for (std::string folder = folder_; folder.size() >= top_; folder = folder.substr(0, folder.rfind('/'))) {
    const auto limit = limit_of(version_, folder);
    if (!limit || (lowest && *lowest <= *limit)) continue;
    lowest = limit;
    best.folder_ = folder;
  }
  return best;
}

std::optional<Cgroup> Cgroup::own(const std::string& root) {
  return find("self", true, root);
}

std::optional<Cgroup> Cgroup::of_this_process(const std::string& root) {
  const auto found = own(root);
  return found ? std::optional(found->with_lowest_limit()) : std::nullopt;
}

std::optional<Cgroup> Cgroup::of_process(std::int64_t pid, const std::string& root) {
  const auto found = find(std::to_string(pid), false, root);
  return found ? std::optional(found->with_lowest_limit()) : std::nullopt;
}

std::optional<std::uint64_t> Cgroup::limit_bytes() const {
  return limit_of(version_, folder_);
}

CgroupReading Cgroup::read() const {
  const bool unified = version_ == 2;
  CgroupReading reading;
  reading.usage_bytes = read_number(folder_ + (unified ? "/memory.current" : "/memory.usage_in_bytes"));
  const std::string events = read_file(folder_ + (unified ? "/memory.events" : "/memory.oom_control")).value_or("");
  reading.oom_kills = number_after(events, "oom_kill ");
  return reading;
}

std::optional<std::uint64_t> Cgroup::inactive_file_bytes() const {
  // Version 1 counts the groups below in "total_" lines; version 2 always includes them.
  const std::string text = read_file(folder_ + "/memory.stat").value_or("");
  return number_after(text, version_ == 2 ? "inactive_file " : "total_inactive_file ");
}

MemoryParts Cgroup::parts() const {
  MemoryParts parts;
  parts.used_bytes = read().usage_bytes;
  parts.limit_bytes = limit_bytes();
  const Counters stat(folder_ + "/memory.stat", 1);
  if (version_ == 2) {
    parts.anon_bytes = stat["anon "];
    parts.shmem_bytes = stat["shmem "];
    parts.cache_bytes = minus(stat["file "], parts.shmem_bytes);
    // Before Linux 5.18 there is no total.
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
  parts.kernel_bytes = read_number(folder_ + "/memory.kmem.usage_in_bytes");  // usage_bytes does not include sockets
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
