#include "query/results/common.h"
#include "query/results/ledgers.h"
#include "query/results/results.h"

namespace tidemark {

template <typename Visitor>
void describe(Visitor& v, const LedgerPoint& point) {
  v.type("LedgerPoint", "Totals of the ledger at a sample.");
  v.field("time_ns", point.time_ns);
  v.field("used_bytes", point.used_bytes);
  v.field("allocated_bytes", point.allocated_bytes);
  v.field("cached_bytes", point.cached_bytes);
  v.field("library_bytes", point.library_bytes, "by the device's `libraries`");
  v.field("other_library_bytes", point.other_library_bytes);
  v.field("context_bytes", point.context_bytes);
  v.field("process_bytes", point.process_bytes, "of all other processes");
}

template <typename Visitor>
void describe(Visitor& v, const LedgerDevice& device) {
  v.type("LedgerDevice", "One sampled device.");
  v.field("device", device.device);
  v.field("model", known_text(device.model));
  v.field("total_bytes", device.total_bytes);
  v.field("ledger", device.breakdown);
  v.field("libraries", device.libraries, "those with the most memory at any time, at most five");
  v.field("points", device.points,
          "of at most 1,200 equal stretches of time, the sample with the most used bytes in each");
}

template <typename Visitor>
void describe(Visitor& v, const HostPoint& point) {
  v.type("HostPoint", "Totals of the host's ledger at a sample.");
  v.field("time_ns", point.time_ns);
  v.field("used_bytes", point.used_bytes);
  v.field("main_bytes", point.main_bytes, "of the recorded process");
  v.field("workers_bytes", point.workers_bytes, "of DataLoader workers");
  v.field("job_bytes", point.job_bytes, "of the job's other processes");
  v.field("other_bytes", point.other_bytes, "of processes that are not the job's");
  v.field("shmem_bytes", point.shmem_bytes);
  v.field("cache_bytes", point.cache_bytes);
  v.field("kernel_bytes", point.kernel_bytes, "with sockets");
}

template <typename Visitor>
void describe(Visitor& v, const HostLedger& host) {
  v.type("HostLedger", "The host as a device of its own.");
  v.field("ledger", host.breakdown, "null: no sample had been taken by then");
  v.field("killed", host.kills);
  v.field("points", host.points, "as those of devices");
}

template <typename Visitor>
void describe(Visitor& v, const Ledger& ledger) {
  v.type("Ledger", "All memory of each GPU and of the host: PyTorch, libraries, context, processes, page cache.");
  v.part(ledger.recording);
  v.field("devices", ledger.devices);
  v.field("host", ledger.host, "null: not sampled, or another device was asked for");
}
TIDEMARK_DESCRIBED(Ledger);

}  // namespace tidemark
