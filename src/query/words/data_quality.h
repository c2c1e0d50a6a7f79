// Texts of data-quality issues for all reports.
#pragma once

#include <string>
#include <string_view>

#include "analyze/common/recording_info.h"
#include "trace/data_quality.h"

namespace tidemark {

/// The text of an issue. `{name}` is replaced by the value of that name ("count" is the issue's count); a part in
/// square brackets is left out if one of its values is unknown.
struct QualityTemplate {
  QualityId id;
  std::string_view text;
  std::string_view text_for_one = {};  ///< for a count of 1; empty: `text` fits every count
};

[[nodiscard]] const QualityTemplate& quality_template(QualityId id);

/// Whether only later events are missing.
[[nodiscard]] bool is_still_recorded(const DataQuality& quality);

/// "complete", "complete except while paused", "still recording" or "events are missing".
[[nodiscard]] const char* quality_verdict(const DataQuality& quality);

/// One sentence. Names in it are as recorded: not yet safe to print.
[[nodiscard]] std::string quality_text(const QualityIssue& issue);

}  // namespace tidemark
