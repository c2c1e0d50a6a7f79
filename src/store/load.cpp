#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <memory>
#include <utility>
#include <vector>

#include "store/builder.h"
#include "store/store.h"
#include "store/tally.h"
#include "trace/reader.h"
#include "trace/sample_reader.h"

namespace tidemark {
namespace {

// The samples of a recording, read beside its events: in the file they stand near the events of their time, before
// them or after.
class SampleFeed {
 public:
  explicit SampleFeed(SampleReader reader) : reader_(std::move(reader)) { read(); }

  /// Hands over what was taken before `time_ns`.
  template <typename Consumer>
  void before(std::uint64_t time_ns, Consumer& consumer) {
    while (next_ns_ < time_ns) take(consumer);
  }
  /// The rest, as far as the events were read: where a damaged file ends for them, it ends for samples.
  template <typename Consumer>
  void finish(std::uint64_t offset, Consumer& consumer) {
    end_ = offset;
    if (reader_.offset() > end_) batch_.clear();
    while (at_ < batch_.size()) take(consumer);
  }

 private:
  template <typename Consumer>
  void take(Consumer& consumer) {
    consumer.add_sample(batch_[at_++]);
    if (at_ == batch_.size()) read();
    find_time();
  }
  void read() {
    at_ = 0;
    const auto more = reader_.offset() < end_ ? reader_.next(batch_) : false;
    // An error stops the reading of the events too, which says so.
    if (!more || !*more || reader_.offset() > end_) batch_.clear();
    find_time();
  }
  void find_time() {
    next_ns_ = at_ < batch_.size() ? time_of(batch_[at_]) : std::numeric_limits<std::uint64_t>::max();
  }

  SampleReader reader_;
  std::vector<SampleRecord> batch_;
  std::size_t at_ = 0;
  std::uint64_t next_ns_ = 0;
  std::uint64_t end_ = std::numeric_limits<std::uint64_t>::max();
};

// An Overview keeps no samples.
struct OverviewConsumer {
  Tally& tally;
  const SampleConsumer& samples;

  void add(const Event& event) const { tally.add(event); }
  void add_sample(const SampleRecord& record) const {
    if (samples) samples(record, tally);
  }
};

// Feeds every event of a recording, and every sample between those of its time, to `consumer` (an OverviewConsumer or a
// StoreBuilder); `check` is asked after each batch.
template <typename Consumer, typename Check>
Result<Definitions> feed(const std::string& path, const Progress& progress, Consumer& consumer, const Check& check) {
  auto reader = TraceReader::open(path);
  if (!reader) return reader.error();
  auto sample_reader = SampleReader::open(path);
  if (!sample_reader) return sample_reader.error();
  SampleFeed samples(std::move(*sample_reader));
  TraceReader& trace = **reader;
  std::vector<Event> batch;
  for (;;) {
    const auto more = trace.next(batch);
    if (!more) return more.error();
    if (!*more) break;
    for (const Event& event : batch) {
      samples.before(event.time_ns, consumer);
      consumer.add(event);
    }
    if (Result<void> fine = check(); !fine) return fine.error();
    if (progress) progress(trace.offset(), trace.size());
  }
  samples.finish(trace.offset(), consumer);
  return trace.definitions();
}

}  // namespace

std::uint64_t Store::changes_until(std::uint64_t time_ns) const {
  const auto after =
      std::upper_bound(live_changes.begin(), live_changes.end(), time_ns,
                       [](std::uint64_t time, const LiveChange& change) { return time < change.time_ns; });
  return static_cast<std::uint64_t>(after - live_changes.begin());
}

Result<Overview> load_overview(const std::string& path, const Progress& progress, const SampleConsumer& samples) {
  Tally tally;
  OverviewConsumer consumer{tally, samples};
  auto definitions = feed(path, progress, consumer, [] { return Result<void>(); });
  if (!definitions) return definitions.error();
  return std::move(tally).finish(path, std::move(*definitions));
}

Result<Store> load_store(const std::string& path, const Progress& progress) {
  StoreBuilder builder;
  auto definitions = feed(path, progress, builder, [&]() -> Result<void> {
    if (!builder.full()) return {};
    return Error{fmt::format(
        "{}: more events than fit in memory indexes (4,294,967,294); `tidemark summary` reads recordings of any length",
        path)};
  });
  if (!definitions) return definitions.error();
  return std::move(builder).finish(path, std::move(*definitions));
}

}  // namespace tidemark
