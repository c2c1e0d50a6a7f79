#include "live/watch_reports.h"

#include <utility>

#include "store/symbols.h"

namespace tidemark {
namespace {

/// `analyze(store, symbols)` of each recording that has events.
template <typename Found, typename Analyze>
std::vector<Found> analyze_each(const RecordingsWatch& recordings, const Analyze& analyze) {
  std::vector<Found> found;
  const std::size_t count = recordings.processes().size();
  for (std::size_t n = 0; n < count; ++n) {
    const AttributedStore store = recordings.window(n);
    Symbols symbols(store.definitions);
    auto result = analyze(store, symbols);
    if (result) found.push_back({n, std::move(*result)});
  }
  return found;
}

}  // namespace

std::optional<double> WatchRun::unused_share(const std::string& device) const {
  RunningValue all;
  for (const RecordedProcess& process : recorded) {
    for (const RecordedDevice& on : process.devices) {
      if (on.key != device || on.unused_share.count == 0) continue;
      all.sum += on.unused_share.sum;
      all.count += on.unused_share.count;
    }
  }
  return all.mean();
}

std::vector<RecordedLeaks> recorded_leaks(const RecordingsWatch& recordings) {
  return analyze_each<RecordedLeaks>(recordings, [](const AttributedStore& store, Symbols& symbols) {
    LeakOptions options;
    options.attribution = store.attribution.get();
    return analyze_leaks(store, symbols, options);
  });
}

std::vector<RecordedFragmentation> recorded_fragmentation(const RecordingsWatch& recordings) {
  return analyze_each<RecordedFragmentation>(recordings, [](const AttributedStore& store, Symbols& symbols) {
    return analyze_fragmentation(store, symbols, {});
  });
}

}  // namespace tidemark
