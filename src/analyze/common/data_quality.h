// What is missing from a recording, and how bad that is.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "store/store.h"
#include "store/symbols.h"

namespace tidemark {

struct QualityNote {
  std::string kind;      ///< stable name for machines: a Loss's name, "recorder_killed", "paused", ...
  std::string severity;  ///< "info", "warning" or "error"
  std::optional<std::uint64_t> count;
  std::string text;  ///< a sentence for people
};

struct DataQuality {
  /// True when no event of the recorded program is missing, from the recording's start to the program's end.
  bool complete = true;
  std::vector<QualityNote> notes;  ///< worst first
};

/// `symbols` should have named everything that will be shown before: files without symbols are noted only when asked
/// for.
[[nodiscard]] DataQuality analyze_data_quality(const Overview& overview, const Symbols& symbols);

}  // namespace tidemark
