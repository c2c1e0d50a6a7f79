// The devices of a recording: which of them a report is about, and in which order it lists them.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "store/store.h"
#include "trace/event.h"

namespace tidemark {

/// The order of devices in every report: GPUs by type and number, then the CPU, then memory of the driver.
[[nodiscard]] bool listed_before(Device left, Device right);

/// Indexes into Overview::devices, in that order.
[[nodiscard]] std::vector<std::size_t> devices_in_order(const Overview& overview);

/// The same of all devices of the framework, or of the requested one, which may be one of the driver's. The error lists
/// the available devices.
Result<std::vector<std::size_t>> select_devices(const Overview& overview, const std::optional<std::string>& device);

}  // namespace tidemark
