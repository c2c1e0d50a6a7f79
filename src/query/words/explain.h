// Sentences for the result of analyze_explain(): verdict, evidence, possible fixes.
#pragma once

#include <string>

#include "analyze/oom/explain.h"

namespace tidemark {

/// One sentence: what failed and why, "Out of memory on cuda:0: 2.0 GiB requested, 738.2 MiB free of 24.0 GiB; ...".
[[nodiscard]] std::string verdict_text(const OomFailure& failure);
/// Source of the free bytes of the device: "as reported by the driver", "sampled 40.0 ms before".
[[nodiscard]] std::string device_free_source(const OomFailure& failure);
/// The same with the command for details.
[[nodiscard]] std::string out_of_memory_headline(const OomFailure& failure, const RecordingInfo& recording);
/// The numbers that show a cause.
[[nodiscard]] std::string evidence_text(const OomFailure& failure, const OomFinding& finding);
/// The reason why no cause was found.
[[nodiscard]] std::string unknown_cause_text(const OomFailure& failure);
/// The fix in words; shown with its bytes.
[[nodiscard]] std::string fix_text(const OomFailure& failure, const OomFix& fix);
/// How to verify the effect of the change.
[[nodiscard]] std::string check_text(const Explanation& explanation, const OomFailure& failure, const OomFix& fix);

/// Whether the request would have fitted: "yes", "no" or "unknown".
[[nodiscard]] const char* fits_text(const OomAdvice& advice);

}  // namespace tidemark
