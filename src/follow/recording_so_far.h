// The content of a recording up to now, updated event by event: nothing is read twice.
#pragma once

#include <cstdint>
#include <string>
#include <variant>

#include "analyze/ledger/samples.h"
#include "store/builder.h"
#include "store/store.h"
#include "store/tally.h"
#include "store/window_time.h"

namespace tidemark {

/// Takes events and samples in order, as Follower returns them. For a window of a longer recording, times count from
/// there, as in a file. Not thread-safe. Without blocks its memory does not grow with events, with them by some 33
/// bytes for each.
class RecordingSoFar {
 public:
  explicit RecordingSoFar(bool keep_blocks);

  void add(const Event& event);
  void add_sample(const SampleRecord& record);

  /// Stops keeping blocks, and drops those kept.
  void drop_blocks();
  [[nodiscard]] bool keeps_blocks() const { return std::holds_alternative<StoreBuilder>(kept_); }
  /// More blocks than an index can number: do not call store().
  [[nodiscard]] bool full() const { return keeps_blocks() && std::get<StoreBuilder>(kept_).full(); }
  [[nodiscard]] const Tally& tally() const;
  [[nodiscard]] std::uint64_t event_count() const { return event_count_; }
  /// Time of the last event, or of the end.
  [[nodiscard]] std::uint64_t now_ns(const Definitions& definitions) const;

  /// The result of load_overview() at this moment, with its samples; without load_blocks and owners. Costs a copy of
  /// the stacks, the live blocks and the definitions. `definitions` are the recording's up to now.
  [[nodiscard]] SampledOverview overview(const std::string& path, const Definitions& definitions) const;
  /// The result of load_store() at this moment. Blocks must be kept; valid until something is added. `growing`: see
  /// Source.
  [[nodiscard]] const Store& store(const std::string& path, const Definitions& definitions, bool growing = true);

 private:
  std::variant<Tally, StoreBuilder> kept_;
  SampleCollector samples_;
  WindowTime window_;
  std::uint64_t event_count_ = 0;
};

}  // namespace tidemark
