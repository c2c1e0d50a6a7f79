// Facts about the recording that every result contains: its program, missing data and their severity, and the devices
// of the result in order.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "store/store.h"
#include "store/symbols.h"
#include "trace/data_quality.h"
#include "trace/event.h"

namespace tidemark {

struct DataQuality {
  /// True when no event of the recorded program is missing, from the recording's start to the program's end.
  bool complete = true;
  std::vector<QualityIssue> issues;  ///< worst first
};

/// Call after `symbols` named everything that will be shown: files without symbols are listed only if they were looked
/// up.
[[nodiscard]] DataQuality analyze_data_quality(const Overview& overview, const Symbols& symbols);

/// The order of devices in every report: GPUs by type and number, then the CPU, then memory of the driver.
[[nodiscard]] bool listed_before(Device left, Device right);

/// Indexes into Overview::devices, in that order.
[[nodiscard]] std::vector<std::size_t> devices_in_order(const Overview& overview);

/// All devices of the framework, or the requested one, which may be known only from the driver. The error lists the
/// available devices.
Result<std::vector<std::size_t>> select_devices(const Overview& overview, const std::optional<std::string>& device);

struct RecordingInfo {
  std::string path;
  SourceKind source = SourceKind::recording;
  std::optional<std::string> allocator_settings;  ///< PYTORCH_CUDA_ALLOC_CONF as set; nullopt if unknown
  ProcessInfo process;
  bool is_worker = false;  ///< of a torch.utils.data.DataLoader, as its Python stacks show
  std::uint64_t event_count = 0;
  std::uint64_t duration_ns = 0;
  DataQuality quality;
  std::string simulated_gpu = {};  ///< of `tidemark plan`: its name; empty: the program ran without it
  std::string chosen_blocks = {};  ///< filter_text() of the blocks that the result is about; empty: all
};

/// Call after `symbols` named everything that will be shown (see analyze_data_quality).
[[nodiscard]] RecordingInfo describe_recording(const Overview& overview, const Symbols& symbols);

}  // namespace tidemark
