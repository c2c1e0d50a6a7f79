// The devices that a ledger can be of.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "analyze/ledger/lines.h"
#include "base/result.h"
#include "store/store.h"

namespace tidemark {

struct LedgerTarget {
  std::string name;                      ///< as LedgerDevice::device
  std::optional<std::size_t> sampled;    ///< by SampledDeviceId
  std::optional<LedgerIndexes> indexes;  ///< none where the program's number of the device is not known
  std::optional<std::size_t> framework;  ///< index into Overview::devices, where the framework's allocator used it
  bool used = false;                     ///< whether the recorded process used it, by its events
};

/// The sampled devices and those that only events are of, in the order of listed_before().
[[nodiscard]] std::vector<LedgerTarget> ledger_targets(const Overview& overview,
                                                       const std::vector<SampledDevice>& sampled);

/// All of `targets`, or only the requested one. An error that lists the devices when it is not among them.
Result<std::vector<LedgerTarget>> select_targets(const Overview& overview, std::vector<LedgerTarget> targets,
                                                 const std::optional<std::string>& device);

}  // namespace tidemark
