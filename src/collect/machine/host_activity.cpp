#include "collect/machine/host_activity.h"

#include <sys/statvfs.h>
#include <time.h>

#include <array>
#include <sstream>

#include "base/arithmetic.h"
#include "collect/machine/files.h"

namespace tidemark {
namespace {

// "cpu  user nice system idle iowait irq softirq steal guest guest_nice": user and nice include guest time.
void read_processors(HostActivity& activity, const std::string& root) {
  constexpr std::size_t kIdle = 3;
  constexpr std::size_t kWaiting = 4;
  constexpr std::size_t kGuest = 8;
  std::istringstream line(read_file(root + "/proc/stat").value_or(""));
  std::string word;
  line >> word;
  if (word != "cpu") return;
  std::uint64_t total = 0;
  std::uint64_t idle = 0;
  std::size_t field = 0;
  for (std::uint64_t ticks = 0; field < kGuest && line >> ticks; ++field) {
    total = saturating_add(total, ticks);
    if (field == kIdle || field == kWaiting) idle = saturating_add(idle, ticks);
  }
  if (field <= kIdle) return;
  activity.cpu_total_ticks = total;
  activity.cpu_busy_ticks = total - idle;
}

// "  eth0: received packets errors … sent packets …", eight columns each way, below two lines of headings.
void read_network(HostActivity& activity, const std::string& root) {
  constexpr std::size_t kReceived = 8;
  std::istringstream lines(read_file(root + "/proc/net/dev").value_or(""));
  for (std::string text; std::getline(lines, text);) {
    const std::size_t colon = text.find(':');
    if (colon == std::string::npos) continue;
    const std::string name = trimmed(text.substr(0, colon));
    if (name == "lo") continue;
    std::istringstream line(text.substr(colon + 1));
    std::array<std::uint64_t, kReceived + 1> fields{};
    std::size_t count = 0;
    while (count < fields.size() && line >> fields[count]) ++count;
    if (count < fields.size()) continue;
    activity.received_bytes = saturating_add(activity.received_bytes.value_or(0), fields.front());
    activity.sent_bytes = saturating_add(activity.sent_bytes.value_or(0), fields.back());
  }
}

void read_disk(HostActivity& activity, const std::string& disk) {
  struct statvfs space {};
  if (::statvfs(disk.c_str(), &space) != 0) return;
  const std::uint64_t block = space.f_frsize;
  activity.disk_total_bytes = block * space.f_blocks;
  activity.disk_used_bytes = block * (space.f_blocks - space.f_bfree);
  activity.disk_available_bytes = block * space.f_bavail;
}

}  // namespace

HostActivity read_host_activity(const std::string& disk, const std::string& root) {
  HostActivity activity;
  activity.at = std::chrono::steady_clock::now();
  read_processors(activity, root);
  read_network(activity, root);
  read_disk(activity, disk);
  timespec used{};
  if (::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used) == 0) {
    activity.process_cpu_ns =
        static_cast<std::uint64_t>(used.tv_sec) * 1'000'000'000 + static_cast<std::uint64_t>(used.tv_nsec);
  }
  return activity;
}

std::optional<double> cpu_percent(const HostActivity& before, const HostActivity& now) {
  if (!before.cpu_total_ticks || !now.cpu_total_ticks || *now.cpu_total_ticks <= *before.cpu_total_ticks) return {};
  const std::uint64_t busy = saturating_subtract(*now.cpu_busy_ticks, *before.cpu_busy_ticks);
  const std::uint64_t total = *now.cpu_total_ticks - *before.cpu_total_ticks;
  return static_cast<double>(busy < total ? busy : total) / static_cast<double>(total) * 100;
}

std::optional<double> process_cpu_percent(const HostActivity& before, const HostActivity& now) {
  const double elapsed_ns = std::chrono::duration<double, std::nano>(now.at - before.at).count();
  if (!before.process_cpu_ns || !now.process_cpu_ns || elapsed_ns <= 0) return {};
  return static_cast<double>(saturating_subtract(*now.process_cpu_ns, *before.process_cpu_ns)) / elapsed_ns * 100;
}

std::optional<double> disk_percent(const HostActivity& now) {
  if (!now.disk_used_bytes || !now.disk_available_bytes) return {};
  const double usable = static_cast<double>(*now.disk_used_bytes) + static_cast<double>(*now.disk_available_bytes);
  return usable > 0 ? std::optional(static_cast<double>(*now.disk_used_bytes) / usable * 100) : std::nullopt;
}

}  // namespace tidemark
