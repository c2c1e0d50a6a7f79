// The samples of a Store, as if its recording were read again.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "analyze/ledger/host_ledger.h"
#include "analyze/ledger/samples.h"
#include "store/store.h"

namespace tidemark {

/// A device at a time, possibly without a sample.
struct LedgerLookup {
  std::uint64_t time_ns = 0;
  std::optional<std::size_t> device;  ///< by SampledDeviceId; nullopt: not sampled
};

struct CollectedSamples {
  std::vector<DeviceSamples> devices;  ///< by SampledDeviceId
  std::vector<LedgerInput> lookups;    ///< one for each lookup that was given, without used bytes
};

/// Runs a LedgerCollector over the store's events and samples in one pass.
[[nodiscard]] CollectedSamples collect_samples(const Store& store, const LedgerQuery& query = {},
                                               const std::vector<LedgerLookup>& lookups = {});

/// Runs a HostLedgerCollector over the store's samples.
[[nodiscard]] HostLedgers collect_host(const Store& store, const HostQuery& query = {});

}  // namespace tidemark
