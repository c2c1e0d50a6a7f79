#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "store/builder.h"
#include "store/store.h"
#include "store/tally.h"
#include "trace/reader.h"

namespace tidemark {
namespace {

// Feeds every event of a recording to `consumer` (a Tally or a StoreBuilder); `check` is asked after each batch.
template <typename Consumer, typename Check>
Result<Definitions> feed(const std::string& path, const Progress& progress, Consumer& consumer, const Check& check,
                         SampleObserver observe_sample = {}) {
  auto reader = TraceReader::open(path);
  if (!reader) return reader.error();
  TraceReader& trace = **reader;
  trace.observe_samples(std::move(observe_sample));
  std::vector<Event> batch;
  for (;;) {
    const auto more = trace.next(batch);
    if (!more) return more.error();
    if (!*more) break;
    for (const Event& event : batch) consumer.add(event);
    if (Result<void> fine = check(); !fine) return fine.error();
    if (progress) progress(trace.offset(), trace.size());
  }
  return trace.definitions();
}

}  // namespace

std::uint64_t Store::steps_until(std::uint64_t time_ns) const {
  const auto after = std::upper_bound(steps.begin(), steps.end(), time_ns,
                                      [](std::uint64_t time, const Step& step) { return time < step.time_ns; });
  return static_cast<std::uint64_t>(after - steps.begin());
}

Result<Overview> load_overview(const std::string& path, const Progress& progress) {
  Tally tally;
  auto definitions = feed(path, progress, tally, [] { return Result<void>(); });
  if (!definitions) return definitions.error();
  return std::move(tally).finish(path, std::move(*definitions));
}

Result<Store> load_store(const std::string& path, const Progress& progress) {
  StoreBuilder builder;
  auto definitions = feed(
      path, progress, builder,
      [&]() -> Result<void> {
        if (!builder.full()) return {};
        return Error{
            fmt::format("{}: more events than fit in memory indexes (4,294,967,294); `tidemark summary` reads "
                        "recordings of any length",
                        path)};
      },
      [&](const SampleRecord& record) { builder.add_sample(record); });
  if (!definitions) return definitions.error();
  return std::move(builder).finish(path, std::move(*definitions));
}

}  // namespace tidemark
