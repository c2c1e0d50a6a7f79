#include "follow/recording_so_far.h"

#include <algorithm>
#include <utility>

namespace tidemark {

RecordingSoFar::RecordingSoFar(bool keep_blocks) {
  if (keep_blocks) kept_.emplace<StoreBuilder>();
}

const Tally& RecordingSoFar::tally() const {
  const auto* builder = std::get_if<StoreBuilder>(&kept_);
  return builder != nullptr ? builder->tally() : std::get<Tally>(kept_);
}

void RecordingSoFar::add(const Event& event) {
  const auto add_to = [&](auto& kept) {
    if (window_.take_lead_in(event, kept)) return;
    Event there = event;
    window_.shift(there.time_ns);
    kept.add(there);
    ++event_count_;
  };
  std::visit(add_to, kept_);
}

void RecordingSoFar::add_sample(const SampleRecord& record) {
  SampleRecord there = record;
  window_.shift(there);
  samples_.add(there, tally());
  if (auto* builder = std::get_if<StoreBuilder>(&kept_)) builder->add_sample(there);
}

std::uint64_t RecordingSoFar::now_ns(const Definitions& definitions) const {
  std::uint64_t end_ns = definitions.end ? definitions.end->time_ns : 0;
  window_.shift(end_ns);
  return std::max(tally().now_ns(), end_ns);
}

void RecordingSoFar::drop_blocks() {
  if (keeps_blocks()) kept_ = Tally(tally());
}

SampledOverview RecordingSoFar::overview(const std::string& path, const Definitions& definitions) const {
  SampledOverview sampled;
  Definitions there = definitions;
  window_.shift(there);
  static_cast<Overview&>(sampled) = tally().so_far(path, std::move(there));
  sampled.window_began_ns = window_.began_ns();
  SampleCollector(samples_).finish(sampled);
  return sampled;
}

const Store& RecordingSoFar::store(const std::string& path, const Definitions& definitions, bool growing) {
  Definitions there = definitions;
  window_.shift(there);
  return std::get<StoreBuilder>(kept_).so_far(path, std::move(there), growing, window_.began_ns());
}

}  // namespace tidemark
