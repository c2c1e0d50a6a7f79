#include "report/host_ledger/json.h"

#include <utility>

#include "report/host_ledger/words.h"

namespace tidemark {

Json pages_json(const ProcessPages& pages) {
  return {{"rss_bytes", nullable(pages.rss_bytes)},      {"anon_bytes", nullable(pages.anon_bytes)},
          {"file_bytes", nullable(pages.file_bytes)},    {"shmem_bytes", nullable(pages.shmem_bytes)},
          {"swap_bytes", nullable(pages.swap_bytes)},    {"locked_bytes", nullable(pages.locked_bytes)},
          {"pinned_bytes", nullable(pages.pinned_bytes)}};
}

namespace {

Json process_json(const HostProcess& process) {
  Json object = {{"pid", process.pid},
                 {"parent_pid", process.parent_pid < 0 ? Json(nullptr) : Json(process.parent_pid)},
                 {"role", name_of(process.role)},
                 {"recorded", process.recorded},
                 {"number", nullable(process.number)},
                 {"count", nullable(process.count)},
                 {"name", nullable_text(process.name)}};
  object.update(pages_json(process.pages));
  object["pss_bytes"] = nullable(process.pss_bytes);
  object["private_bytes"] = nullable(process.private_bytes);
  return object;
}

Json line_json(const HostLine& line, const HostBreakdown& ledger) {
  return {{"part", name_of(line.part)},
          {"bytes", nullable(line.bytes)},
          {"pid", line.process ? Json(ledger.processes[*line.process].pid) : Json(nullptr)},
          {"process_count", line.part == HostPart::job_processes ? Json(line.count) : Json(nullptr)},
          {"text", line_words(line, ledger)}};
}

Json events_json(const MemoryEvents& events) {
  return {{"low", nullable(events.low)},
          {"high", nullable(events.high)},
          {"max", nullable(events.max)},
          {"oom", nullable(events.oom)},
          {"under_oom", nullable(events.under_oom)}};
}

}  // namespace

Json host_ledger_json(const std::optional<HostBreakdown>& ledger) {
  if (!ledger) return nullptr;
  Json lines = Json::array();
  for (const HostLine& line : ledger->lines) lines.push_back(line_json(line, *ledger));
  Json processes = Json::array();
  for (const HostProcess& process : ledger->processes) processes.push_back(process_json(process));
  Json caveats = Json::array();
  for (const HostCaveat caveat : ledger->caveats) {
    caveats.push_back({{"kind", name_of(caveat)}, {"text", caveat_words(caveat)}});
  }
  return {{"time_ns", ledger->time_ns},
          {"scope", name_of(ledger->scope)},
          {"used_bytes", nullable(ledger->used_bytes)},
          {"limit_bytes", nullable(ledger->limit_bytes)},
          {"machine_available_bytes", nullable(ledger->available_bytes)},
          {"lines", std::move(lines)},
          {"unexplained_bytes", nullable(ledger->unexplained_bytes)},
          {"swap_bytes", nullable(ledger->swap_bytes)},
          {"locked_bytes", nullable(ledger->locked_bytes)},
          {"pinned_bytes", nullable(ledger->pinned_bytes)},
          {"cuda_pinned_bytes", nullable(ledger->cuda_pinned_bytes)},
          {"cgroup_events", events_json(ledger->events)},
          {"processes", std::move(processes)},
          {"other_process_count", ledger->other_process_count},
          {"other_processes_rss_bytes", nullable(ledger->other_pages.rss_bytes)},
          {"caveats", std::move(caveats)}};
}

Json killed_json(const std::vector<KilledProcess>& killed) {
  Json list = Json::array();
  for (const KilledProcess& one : killed) {
    list.push_back({{"time_ns", one.time_ns},
                    {"process", process_json(one.process)},
                    {"evidence", name_of(one.evidence)},
                    {"scope", name_of(one.scope)},
                    {"cgroup_usage_bytes", nullable(one.cgroup_usage_bytes)},
                    {"cgroup_limit_bytes", nullable(one.cgroup_limit_bytes)}});
  }
  return list;
}

Json kills_json(const std::vector<HostKill>& kills) {
  std::vector<KilledProcess> killed;
  for (const HostKill& kill : kills) killed.push_back(kill.killed);
  Json list = killed_json(killed);
  for (std::size_t n = 0; n < kills.size(); ++n) {
    list[n]["text"] = kill_headline(kills[n]);
    list[n]["details"] = kill_details(kills[n]);
    list[n]["before"] = host_ledger_json(kills[n].before);
  }
  return list;
}

Json host_points_json(const std::vector<HostPoint>& points) {
  Json list = Json::array();
  for (const HostPoint& point : points) {
    list.push_back({{"time_ns", point.time_ns},
                    {"used_bytes", point.used_bytes},
                    {"main_bytes", nullable(point.main_bytes)},
                    {"workers_bytes", nullable(point.workers_bytes)},
                    {"job_bytes", nullable(point.job_bytes)},
                    {"other_bytes", nullable(point.other_bytes)},
                    {"shmem_bytes", nullable(point.shmem_bytes)},
                    {"cache_bytes", nullable(point.cache_bytes)},
                    {"kernel_bytes", nullable(point.kernel_bytes)}});
  }
  return list;
}

}  // namespace tidemark
