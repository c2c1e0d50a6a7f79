// What every result says about the recording that it came from.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "analyze/common/data_quality.h"
#include "store/store.h"

namespace tidemark {

struct RecordingInfo {
  std::string path;
  SourceKind source = SourceKind::recording;
  std::optional<std::string> allocator_settings;  ///< PYTORCH_CUDA_ALLOC_CONF; none where it is not known
  ProcessInfo process;
  bool is_worker = false;  ///< of a torch.utils.data.DataLoader, as its Python stacks show
  std::uint64_t event_count = 0;
  std::uint64_t duration_ns = 0;
  DataQuality quality;
  std::string chosen_blocks = {};  ///< filter_text() of the blocks that the result is about; empty: all
};

/// Call after `symbols` named what will be shown (see analyze_data_quality).
[[nodiscard]] RecordingInfo describe_recording(const Overview& overview, const Symbols& symbols);

}  // namespace tidemark
