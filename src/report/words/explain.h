// What `explain` says in words: verdict, evidence, advice. The numbers are the analysis's.
#pragma once

#include <string>

#include "analyze/oom/explain.h"

namespace tidemark {

/// "demand", "fragmentation", "limit", "leak" or "other_process".
[[nodiscard]] const char* name_of(OomCause cause);
/// "free_blocks", "raise_limit", …
[[nodiscard]] const char* name_of(OomRemedy remedy);

/// One sentence: what failed and why.
[[nodiscard]] std::string verdict_words(const OomFailure& failure);
/// The numbers that show a cause.
[[nodiscard]] std::string evidence_words(const OomFailure& failure, const OomFinding& finding);
/// Why no cause is named.
[[nodiscard]] std::string unknown_cause_words(const OomFailure& failure);
/// What to change, after the bytes that it is about.
[[nodiscard]] std::string change_words(const OomFailure& failure, const OomChange& change);
/// How to see whether the change does what it says.
[[nodiscard]] std::string check_words(const Explanation& explanation, const OomFailure& failure,
                                      const OomChange& change);

}  // namespace tidemark
