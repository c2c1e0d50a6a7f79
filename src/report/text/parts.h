// What the text reports share.
#pragma once

#include <string>

#include "analyze/common/data_quality.h"
#include "analyze/common/recording.h"
#include "report/text/terminal.h"
#include "report/words/recording.h"

namespace tidemark {

/// "  label           value\n": the labels of a list of facts are as wide as one another.
[[nodiscard]] std::string fact(const char* label, const std::string& value);

/// "Data quality: complete", or its issues, one a line.
[[nodiscard]] std::string quality_text(const DataQuality& quality, const Terminal& terminal);

/// One line for reports other than the summary: nothing when the recording is complete, else that it is not.
[[nodiscard]] std::string quality_hint(const RecordingInfo& recording, const Terminal& terminal);

/// Says that the live set is empty.
[[nodiscard]] std::string nothing_alive_text();

}  // namespace tidemark
