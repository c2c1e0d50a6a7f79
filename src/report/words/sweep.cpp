#include "report/words/sweep.h"

#include "report/words/printable.h"
#include "report/words/recording.h"

namespace tidemark {

std::string fits_text(const TrialResult& result) {
  if (!result.fits) return "failed";
  return *result.fits ? "yes" : "no";
}

std::string outcome_text(const TrialResult& result) {
  if (!result.fits) return "failed: " + shown(result.failure);
  const std::string used = bytes_text(result.used_bytes()) + " used";
  return *result.fits ? "fits, " + used : "does not fit";
}

std::string trial_bytes_text(const TrialResult& result, const std::optional<std::uint64_t>& bytes) {
  return (result.out_of_memory && bytes ? "\xE2\x89\xA5 " : "") + bytes_text(bytes);  // ≥
}

}  // namespace tidemark
