#include "analyze/sweep/dp_sgd.h"

#include <algorithm>

#include "base/arithmetic.h"

namespace tidemark {

std::uint64_t ParameterMemory::bytes() const {
  std::uint64_t sum = 0;
  for (const ComponentBytes& component : components) sum = saturating_add(sum, component.bytes);
  return sum;
}

std::optional<std::uint64_t> DpSgdReport::bytes_of(std::string_view kind) const {
  const auto found =
      std::find_if(kinds.begin(), kinds.end(), [kind](const ParameterMemory& memory) { return memory.kind == kind; });
  return found == kinds.end() ? std::nullopt : std::optional(found->bytes());
}

const PhaseMemory* DpSgdReport::phase(std::string_view name) const {
  const auto found =
      std::find_if(phases.begin(), phases.end(), [name](const PhaseMemory& phase) { return phase.name == name; });
  return found == phases.end() ? nullptr : &*found;
}

std::optional<double> DpSgdSweep::per_sample_share(std::size_t row) const {
  const std::optional<DpSgdReport>& report = reports[row];
  const auto bytes = report ? report->bytes_of(kPerSampleGradients) : std::nullopt;
  const auto peak = sweep.rows[row].measured() ? sweep.rows[row].result->peak_allocated_bytes : std::nullopt;
  if (!bytes || peak.value_or(0) == 0) return std::nullopt;
  return static_cast<double>(*bytes) / static_cast<double>(*peak);
}

std::optional<std::size_t> DpSgdSweep::largest() const {
  std::optional<std::size_t> largest;
  std::uint64_t highest = 0;
  for (std::size_t row = 0; row < reports.size(); ++row) {
    if (!reports[row] || !sweep.rows[row].measured()) continue;
    const std::uint64_t peak = sweep.rows[row].result->peak_allocated_bytes.value_or(0);
    if (!largest || peak > highest) largest = row;
    highest = std::max(highest, peak);
  }
  return largest;
}

}  // namespace tidemark
