#include "analyze/ledger/points.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <utility>

#include "analyze/common/arithmetic.h"

namespace tidemark {
namespace {

constexpr std::size_t kMaxLibraries = 5;  // as many as pictures have colours for

LedgerPoint point_of(const LedgerBreakdown& ledger, const std::vector<std::string>& libraries) {
  LedgerPoint point;
  point.time_ns = ledger.time_ns.value_or(0);
  point.used_bytes = ledger.used_bytes.value_or(0);
  point.allocated_bytes = ledger.allocated_bytes;
  point.cached_bytes = ledger.cached_bytes;
  point.library_bytes.resize(libraries.size());
  if (ledger.processes_sampled_at_ns) point.process_bytes = 0;
  for (const LedgerLine& line : ledger.lines) {
    const std::uint64_t bytes = line.bytes.value_or(0);
    if (line.part == LedgerPart::context) point.context_bytes = line.bytes;
    if (line.part == LedgerPart::process) point.process_bytes = saturating_add(*point.process_bytes, bytes);
    if (line.part != LedgerPart::library) continue;
    const auto found = std::find(libraries.begin(), libraries.end(), line.name);
    std::uint64_t& sum = found == libraries.end()
                             ? point.other_library_bytes
                             : point.library_bytes[static_cast<std::size_t>(found - libraries.begin())];
    sum = saturating_add(sum, bytes);
  }
  return point;
}

}  // namespace

std::vector<std::string> largest_libraries(const std::vector<LedgerBreakdown>& ledgers) {
  std::map<std::string, std::uint64_t> highest;
  for (const LedgerBreakdown& ledger : ledgers) {
    for (const LedgerLine& line : ledger.lines) {
      if (line.part != LedgerPart::library) continue;
      std::uint64_t& bytes = highest[line.name];
      bytes = std::max(bytes, line.bytes.value_or(0));
    }
  }
  std::vector<std::pair<std::uint64_t, std::string>> sorted;
  sorted.reserve(highest.size());
  for (const auto& [name, bytes] : highest) sorted.emplace_back(bytes, name);
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const auto& left, const auto& right) { return left.first > right.first; });
  if (sorted.size() > kMaxLibraries) sorted.resize(kMaxLibraries);
  std::vector<std::string> names;
  names.reserve(sorted.size());
  for (auto& [bytes, name] : sorted) names.push_back(std::move(name));
  return names;
}

std::vector<LedgerPoint> points_of(const std::vector<LedgerBreakdown>& ledgers,
                                   const std::vector<std::string>& libraries) {
  std::vector<LedgerPoint> points;
  points.reserve(ledgers.size());
  for (const LedgerBreakdown& ledger : ledgers) points.push_back(point_of(ledger, libraries));
  return points;
}

}  // namespace tidemark
