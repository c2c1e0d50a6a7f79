// Breakdown of a device's memory: device used = reserved by PyTorch + libraries + context and modules + other processes
// + unexplained.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "analyze/common/moment.h"
#include "analyze/common/recording_info.h"
#include "analyze/ledger/host_ledger.h"
#include "analyze/ledger/lines.h"
#include "analyze/ledger/samples.h"
#include "base/result.h"
#include "store/store.h"
#include "store/symbols.h"

namespace tidemark {

struct LedgerOptions {
  /// Only this device: "cuda:0", "host"; nullopt: the devices that the process used, and the host.
  std::optional<std::string> device;
  /// The latest sample not after it; `peak` is the first sample with the most used bytes, `end` the last sample not
  /// after the last event.
  Moment at;
  std::size_t points = 1200;  ///< maximum number of points over time for each device; 0 = none
};

/// A device at the time of a sample. nullopt: unknown at that time.
struct LedgerPoint {
  std::uint64_t time_ns = 0;
  std::uint64_t used_bytes = 0;
  std::optional<std::uint64_t> allocated_bytes;
  std::optional<std::uint64_t> cached_bytes;
  std::vector<std::uint64_t> library_bytes;  ///< of LedgerDevice::libraries
  std::uint64_t other_library_bytes = 0;
  std::optional<std::uint64_t> context_bytes;
  std::optional<std::uint64_t> process_bytes;  ///< of all other processes
};

struct LedgerDevice {
  std::string device;  ///< "cuda:0"; "amd:1" with the number of the vendor's tool if the program's number is unknown
  std::string model;   ///< "NVIDIA H200"; empty when unknown. Not safe to print
  std::optional<std::uint64_t> total_bytes;
  LedgerBreakdown breakdown;
  std::vector<std::string> libraries;  ///< libraries with the most bytes over time; not safe to print
  std::vector<LedgerPoint> points;  ///< for equal stretches of time, the first sample with the most used bytes in each
};

/// The host as a device named kHostDevice.
struct HostLedger {
  std::optional<HostBreakdown> breakdown;  ///< nullopt: no sample had been taken by then
  std::vector<HostPoint> points;           ///< as LedgerDevice::points
  std::vector<HostKill> kills;
};
inline constexpr std::string_view kHostDevice = "host";

struct Ledger {
  RecordingInfo recording;
  std::vector<LedgerDevice> devices;
  std::optional<HostLedger> host;  ///< nullopt if it was not sampled, or another device was requested
};

/// Fails only if the requested device does not exist.
Result<Ledger> analyze_ledger(const Store& store, const Symbols& symbols, const LedgerOptions& options);

/// The ledgers of a device that need no Store.
struct LedgerExtremes {
  std::string device;  ///< as in LedgerDevice
  std::string model;
  std::optional<std::uint64_t> total_bytes;
  LedgerBreakdown peak;
  std::optional<LedgerBreakdown> end;
};

/// For the devices with samples that the process used, or for the requested one. `samples`: of the same recording,
/// selected by a LedgerCollector with the default query.
[[nodiscard]] std::vector<LedgerExtremes> ledger_extremes(const Overview& overview,
                                                          const std::vector<DeviceSamples>& samples,
                                                          const std::optional<std::string>& device);

}  // namespace tidemark
