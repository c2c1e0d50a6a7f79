// Everything that a report page shows of one recording: the results of the other analyses, from one store.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "analyze/common/recording.h"
#include "analyze/fragmentation/fragmentation.h"
#include "analyze/leaks/leaks.h"
#include "analyze/ledger/ledger.h"
#include "analyze/oom/explain.h"
#include "analyze/patterns.h"
#include "analyze/summary.h"
#include "analyze/table.h"
#include "analyze/temporary.h"
#include "analyze/timeline.h"
#include "analyze/tree.h"
#include "base/result.h"
#include "store/store.h"
#include "store/symbols.h"

namespace tidemark {

struct ReportOptions {
  std::optional<std::string> device;  ///< only this one: "cuda:0"
  std::size_t points = 1200;          ///< of the timeline, for each device
  std::size_t rows = 25;              ///< stacks at the peak to list for each device; the other lists have at most 10
  double min_share = 0.001;           ///< of what a device held at its peak: calls that hold less are left out
};

/// The segments of a device at its peak, largest first; empty where the source does not know segments.
struct ReportMap {
  std::vector<MapSegment> segments;
  std::uint64_t other_segments = 0;  ///< smaller ones beyond those
  std::uint64_t other_bytes = 0;
};

/// Everything is at each device's peak, where it is at one moment. Devices are in the same order everywhere.
struct Report {
  RecordingInfo recording;
  Summary summary;
  Timeline timeline;
  Ledger ledger;  ///< at the devices' own peaks; empty where `device` is none that a ledger can be of
  Table table;    ///< by stack
  Tree tree;      ///< without frames of the interpreter
  Fragmentation fragmentation;
  std::vector<ReportMap> maps;               ///< one for each device
  std::map<StackId, NamedStack> map_stacks;  ///< those that hold most in them
  Temporary temporary;
  Patterns patterns;
  Leaks leaks;
  Explanation explanation;  ///< of the latest failed requests
};

/// Fails only when the recording does not contain the requested device.
Result<Report> analyze_report(const Store& store, Symbols& symbols, const ReportOptions& options);

/// Makes every list half as long, for a page that would become too large; what is left out is counted as elsewhere.
/// False when nothing could be left out any more.
bool halve(Report& report);

}  // namespace tidemark
