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

/// A device at a time for which it may have no sample.
struct LedgerLookup {
  std::uint64_t time_ns = 0;
  std::optional<std::size_t> device;  ///< by SampledDeviceId; none: not sampled
};

struct CollectedSamples {
  std::vector<DeviceSamples> devices;  ///< by SampledDeviceId
  std::vector<LedgerInput> lookups;    ///< one for each lookup that was given, without used bytes
};

/// What a LedgerCollector makes of the store's samples, in one pass over its events and samples.
[[nodiscard]] CollectedSamples collect_samples(const Store& store, const LedgerQuery& query = {},
                                               const std::vector<LedgerLookup>& lookups = {});

/// What a HostLedgerCollector makes of the store's samples.
[[nodiscard]] HostLedgers collect_host(const Store& store, const HostQuery& query = {});

}  // namespace tidemark
