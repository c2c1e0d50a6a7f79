#include "analyze/leaks/leaks.h"
#include "query/results/common.h"
#include "query/results/ledgers.h"
#include "query/results/results.h"
#include "query/words/explain.h"

namespace tidemark {

template <typename Visitor>
void describe(Visitor& v, const SummaryDevice& device) {
  const DeviceSummary& totals = device.totals;
  v.type("SummaryDevice", "Peaks and totals of one device.");
  v.field("device", to_string(totals.device));
  v.field("peak_allocated_bytes", totals.peak_allocated_bytes);
  v.field("peak_allocated_at_ns", totals.peak_allocated_at_ns, "the first time; null: nothing was allocated");
  v.field("peak_reserved_bytes", totals.peak_reserved_bytes, "null on the CPU");
  v.field("peak_reserved_at_ns", totals.peak_reserved_at_ns);
  v.field("peak_active_bytes", totals.peak_active_bytes, "null in recordings");
  v.field("peak_active_at_ns", totals.peak_active_at_ns);
  v.field("end_allocated_bytes", totals.live_allocated_bytes);
  v.field("end_recorded_bytes", totals.live_recorded_bytes, "of these, in recorded blocks");
  v.field("end_block_count", totals.live_count);
  v.field("end_reserved_bytes", totals.end_reserved_bytes);
  v.field("end_active_bytes", totals.end_active_bytes);
  v.field("baseline_bytes", totals.baseline_bytes,
          "allocated before the first event; null without counters of the allocator");
  v.field("allocation_count", totals.allocation_count);
  v.field("free_count", totals.free_count);
  v.field("unmatched_free_count", totals.unmatched_free_count,
          "frees without a recorded allocation; included in free_count");
  v.field("out_of_memory_count", totals.out_of_memory_count);
  v.field("total_allocated_bytes", totals.total_bytes_allocated, "sum of all allocations");
  v.field("call_sites_at_peak", device.call_sites, "most bytes first; shares are of peak_allocated_bytes");
  v.field("other_call_site_count", device.other_call_sites);
  v.field("other_call_sites_bytes", device.other_bytes);
  v.field("unrecorded_at_peak_bytes", device.unrecorded_at_peak_bytes, "in no recorded block");
  v.field_if(!device.categories.empty(), "categories_at_peak", device.categories, "where they are known");
  v.field_if(!device.advice.empty(), "advice", device.advice, "most saving first");
}

template <typename Visitor>
void describe(Visitor& v, const SummaryOutOfMemory& failure) {
  v.type("OutOfMemory", "A request that failed.");
  v.field("device", to_string(failure.device));
  v.field("time_ns", failure.event.time_ns);
  v.field("requested_bytes", failure.event.requested);
  v.field("allocated_bytes", failure.event.allocated);
  v.field("reserved_bytes", failure.event.reserved);
  v.field("stack", known(failure.stack));
}

template <typename Visitor>
void describe(Visitor& v, const OomFailure& failure, const RecordingInfo& recording) {
  v.type("OutOfMemoryVerdict", "Why the latest request failed, in short.");
  v.field("device", to_string(failure.device));
  v.field("time_ns", failure.last_ns);
  v.field("requested_bytes", failure.request.bytes);
  v.field("device_free_bytes", failure.device_free);
  v.field("cause", when(failure.cause.has_value(), [&] { return named<kOomCauseNames>(*failure.cause); }),
          "as in `explain`; null: not known");
  v.field("text", [&] { return out_of_memory_headline(failure, recording); });
}

template <typename Visitor>
void describe(Visitor& v, const LedgerExtremes& ledger) {
  v.type("LedgerExtremes", "All memory of a GPU, when most was used and at the end.");
  v.field("device", ledger.device);
  v.field("model", known_text(ledger.model));
  v.field("total_bytes", ledger.total_bytes);
  v.field("peak", ledger.peak);
  v.field("end", ledger.end);
}

template <typename Visitor>
void describe(Visitor& v, const HostUsage& host) {
  v.type("HostMemory", "Memory of the host: of the process, of the job, and of the control group.");
  v.field("rss", host.rss, "of the recorded process, as pss and those from anon to pinned");
  v.field("pss", host.pss);
  v.field("job_process_count", host.most_job_processes, "most at one time");
  v.field("job_rss", host.job_rss, "of all processes below `tidemark run`, as all of the job");
  v.field("job_pss", host.job_pss);
  v.field("cgroup_usage", host.cgroup_usage, "of the control group with the lowest limit");
  v.field("cgroup_limit_bytes", host.cgroup_limit_bytes);
  v.field("cgroup_oom_kills", host.cgroup_oom_kills, "while the program ran");
  v.field("anon", host.anon);
  v.field("file", host.file);
  v.field("shmem", host.shmem);
  v.field("swap", host.swap);
  v.field("locked", host.locked);
  v.field("pinned", host.pinned);
  v.field("job_anon", host.job_anon);
  v.field("job_file", host.job_file);
  v.field("job_shmem", host.job_shmem);
  v.field("job_swap", host.job_swap);
  v.field("lowest_available_bytes", host.lowest_available_bytes, "on the machine, without swapping");
  v.field("lowest_available_at_ns", when(host.lowest_available_bytes.has_value(), host.lowest_available_at_ns));
}

template <typename Visitor>
void describe(Visitor& v, const HostLedgers& ledgers) {
  v.type("HostExtremes", "All memory of the host, when most was used and at the end.");
  v.field("peak", [&]() -> const HostBreakdown& { return *ledgers.peak; });
  v.field("end", ledgers.last);
}

template <typename Visitor>
void describe(Visitor& v, const Summary& summary) {
  const HostLedgers& host = summary.host_ledgers;
  v.type("Summary", "Peak memory of each device, and the call sites that held it.");
  v.part(summary.recording);
  v.field("devices", summary.devices);
  v.field("out_of_memory", summary.out_of_memory, "the first ten requests that failed");
  v.field("out_of_memory_verdict", in(summary.failure, summary.recording), "of the latest; null: none failed");
  v.field("ledgers", summary.ledgers, "of devices with samples");
  v.field("host", when(!summary.host.empty(), summary.host), "null: not sampled");
  v.field("pinned", summary.pinned,
          "page-locked memory of the host from CUDA, by its calls: requests as PyTorch rounded them; null: none was "
          "recorded");
  v.field("host_ledger", host.peak ? &host : nullptr, "null: not sampled");
  v.field("killed", host.kills, "by the kernel, for lack of host memory");
  v.field("leak_bytes_per_step", when(summary.leaks != nullptr, [&] { return summary.leaks->bytes_per_step; }),
          "growth by all leaks; null: none was found, or the recording has no owners");
}
TIDEMARK_DESCRIBED(Summary);

template <typename Visitor>
void describe(Visitor& v, const OtherGpu& other) {
  v.type("OtherGpu", "A GPU that a process allocated on beside the one that it used most.");
  v.field("device", to_string(other.device));
  v.field("peak_allocated_bytes", other.peak_allocated_bytes);
  v.field("stack", known(other.stack), "the call site that held most at that peak");
  v.field("rank", other.rank, "the rank whose device it is; null: no rank's");
}

template <typename Visitor>
void describe(Visitor& v, const RankRow& row) {
  const ProcessInfo& process = row.recording.process;
  v.type("RankRow", "A process on one of its devices.");
  v.field("file", row.recording.path);
  v.field("rank", process.rank);
  v.field("pid", process.pid);
  v.field("data_loader_worker", row.recording.is_worker);
  v.field("device", when(row.device.has_value(), [&] { return to_string(*row.device); }),
          "the GPU with the highest peak, else the CPU; null: nothing was allocated");
  v.field("peak_allocated_bytes", row.peak_allocated_bytes);
  v.field("peak_reserved_bytes", row.peak_reserved_bytes);
  v.field("device_used_bytes", row.device_used_bytes, "as the driver says, at its peak; null without samples");
  v.field("other_gpus", row.other_gpus);
  v.field("out_of_memory", row.out_of_memory, "on any device");
  v.field("difference_to_median", row.difference,
          "of the peak allocated, as a share of the group's median; null in a group of one");
  v.field("outlier", row.outlier);
}

template <typename Visitor>
void describe(Visitor& v, const RankGroup& group) {
  v.type("RankGroup", "Processes that are compared with each other.");
  const std::string device = to_string(Device{group.type, 0});
  v.field("device_type", device.substr(0, device.find(':')));
  v.field("children", group.children, "DataLoader workers, and what other processes of the job started");
  v.field("process_count", group.count);
  v.field("median_bytes", group.median_bytes, "of the peaks allocated");
  v.field("outlier_limit_bytes", group.limit_bytes, "an outlier differs from the median by more");
}

template <typename Visitor>
void describe(Visitor& v, const RankComparison& ranks) {
  v.type("Ranks", "All processes of a job in one table.");
  v.field("rows", ranks.rows, "by rank, those without one last");
  v.field("groups", ranks.groups, "in the order of the rows");
}
TIDEMARK_DESCRIBED(RankComparison);

template <typename Visitor>
void describe(Visitor& v, const JobSummary& job) {
  v.type("JobSummary", "The processes of a job side by side, and each one's summary.");
  v.field("ranks", job.ranks, "null of a single recording");
  v.field("recordings", job.summaries);
}
TIDEMARK_DESCRIBED(JobSummary);

}  // namespace tidemark
