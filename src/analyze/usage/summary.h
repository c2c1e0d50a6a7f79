// What ran, how much memory it took on each device, and which call sites held it at the peak.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "analyze/advice/advice.h"
#include "analyze/attribution/attributed_store.h"
#include "analyze/common/call_sites.h"
#include "analyze/common/recording_info.h"
#include "analyze/common/stack_names.h"
#include "analyze/ledger/ledger.h"
#include "analyze/oom/explain.h"
#include "analyze/timeline/host_timeline.h"
#include "analyze/usage/breakdown.h"
#include "base/result.h"
#include "store/store.h"
#include "store/symbols.h"

namespace tidemark {

struct SummaryOptions {
  std::optional<std::string> device;  ///< only this one: "cuda:0"
  std::size_t top = 10;               ///< call sites to list for each device; 0 = all
  /// Of the same recording, for the ledgers: as a LedgerCollector chose them while it was read, or collect_samples()
  /// from a Store.
  std::vector<DeviceSamples> samples = {};
  HostUsage host = {};            ///< likewise
  HostLedgers host_ledgers = {};  ///< likewise
  /// Loads the recording's blocks, which only the explanation of an out-of-memory error needs; none: it is left out.
  std::function<Result<std::shared_ptr<const AttributedStore>>()> load_blocks = {};
  std::optional<std::uint64_t> rank = {};    ///< whose details are asked for
  PeakOwners owners = {};                    ///< categories and advice; what is not known is left out
  std::shared_ptr<const Store> blocks = {};  ///< of the recording, where `holders` are not the default ones
  Holders holders = {};                      ///< to list in place of all call sites
};

/// With the call sites, or owners, that held memory at the peak; shares are of the peak.
struct SummaryDevice : CallSites {
  DeviceSummary totals;
  std::uint64_t unrecorded_at_peak_bytes = 0;  ///< of the peak, what is in no recorded block; 0 where some are chosen
  std::vector<CategoryBytes> categories;       ///< at the peak; empty where the recording does not know them
  std::vector<Advice> advice;                  ///< most saving first; likewise
};

struct SummaryOutOfMemory {
  OutOfMemory event;
  Device device;
  NamedStack stack;
};

struct Summary {
  RecordingInfo recording;
  std::optional<bool> chosen;  ///< whether it is of SummaryOptions::rank; none where that was not given
  std::vector<SummaryDevice> devices;
  std::vector<SummaryOutOfMemory> out_of_memory;  ///< the first ten
  std::optional<OomFailure> failure;    ///< the latest of them, explained; none where its blocks could not be loaded
  std::vector<LedgerExtremes> ledgers;  ///< of devices with samples
  HostUsage host;
  std::optional<SampledBytes> pinned;  ///< page-locked memory from CUDA, by its events; none: none was recorded
  HostLedgers host_ledgers;
  std::optional<double> leak_bytes_per_step = {};  ///< as in PeakOwners
};

/// Page-locked host memory that CUDA gave to the process; none where none was recorded.
[[nodiscard]] std::optional<SampledBytes> pinned_memory(const Overview& overview);

/// Fails only when the recording does not contain the requested device.
Result<Summary> analyze_summary(const Overview& overview, Symbols& symbols, const SummaryOptions& options);

}  // namespace tidemark
