#include "cli/dump_host.h"

#include <algorithm>
#include <optional>
#include <utility>

namespace tidemark::cli {
namespace {

using Json = nlohmann::ordered_json;

template <typename T>
Json or_null(const std::optional<T>& value) {
  return value ? Json(*value) : Json(nullptr);
}

Json pages_fields(const ProcessPages& pages) {
  return {{"rss_bytes", or_null(pages.rss_bytes)},      {"anon_bytes", or_null(pages.anon_bytes)},
          {"file_bytes", or_null(pages.file_bytes)},    {"shmem_bytes", or_null(pages.shmem_bytes)},
          {"swap_bytes", or_null(pages.swap_bytes)},    {"locked_bytes", or_null(pages.locked_bytes)},
          {"pinned_bytes", or_null(pages.pinned_bytes)}};
}

Json process_fields_of(const HostProcess& process) {
  Json fields = {{"pid", process.pid},           {"parent_pid", process.parent_pid},  {"role", name_of(process.role)},
                 {"recorded", process.recorded}, {"number", or_null(process.number)}, {"count", or_null(process.count)},
                 {"name", process.name}};
  fields.update(pages_fields(process.pages));
  fields["pss_bytes"] = or_null(process.pss_bytes);
  fields["private_bytes"] = or_null(process.private_bytes);
  return fields;
}

Json parts_fields(const MemoryParts& parts) {
  return {{"used_bytes", or_null(parts.used_bytes)},     {"limit_bytes", or_null(parts.limit_bytes)},
          {"anon_bytes", or_null(parts.anon_bytes)},     {"cache_bytes", or_null(parts.cache_bytes)},
          {"shmem_bytes", or_null(parts.shmem_bytes)},   {"kernel_bytes", or_null(parts.kernel_bytes)},
          {"socket_bytes", or_null(parts.socket_bytes)}, {"swap_bytes", or_null(parts.swap_bytes)}};
}

}  // namespace

Json host_usage_fields(const HostSample& sample) {
  Json fields = {{"anon_bytes", or_null(sample.anon_bytes)},
                 {"file_bytes", or_null(sample.file_bytes)},
                 {"shmem_bytes", or_null(sample.shmem_bytes)},
                 {"swap_bytes", or_null(sample.swap_bytes)},
                 {"locked_bytes", or_null(sample.locked_bytes)},
                 {"pinned_bytes", or_null(sample.pinned_bytes)},
                 {"job_anon_bytes", or_null(sample.job_anon_bytes)},
                 {"job_file_bytes", or_null(sample.job_file_bytes)},
                 {"job_shmem_bytes", or_null(sample.job_shmem_bytes)},
                 {"job_swap_bytes", or_null(sample.job_swap_bytes)},
                 {"machine_available_bytes", or_null(sample.machine_available_bytes)}};
  const bool known = std::any_of(fields.begin(), fields.end(), [](const Json& value) { return !value.is_null(); });
  return known ? fields : Json::object();
}

Json host_parts_fields(const HostPartsSample& sample) {
  Json processes = Json::array();
  for (const HostProcess& process : sample.processes) processes.push_back(process_fields_of(process));
  return {{"time_ns", sample.time_ns},
          {"cgroup", parts_fields(sample.cgroup)},
          {"cgroup_events",
           {{"low", or_null(sample.cgroup_events.low)},
            {"high", or_null(sample.cgroup_events.high)},
            {"max", or_null(sample.cgroup_events.max)},
            {"oom", or_null(sample.cgroup_events.oom)},
            {"under_oom", or_null(sample.cgroup_events.under_oom)}}},
          {"machine", parts_fields(sample.machine)},
          {"machine_available_bytes", or_null(sample.machine_available_bytes)},
          {"machine_oom_kills", or_null(sample.machine_oom_kills)},
          {"processes", std::move(processes)},
          {"other_processes", sample.other_processes},
          {"other_pages", pages_fields(sample.other_pages)}};
}

Json killed_fields(const KilledProcess& killed) {
  return {{"time_ns", killed.time_ns},
          {"process", process_fields_of(killed.process)},
          {"evidence", name_of(killed.evidence)},
          {"scope", name_of(killed.scope)},
          {"cgroup_usage_bytes", or_null(killed.cgroup_usage_bytes)},
          {"cgroup_limit_bytes", or_null(killed.cgroup_limit_bytes)}};
}

}  // namespace tidemark::cli
