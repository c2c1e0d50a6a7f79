// Reserved memory that is in no tensor, in words: its pattern, forecast and remedies; the same in text, JSON and HTML.
// Printable.
#pragma once

#include <string>
#include <vector>

#include "analyze/fragmentation/fragmentation.h"

namespace tidemark {

/// "stable since 14.1 s", "grows in steps since 14.1 s", "unknown: ...".
[[nodiscard]] std::string unused_pattern_text(const UnusedMemory& unused);

/// "rises by 3.2 MiB from 14.1 s to 60.3 s, 4.2 MiB/min (95% interval +3.0 MiB to +3.3 MiB)", "shows no clear trend
/// ..."; "unknown" if unknown.
[[nodiscard]] std::string unused_trend_text(const UnusedMemory& unused);

/// When it takes the remaining memory of the device, that it does not, or why there is no forecast.
[[nodiscard]] std::string unused_forecast_text(const UnusedMemory& unused);

/// "Fragmentation is low: ...", "2.1 GiB of 8.0 GiB reserved ...", or why it is unknown. One sentence.
[[nodiscard]] std::string fragmentation_verdict(const UnusedMemory& unused);

struct FragmentationAdviceText {
  std::string change;    ///< "set PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True (now max_split_size_mb:64)"
  std::string reason;    ///< the measurement behind the advice
  std::string settings;  ///< "expandable_segments:True"; empty: none
  std::string check;     ///< a command
};
/// `recording`: whose memory it is.
[[nodiscard]] FragmentationAdviceText advice_text(const FragmentationAdvice& advice, const UnusedMemory& unused,
                                                  const RecordingInfo& recording);

}  // namespace tidemark
