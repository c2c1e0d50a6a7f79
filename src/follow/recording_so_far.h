// Everything that a recording has held so far, kept up to date event by event: what is read once is not read again.
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

/// Takes events and samples in order, as Follower gives them. What begins with a window of a longer recording has times
/// from there on, as a file has. Not thread-safe. Without blocks its memory does not grow
/// with events, with them some 33 bytes for each.
class RecordingSoFar {
 public:
  explicit RecordingSoFar(bool keep_blocks);

  void add(const Event& event);
  void add_sample(const SampleRecord& record);

  /// From now on no blocks are kept, and those that were are gone.
  void drop_blocks();
  [[nodiscard]] bool keeps_blocks() const { return std::holds_alternative<StoreBuilder>(kept_); }
  /// More blocks than an index can number: store() must not be called.
  [[nodiscard]] bool full() const { return keeps_blocks() && std::get<StoreBuilder>(kept_).full(); }
  [[nodiscard]] const Tally& tally() const;
  [[nodiscard]] std::uint64_t event_count() const { return event_count_; }
  /// Time of the last event, or of the end.
  [[nodiscard]] std::uint64_t now_ns(const Definitions& definitions) const;

  /// As load_overview() would give it now, with its samples; without load_blocks and owners. Costs what the stacks, the
  /// live blocks and the definitions cost to copy. `definitions` are the recording's up to now.
  [[nodiscard]] SampledOverview overview(const std::string& path, const Definitions& definitions) const;
  /// As load_store() would give it now. Blocks must be kept; valid until something is added. `growing`: as Source has
  /// it.
  [[nodiscard]] const Store& store(const std::string& path, const Definitions& definitions, bool growing = true);

 private:
  std::variant<Tally, StoreBuilder> kept_;
  SampleCollector samples_;
  WindowTime window_;
  std::uint64_t event_count_ = 0;
};

}  // namespace tidemark
