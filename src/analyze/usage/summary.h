// The program, its memory on each device, and the call sites that held it at the peak.
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
  /// Of the same recording, for the ledgers: selected by a LedgerCollector while it was read, or collect_samples() from
  /// a Store.
  std::vector<DeviceSamples> samples = {};
  HostUsage host = {};            ///< of the same recording
  HostLedgers host_ledgers = {};  ///< of the same recording
  /// Loads the recording's blocks, which only the explanation of an out-of-memory error needs; null: no explanation.
  std::function<Result<std::shared_ptr<const AttributedStore>>()> load_blocks = {};
  std::optional<std::uint64_t> rank = {};    ///< rank to show in detail
  PeakOwners owners = {};                    ///< categories and advice; unknown ones are left out
  std::shared_ptr<const Store> blocks = {};  ///< of the recording, if `holders` are not the default ones
  Holders holders = {};                      ///< lists owners instead of all call sites
};

/// With the call sites, or owners, that held memory at the peak; shares are of the peak.
struct SummaryDevice : CallSites {
  DeviceSummary totals;
  std::uint64_t unrecorded_at_peak_bytes = 0;  ///< bytes of the peak that are in no recorded block; 0 if a filter
                                               ///< selects some
  std::vector<CategoryBytes> categories;       ///< at the peak; empty if the recording does not contain them
  std::uint64_t peak_model_bytes = 0;          ///< as model_peaks(); 0 if the recording does not contain categories
  std::vector<Advice> advice;                  ///< largest saving first; empty if the recording does not contain them
};

struct SummaryOutOfMemory {
  OutOfMemory event;
  Device device;
  NamedStack stack;
};

struct Summary {
  RecordingInfo recording;
  std::optional<bool> chosen;  ///< whether it belongs to SummaryOptions::rank; nullopt if that was not given
  std::vector<SummaryDevice> devices;
  std::vector<SummaryOutOfMemory> out_of_memory;  ///< the first ten
  std::optional<OomFailure> failure;    ///< the latest of them, explained; nullopt if its blocks could not be loaded
  std::vector<LedgerExtremes> ledgers;  ///< of devices with samples
  HostUsage host;
  std::optional<SampledBytes> pinned;  ///< page-locked memory from CUDA, by its events; nullopt: none was recorded
  HostLedgers host_ledgers;
  std::shared_ptr<const Leaks> leaks = {};  ///< as in PeakOwners
};

/// Page-locked host memory that CUDA allocated for the process; nullopt if none was recorded.
[[nodiscard]] std::optional<SampledBytes> pinned_memory(const Overview& overview);

/// Fails only when the recording does not contain the requested device.
Result<Summary> analyze_summary(const Overview& overview, Symbols& symbols, const SummaryOptions& options);

}  // namespace tidemark
