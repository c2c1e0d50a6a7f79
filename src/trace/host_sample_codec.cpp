#include "trace/host_sample_codec.h"

#include <string_view>
#include <utility>
#include <vector>

namespace tidemark {
namespace {

// What later versions add to an enumeration counts as its first value or its last, whichever says least.
template <typename Enum>
Enum enum_of(std::uint64_t code, Enum last, Enum otherwise) {
  return code <= static_cast<std::uint64_t>(last) ? static_cast<Enum>(code) : otherwise;
}

void put_process_pages(FieldWriter& fields, const ProcessPages& pages) {
  fields.optional(pages.rss_bytes)
      .optional(pages.anon_bytes)
      .optional(pages.file_bytes)
      .optional(pages.shmem_bytes)
      .optional(pages.swap_bytes)
      .optional(pages.locked_bytes)
      .optional(pages.pinned_bytes);
}

ProcessPages read_process_pages(FieldReader& fields) {
  ProcessPages pages;
  fields.optional(pages.rss_bytes);
  fields.optional(pages.anon_bytes);
  fields.optional(pages.file_bytes);
  fields.optional(pages.shmem_bytes);
  fields.optional(pages.swap_bytes);
  fields.optional(pages.locked_bytes);
  fields.optional(pages.pinned_bytes);
  return pages;
}

// With its length, so that later versions can add fields at its end.
void put_host_process(FieldWriter& fields, const HostProcess& process) {
  std::vector<std::uint8_t> body;
  FieldWriter own(body);
  own.integer(process.pid)
      .integer(process.parent_pid)
      .number(static_cast<std::uint8_t>(process.role))
      .number(process.recorded ? 1 : 0)
      .optional(process.number)
      .optional(process.count);
  put_process_pages(own, process.pages);
  own.optional(process.pss_bytes).optional(process.private_bytes).text(process.name);
  fields.text({reinterpret_cast<const char*>(body.data()), body.size()});
}

HostProcess read_host_process(FieldReader& fields) {
  HostProcess process;
  FieldReader own(fields.bytes());
  process.pid = own.integer();
  process.parent_pid = own.integer();
  process.role = enum_of(own.number(), ProcessRole::child, ProcessRole::other);
  process.recorded = own.number() != 0;
  own.optional(process.number);
  own.optional(process.count);
  process.pages = read_process_pages(own);
  own.optional(process.pss_bytes);
  own.optional(process.private_bytes);
  process.name = own.text();
  fields.require(own.ok());
  return process;
}

void put_memory_parts(FieldWriter& fields, const MemoryParts& parts) {
  fields.optional(parts.used_bytes)
      .optional(parts.limit_bytes)
      .optional(parts.anon_bytes)
      .optional(parts.cache_bytes)
      .optional(parts.shmem_bytes)
      .optional(parts.kernel_bytes)
      .optional(parts.socket_bytes)
      .optional(parts.swap_bytes);
}

MemoryParts read_memory_parts(FieldReader& fields) {
  MemoryParts parts;
  fields.optional(parts.used_bytes);
  fields.optional(parts.limit_bytes);
  fields.optional(parts.anon_bytes);
  fields.optional(parts.cache_bytes);
  fields.optional(parts.shmem_bytes);
  fields.optional(parts.kernel_bytes);
  fields.optional(parts.socket_bytes);
  fields.optional(parts.swap_bytes);
  return parts;
}

}  // namespace

void put_fields(FieldWriter& fields, const HostPartsSample& sample) {
  fields.number(sample.time_ns);
  put_memory_parts(fields, sample.cgroup);
  const MemoryEvents& events = sample.cgroup_events;
  fields.optional(events.low).optional(events.high).optional(events.max).optional(events.oom);
  fields.optional(events.under_oom ? std::optional<std::uint64_t>(*events.under_oom ? 1 : 0) : std::nullopt);
  put_memory_parts(fields, sample.machine);
  fields.optional(sample.machine_available_bytes).optional(sample.machine_oom_kills);
  fields.number(sample.processes.size());
  for (const HostProcess& process : sample.processes) put_host_process(fields, process);
  fields.number(sample.other_processes);
  put_process_pages(fields, sample.other_pages);
}

HostPartsSample read_host_parts(FieldReader& fields) {
  HostPartsSample sample;
  sample.time_ns = fields.number();
  sample.cgroup = read_memory_parts(fields);
  MemoryEvents& events = sample.cgroup_events;
  fields.optional(events.low);
  fields.optional(events.high);
  fields.optional(events.max);
  fields.optional(events.oom);
  std::optional<std::uint64_t> under_oom;
  fields.optional(under_oom);
  if (under_oom) events.under_oom = *under_oom != 0;
  sample.machine = read_memory_parts(fields);
  fields.optional(sample.machine_available_bytes);
  fields.optional(sample.machine_oom_kills);
  const std::uint64_t count = fields.number();
  for (std::uint64_t n = 0; n < count && fields.ok(); ++n) sample.processes.push_back(read_host_process(fields));
  sample.other_processes = fields.number32();
  sample.other_pages = read_process_pages(fields);
  return sample;
}

void put_fields(FieldWriter& fields, const KilledProcess& killed) {
  fields.number(killed.time_ns);
  put_host_process(fields, killed.process);
  fields.number(static_cast<std::uint8_t>(killed.evidence))
      .number(static_cast<std::uint8_t>(killed.scope))
      .optional(killed.cgroup_usage_bytes)
      .optional(killed.cgroup_limit_bytes);
}

KilledProcess read_killed_process(FieldReader& fields) {
  KilledProcess killed;
  killed.time_ns = fields.number();
  killed.process = read_host_process(fields);
  killed.evidence = enum_of(fields.number(), KillEvidence::vanished, KillEvidence::vanished);
  killed.scope = enum_of(fields.number(), KillScope::machine, KillScope::unknown);
  fields.optional(killed.cgroup_usage_bytes);
  fields.optional(killed.cgroup_limit_bytes);
  return killed;
}

}  // namespace tidemark
