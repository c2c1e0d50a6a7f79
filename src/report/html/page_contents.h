// Everything that a page shows of one recording: the results of the analyses, from one store; and how a page that
// became too large gets smaller.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "analyze/advice/patterns.h"
#include "analyze/attribution/attribution.h"
#include "analyze/attribution/filter.h"
#include "analyze/common/recording_info.h"
#include "analyze/fragmentation/fragmentation.h"
#include "analyze/leaks/leaks.h"
#include "analyze/ledger/ledger.h"
#include "analyze/oom/explain.h"
#include "analyze/timeline/timeline.h"
#include "analyze/usage/breakdown.h"
#include "analyze/usage/summary.h"
#include "analyze/usage/table.h"
#include "analyze/usage/temporary.h"
#include "analyze/usage/tree.h"
#include "base/result.h"
#include "query/analyses/analysis.h"
#include "store/store.h"
#include "store/symbols.h"

namespace tidemark::html {

struct PageOptions {
  std::optional<std::string> device;  ///< only this one: "cuda:0"
  std::size_t points = 1200;          ///< of the timeline, for each device
  std::size_t rows = 25;              ///< stacks at the peak to list for each device; the other lists have at most 10
  std::optional<std::uint64_t> rank = {};  ///< for other ranks only the summary
  FilterOptions filter = {};               ///< selects the blocks of the lists, charts and findings
  double min_share = 0.001;                ///< of the device's memory at its peak: smaller calls are left out
};

/// The segments of a device at its peak, largest first; empty if the source has no segments.
struct PageMap {
  std::vector<MapSegment> segments;
  std::uint64_t other_segments = 0;  ///< smaller segments that are not listed
  std::uint64_t other_bytes = 0;
};

/// The result of an analysis that is a table.
struct PageTable {
  const Analysis* analysis = nullptr;
  ResultTable table;
};

/// All data of one moment is at each device's peak. Devices are in the same order everywhere. For ranks that were not
/// requested, only `recording` and `summary` are set.
struct PageContents {
  RecordingInfo recording;
  Summary summary;
  std::optional<Breakdown> breakdown;  ///< by layer if known; nullopt without attribution
  Timeline timeline;                   ///< with call sites
  Ledger ledger;                       ///< at the devices' own peaks; empty if there can be no ledger of `device`
  Table table;                         ///< by stack
  Tree tree;                           ///< without frames of the interpreter
  Tree project_tree;                   ///< the same with frames of the project only
  Fragmentation fragmentation;
  std::vector<PageMap> maps;                 ///< one for each device
  std::map<StackId, NamedStack> map_stacks;  ///< the stacks that hold most of them
  Temporary temporary;
  Patterns patterns;
  Leaks leaks;
  Explanation explanation;        ///< of the latest failed requests
  std::vector<PageTable> tables;  ///< of the analyses in the list with a table as their result, in its order

  /// Whether the page shows more than one line of it.
  [[nodiscard]] bool is_detailed() const { return summary.chosen.value_or(true); }
};

/// Runs the analyses. Fails if the requested device is not in the recording, and as choose_blocks() does.
/// `attribution`: of the store, if the recording has data for it; may be null.
Result<PageContents> collect_page_contents(const Store& store, Symbols& symbols, const PageOptions& options,
                                           const Attribution* attribution = nullptr);

/// Halves the length of every list; removed items are counted as the other unlisted ones. False if nothing could be
/// removed any more.
bool halve(PageContents& contents);

/// Minimum size of this recording in the page: with lists shortened by halve() as far as possible.
[[nodiscard]] std::size_t least_bytes(PageContents contents);

/// Error for `count` of `of` recordings that are too large for a page.
[[nodiscard]] Error too_large_error(std::size_t count, std::size_t of);

/// Keeps the first `kept` segments of a map.
void leave_out(PageMap& map, std::size_t kept);

}  // namespace tidemark::html

namespace tidemark {

// The page is self-contained: it needs no network and no other file, and no script for its main content.

/// Maximum size of a page, so that it can be mailed and opened on a phone.
inline constexpr std::size_t kMaxHtmlBytes = 15'000'000;

/// One page for all of them, in the order of compare_ranks(): a table of them, and details of one at a time. Lists are
/// shortened, with a note on the page, until it is small enough. Fails if that is impossible: for hundreds of
/// recordings.
Result<std::string> to_html(std::vector<html::PageContents> contents);

}  // namespace tidemark
