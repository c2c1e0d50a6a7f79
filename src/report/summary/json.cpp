#include "report/host_ledger/json.h"

#include <utility>
#include <variant>

#include "report/common/json.h"
#include "report/common/json_objects.h"
#include "report/explain/words.h"

namespace tidemark {
namespace {

Json call_site_json(const CallSite& site) {
  Json row = {{"bytes", site.bytes}, {"block_count", site.blocks}, {"stack_count", site.stacks}, {"share", site.share}};
  add_key(row, site.stack);
  return row;
}

Json device_json(const SummaryDevice& device) {
  const DeviceSummary& totals = device.totals;
  Json call_sites = Json::array();
  for (const CallSite& site : device.call_sites) call_sites.push_back(call_site_json(site));
  Json object = {{"device", to_string(totals.device)},
                 {"peak_allocated_bytes", totals.peak_allocated_bytes},
                 {"peak_allocated_at_ns", nullable(totals.peak_allocated_at_ns)},
                 {"peak_reserved_bytes", nullable(totals.peak_reserved_bytes)},
                 {"peak_reserved_at_ns", nullable(totals.peak_reserved_at_ns)},
                 {"peak_active_bytes", nullable(totals.peak_active_bytes)},
                 {"peak_active_at_ns", nullable(totals.peak_active_at_ns)},
                 {"end_allocated_bytes", totals.live_allocated_bytes},
                 {"end_recorded_bytes", totals.live_recorded_bytes},
                 {"end_block_count", totals.live_count},
                 {"end_reserved_bytes", nullable(totals.end_reserved_bytes)},
                 {"end_active_bytes", nullable(totals.end_active_bytes)},
                 {"baseline_bytes", nullable(totals.baseline_bytes)},
                 {"allocation_count", totals.allocation_count},
                 {"free_count", totals.free_count},
                 {"unmatched_free_count", totals.unmatched_free_count},
                 {"out_of_memory_count", totals.out_of_memory_count},
                 {"total_allocated_bytes", totals.total_bytes_allocated},
                 {"call_sites_at_peak", std::move(call_sites)},
                 {"other_call_site_count", device.other_call_sites},
                 {"other_call_sites_bytes", device.other_bytes},
                 {"unrecorded_at_peak_bytes", device.unrecorded_at_peak_bytes}};
  if (!device.categories.empty()) object["categories_at_peak"] = categories_json(device.categories);
  if (!device.advice.empty()) object["advice"] = advice_json(device.advice);
  return object;
}

Json host_json(const HostUsage& host) {
  if (host.empty()) return nullptr;
  return {{"rss", sampled_json(host.rss)},
          {"pss", sampled_json(host.pss)},
          {"job_process_count", nullable(host.most_job_processes)},
          {"job_rss", sampled_json(host.job_rss)},
          {"job_pss", sampled_json(host.job_pss)},
          {"cgroup_usage", sampled_json(host.cgroup_usage)},
          {"cgroup_limit_bytes", nullable(host.cgroup_limit_bytes)},
          {"cgroup_oom_kills", host.cgroup_oom_kills},
          {"anon", sampled_json(host.anon)},
          {"file", sampled_json(host.file)},
          {"shmem", sampled_json(host.shmem)},
          {"swap", sampled_json(host.swap)},
          {"locked", sampled_json(host.locked)},
          {"pinned", sampled_json(host.pinned)},
          {"job_anon", sampled_json(host.job_anon)},
          {"job_file", sampled_json(host.job_file)},
          {"job_shmem", sampled_json(host.job_shmem)},
          {"job_swap", sampled_json(host.job_swap)},
          {"lowest_available_bytes", nullable(host.lowest_available_bytes)},
          {"lowest_available_at_ns", host.lowest_available_bytes ? Json(host.lowest_available_at_ns) : Json(nullptr)}};
}

Json host_ledgers_json(const HostLedgers& ledgers) {
  if (!ledgers.peak) return nullptr;
  return {{"peak", host_ledger_json(ledgers.peak)}, {"end", host_ledger_json(ledgers.last)}};
}

Json verdict_json(const OomFailure& failure, const RecordingInfo& recording) {
  return {{"device", to_string(failure.device)},
          {"time_ns", failure.last_ns},
          {"requested_bytes", failure.request.bytes},
          {"device_free_bytes", nullable(failure.device_free)},
          {"cause", failure.cause ? Json(name_of(*failure.cause)) : Json(nullptr)},
          {"text", out_of_memory_headline(failure, recording)}};
}

// The fields that say what a row is about.
void add_key(Json& row, const BlockSize& size) {
  row["block_bytes"] = size.bytes;
}
void add_key(Json& row, const DeviceAt& device) {
  row["device"] = to_string(device.device);
  row["at_ns"] = nullable(device.at_ns);
}
void add_key(Json& row, const ThreadInfo& thread) {
  row["tid"] = nullable(thread.tid);
  row["thread_name"] = nullable_text(thread.name);
}
void add_key(Json& row, const StreamHandle& stream) {
  row["stream"] = stream.handle;
}
void add_key(Json& row, const PoolId& pool) {
  row["pool"] = {pool.first, pool.second};
}

void add_key(Json& row, const BlockAnnotation& annotation) {
  row["annotation"] = nullable(annotation.name);
}
}  // namespace

Json to_object(const Summary& summary) {
  Json object = recording_json(summary.recording);
  object["devices"] = Json::array();
  for (const SummaryDevice& device : summary.devices) object["devices"].push_back(device_json(device));
  object["out_of_memory"] = Json::array();
  for (const SummaryOutOfMemory& failure : summary.out_of_memory) {
    object["out_of_memory"].push_back({{"device", to_string(failure.device)},
                                       {"time_ns", failure.event.time_ns},
                                       {"requested_bytes", failure.event.requested},
                                       {"allocated_bytes", nullable(failure.event.allocated)},
                                       {"reserved_bytes", nullable(failure.event.reserved)},
                                       {"stack", stack_json(failure.stack)}});
  }
  object["out_of_memory_verdict"] = summary.failure ? verdict_json(*summary.failure, summary.recording) : Json(nullptr);
  object["ledgers"] = Json::array();
  for (const LedgerExtremes& ledger : summary.ledgers) {
    object["ledgers"].push_back({{"device", ledger.device},
                                 {"model", nullable_text(ledger.model)},
                                 {"total_bytes", nullable(ledger.total_bytes)},
                                 {"peak", ledger_json(ledger.peak)},
                                 {"end", ledger.end ? ledger_json(*ledger.end) : Json(nullptr)}});
  }
  object["host"] = host_json(summary.host);
  object["host_ledger"] = host_ledgers_json(summary.host_ledgers);
  object["killed"] = kills_json(summary.host_ledgers.kills);
  return object;
}

Json to_object(const Table& table) {
  Json object = recording_json(table.recording);
  object["by"] = name_of(table.by);
  object["sections"] = Json::array();
  for (const TableSection& section : table.sections) {
    Json rows = Json::array();
    for (const TableRow& row : section.rows) {
      Json fields = {{"bytes", row.bytes}, {"block_count", row.blocks}, {"share", row.share}};
      std::visit([&](const auto& key) { add_key(fields, key); }, row.key);
      rows.push_back(std::move(fields));
    }
    object["sections"].push_back({{"device", section.device ? Json(to_string(section.device->device)) : Json(nullptr)},
                                  {"at_ns", section.device ? nullable(section.device->at_ns) : Json(nullptr)},
                                  {"allocated_bytes", section.allocated_bytes},
                                  {"unrecorded_bytes", section.unrecorded_bytes},
                                  {"rows", std::move(rows)},
                                  {"other_row_count", section.other_rows},
                                  {"other_bytes", section.other_bytes},
                                  {"other_block_count", section.other_blocks}});
  }
  return object;
}

std::string to_json(std::span<const Summary> summaries) {
  return print_all(summaries);
}
std::string to_json(std::span<const Table> tables) {
  return print_all(tables);
}

}  // namespace tidemark
