#include "live/recording_so_far.h"

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
  ++event_count_;
  std::visit([&event](auto& kept) { kept.add(event); }, kept_);
}

void RecordingSoFar::add_sample(const SampleRecord& record) {
  samples_.add(record, tally());
  if (auto* builder = std::get_if<StoreBuilder>(&kept_)) builder->add_sample(record);
}

void RecordingSoFar::drop_blocks() {
  if (keeps_blocks()) kept_ = Tally(tally());
}

SampledOverview RecordingSoFar::overview(const std::string& path, const Definitions& definitions) const {
  SampledOverview sampled;
  static_cast<Overview&>(sampled) = tally().so_far(path, definitions);
  SampleCollector(samples_).finish(sampled);
  return sampled;
}

const Store& RecordingSoFar::store(const std::string& path, const Definitions& definitions, bool growing) {
  return std::get<StoreBuilder>(kept_).so_far(path, definitions, growing);
}

}  // namespace tidemark
