#include "query/words/sweep.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/units.h"
#include "query/words/printable.h"
#include "query/words/recording_text.h"

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

std::string configuration_text(const Sweep& sweep, const SweepRow& row) {
  std::string text;
  for (std::size_t index = 0; index < sweep.arguments.size(); ++index) {
    text += (text.empty() ? "" : " ") + shown(sweep.arguments[index].name + "=" + row.values[index], 40);
  }
  return text;
}

std::string fits_text(const SweepRow& row) {
  if (row.result) return fits_text(*row.result);
  if (!row.fits()) return "n/a";
  return *row.fits() ? "~yes" : "~no";
}

std::vector<std::string> law_text(const Sweep& sweep, const Law& law) {
  const std::vector<std::size_t> numeric = sweep.numeric();
  const auto factors = [&](const LawTerm& term) {
    std::string text;
    for (std::size_t index = 0; index < term.powers.size(); ++index) {
      for (int time = 0; time < term.powers[index]; ++time) text += " * " + sweep.arguments[numeric[index]].name;
    }
    return text;
  };
  const auto sum = [&](std::size_t group) {
    std::string text;
    for (const LawTerm& term : law.terms()) {
      const auto& coefficient = term.coefficients[term.coefficients.size() == 1 ? 0 : group];
      if (!coefficient) return std::string("no trials");
      const bool negative = *coefficient < 0;
      text += text.empty() ? (negative ? "-" : "") : (negative ? " - " : " + ");
      text += format_bytes(static_cast<std::uint64_t>(std::llround(std::abs(*coefficient)))) + factors(term);
    }
    return text;
  };
  const bool apart = std::any_of(law.terms().begin(), law.terms().end(),
                                 [](const LawTerm& term) { return term.coefficients.size() > 1; });
  if (!apart) return {sum(0)};
  std::vector<std::string> lines;
  const std::vector<std::string> groups = sweep.groups();
  for (std::size_t group = 0; group < groups.size(); ++group) lines.push_back(shown(groups[group]) + ": " + sum(group));
  return lines;
}

std::string law_error_text(const Law& law) {
  return fmt::format("median {}, largest {} ({} trials, each predicted from the others)",
                     share_text(law.median_error_share()), share_text(law.largest_error_share()), law.points());
}

}  // namespace tidemark
