#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "store/builder.h"
#include "store/store.h"
#include "store/tally.h"
#include "store/window_time.h"
#include "trace/reader.h"
#include "trace/sample_codec.h"

namespace tidemark {
namespace {

// The samples of a recording, read beside its events: in the file they stand near the events of their time, before
// them or after.
class SampleFeed {
 public:
  /// Hands over samples with the times of `window`, which must outlive this.
  SampleFeed(SampleReader reader, const WindowTime& window) : reader_(std::move(reader)), window_(window) { read(); }

  /// Hands over what was taken before `time_ns`, a time of the file.
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
    window_.shift(batch_[at_]);
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
  const WindowTime& window_;
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
  void begin() const { tally.begin(); }
  void add_sample(const SampleRecord& record) const {
    if (samples) samples(record, tally);
  }
};

struct ReadDefinitions {
  Definitions definitions;
  std::optional<std::uint64_t> window_began_ns;
};

// Feeds every event of a recording, and every sample between those of its time, to `consumer` (an OverviewConsumer or a
// StoreBuilder); `check` is asked after each batch.
template <typename Consumer, typename Check>
Result<ReadDefinitions> feed(const std::string& path, const Progress& progress, Consumer& consumer,
                             const Check& check) {
  auto reader = TraceReader::open(path);
  if (!reader) return reader.error();
  auto sample_reader = SampleReader::open(path);
  if (!sample_reader) return sample_reader.error();
  WindowTime window;
  SampleFeed samples(std::move(*sample_reader), window);
  TraceReader& trace = **reader;
  std::vector<Event> batch;
  for (;;) {
    const auto more = trace.next(batch);
    if (!more) return more.error();
    if (!*more) break;
    for (Event& event : batch) {
      if (window.take_lead_in(event, consumer)) continue;
      samples.before(event.time_ns, consumer);
      window.shift(event.time_ns);
      consumer.add(event);
    }
    if (Result<void> status = check(); !status) return status.error();
    if (progress) progress(trace.offset(), trace.size());
  }
  samples.finish(trace.offset(), consumer);
  ReadDefinitions read{trace.definitions(), window.began_ns()};
  window.shift(read.definitions);
  return read;
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
  Overview overview = std::move(tally).finish(path, std::move(definitions->definitions));
  overview.window_began_ns = definitions->window_began_ns;
  return overview;
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
  Store store = std::move(builder).finish(path, std::move(definitions->definitions));
  store.window_began_ns = definitions->window_began_ns;
  return store;
}

}  // namespace tidemark
