// Host memory: the machine's, the control group's, and each process's.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/units.h"
#include "query/words/monitors.h"
#include "query/words/risks.h"
#include "tui/table.h"
#include "tui/view.h"
#include "tui/views/parts.h"

namespace tidemark::tui {
namespace {

constexpr std::size_t kHostRows = 10;

enum class HostOrder : unsigned char { rss = 0, pss = 1, pid = 2, name = 3 };
constexpr std::array<const char*, 4> kHostOrders = {"rss", "pss", "pid", "name"};

bool comes_before(const WatchedProcess& a, const WatchedProcess& b, HostOrder order) {
  if (order == HostOrder::rss && a.rss_bytes != b.rss_bytes) return a.rss_bytes > b.rss_bytes;
  if (order == HostOrder::pss && a.pss_bytes != b.pss_bytes) return a.pss_bytes > b.pss_bytes;
  if (order == HostOrder::name && a.name != b.name) return a.name < b.name;
  return a.pid < b.pid;
}

std::vector<const WatchedProcess*> processes_of(const MachineState& machine, HostOrder order) {
  std::vector<const WatchedProcess*> processes;
  for (const WatchedProcess& process : machine.processes) {
    if (!process.ended && process.rss_bytes) processes.push_back(&process);
  }
  std::stable_sort(processes.begin(), processes.end(),
                   [&](const WatchedProcess* a, const WatchedProcess* b) { return comes_before(*a, *b, order); });
  return processes;
}

std::string oom_kills_text(const WatchedHost& host) {
  if (!host.cgroup_oom_kills) return "n/a";
  const std::uint64_t before = host.cgroup_oom_kills_at_start.value_or(*host.cgroup_oom_kills);
  const std::uint64_t since = *host.cgroup_oom_kills - std::min(before, *host.cgroup_oom_kills);
  return fmt::format("{} since the control group exists, {} while watching", format_count(*host.cgroup_oom_kills),
                     format_count(since));
}

void draw_machine(const Region& region, const Content& content) {
  const MachineState& machine = content.machine;
  const WatchedHost& host = machine.host;
  const Region rows = region.part(2, 0, region.width() - 2, region.height());
  const bool by_cgroup = host.limited_by_cgroup();
  region.print(0, 0, by_cgroup ? "Control group (its limit is below the machine's memory)" : "Machine", Role::heading);
  draw_memory(rows.below(1), host.used_bytes(), host.limit_bytes(), &host.used,
              host.assessed_at_ns ? host.risk.level : RiskLevel::low);
  rows.print(0, 2,
             fmt::format("machine: {} available of {}{}", size_text(host.memory.available_bytes),
                         size_text(host.memory.total_bytes), and_cuda_pinned_text(content.cuda_pinned_bytes)));
  rows.print(0, 3,
             fmt::format("control group: {} used, {} of it cached files, limit {}", size_text(host.cgroup_usage_bytes),
                         size_text(host.cgroup_inactive_file_bytes),
                         host.cgroup_limit_bytes ? format_bytes(*host.cgroup_limit_bytes) : "none"));
  rows.print(0, 4, host_parts_text(host.parts()));
  rows.print(0, 5, "killed by the OOM killer: " + oom_kills_text(host),
             host.cgroup_oom_kills > host.cgroup_oom_kills_at_start ? Role::critical : Role::plain);
  draw_risk(rows.below(6), host.risk, host.assessed_at_ns.has_value(), host_recommendation_text(machine));
}

std::size_t host_row_count(const Content& content, const ViewState& state) {
  return processes_of(content.machine, static_cast<HostOrder>(state.order)).size();
}

void draw_host(const Region& region, const Content& content, const ViewState& state) {
  draw_machine(region.part(0, 0, region.width(), std::min(kHostRows, region.height())), content);
  if (region.height() <= kHostRows) return;
  const auto order = static_cast<HostOrder>(state.order);
  const std::vector<ListColumn> columns = {{.heading = "PID", .width = 8, .sorted = order == HostOrder::pid},
                                           {.heading = "RSS", .width = 10, .sorted = order == HostOrder::rss},
                                           {.heading = "PEAK", .width = 10},
                                           {.heading = "PSS", .width = 10, .sorted = order == HostOrder::pss},
                                           {.heading = "PROCESS", .left = true, .sorted = order == HostOrder::name}};
  std::vector<ListRow> rows;
  for (const WatchedProcess* process : processes_of(content.machine, order)) {
    rows.push_back({{std::to_string(process->pid)},
                    {size_text(process->rss_bytes)},
                    {process->rss.empty() ? "n/a" : format_bytes(process->rss.peak_bytes()), Role::quiet},
                    {size_text(process->pss_bytes)},
                    {process_words(*process, region.width() < kWide)}});
  }
  draw_table(region.below(kHostRows), columns, rows, row_of(state.selected, rows.size()));
}

}  // namespace

View host_view() {
  return {.name = "host",
          .title = "Host",
          .keys = "s sort",
          .orders = kHostOrders,
          .of_recordings = true,
          .rows = host_row_count,
          .draw = draw_host};
}

}  // namespace tidemark::tui
