#include "analyze/ledger/samples.h"

#include <algorithm>
#include <utility>

namespace tidemark {
namespace {

// A slow call is reported only after the samples that it covers: samples of 6 seconds at 10 Hz.
constexpr std::size_t kMaxPeakCandidates = 64;

}  // namespace

void HighestSample::add(const LedgerInput& input) {
  if (candidates_.size() == kMaxPeakCandidates) candidates_.erase(candidates_.begin());
  candidates_.push_back(input);
}

void HighestSample::drop_covered(const SlowDriverCall& call) {
  std::erase_if(candidates_, [&](const LedgerInput& candidate) {
    if (!call.covers(candidate.time_ns)) return false;
    covered_bytes_ = std::max(covered_bytes_, *candidate.used_bytes);
    return true;
  });
}

std::optional<LedgerInput> HighestSample::take() && {
  if (candidates_.empty()) return std::nullopt;
  return std::move(candidates_.back());
}

void LedgerCollector::add(const SampleRecord& record, const EventsSoFar& events) {
  if (const auto* device = std::get_if<SampledDevice>(&record)) {
    add(*device);
  } else if (const auto* sample = std::get_if<DeviceSample>(&record)) {
    add(*sample, events);
  } else if (const auto* list = std::get_if<DeviceProcessesSample>(&record)) {
    add(*list, events);
  } else if (const auto* call = std::get_if<SlowDriverCall>(&record)) {
    add(*call);
  }
}

void LedgerCollector::add(const SampledDevice& device) {
  const std::size_t index = tracks_.size();
  Track& track = tracks_.emplace_back();
  track.samples.device = device;
  if (index < query_.stretch_ns.size()) track.stretch_ns = query_.stretch_ns[index];
}

void LedgerCollector::add(const DeviceSample& sample, const EventsSoFar& events) {
  Track& track = tracks_[sample.device.value];
  track.sample_ns = std::max(track.sample_ns, sample.time_ns);
  if (!sample.used_bytes) return;
  LedgerInput input{track.sample_ns, sample.used_bytes, events.held(), track.lists, false};
  if (track.highest.exceeded_by(*sample.used_bytes)) track.highest.add(input);
  if (track.stretch_ns != 0) {
    const std::uint64_t number = track.sample_ns / track.stretch_ns;
    if (track.stretches.empty() || track.stretches.back().number != number) track.stretches.push_back({number, {}});
    HighestSample& highest = track.stretches.back().highest;
    if (highest.exceeded_by(*sample.used_bytes)) highest.add(input);
  }
  settle(track, events.last_event_ns());
  track.latest = std::move(input);
}

void LedgerCollector::add(const DeviceProcessesSample& sample, const EventsSoFar& events) {
  Track& track = tracks_[sample.device.value];
  track.list_ns = std::max(track.list_ns, sample.time_ns);
  auto list = std::make_shared<ProcessList>(ProcessList{sample, events.held()});
  list->sample.time_ns = track.list_ns;
  track.samples.lists_process |=
      std::any_of(sample.processes.begin(), sample.processes.end(),
                  [](const SampledProcess& process) { return process.kind == ProcessKind::recorded; });
  track.lists->next = list;
  track.lists = std::make_shared<NearestLists>(NearestLists{std::move(list), nullptr});
}

void LedgerCollector::add(const SlowDriverCall& call) {
  const std::uint64_t began_ns = call.time_ns - std::min(call.time_ns, call.duration_ns);
  for (Track& track : tracks_) {
    track.highest.drop_covered(call);
    for (auto stretch = track.stretches.rbegin();
         stretch != track.stretches.rend() && stretch->number >= began_ns / track.stretch_ns; ++stretch) {
      stretch->highest.drop_covered(call);
    }
    for (std::optional<LedgerInput>* input : {&track.samples.last, &track.samples.after, &track.latest}) {
      if (*input) (*input)->during_driver_call |= call.covers((*input)->time_ns);
    }
  }
}

void LedgerCollector::settle(Track& track, std::optional<std::uint64_t> last_event_ns) const {
  const auto limit = query_.at_ns ? query_.at_ns : last_event_ns;
  DeviceSamples& samples = track.samples;
  for (std::optional<LedgerInput>* input : {&samples.after, &track.latest}) {
    if (!*input || !limit || (*input)->time_ns > *limit) continue;
    samples.last = std::move(*input);
    samples.after.reset();
    input->reset();
  }
  if (limit && !query_.at_ns && !samples.after) samples.after = std::move(track.latest);
  track.latest.reset();
}

LedgerInput LedgerCollector::without_sample(std::uint64_t time_ns, std::optional<std::size_t> device,
                                            const EventsSoFar& events) const {
  return {time_ns, std::nullopt, events.held(), device ? tracks_[*device].lists : nullptr, false};
}

std::vector<DeviceSamples> LedgerCollector::finish(std::optional<std::uint64_t> last_event_ns) && {
  std::vector<DeviceSamples> devices;
  devices.reserve(tracks_.size());
  for (Track& track : tracks_) {
    settle(track, last_event_ns);
    DeviceSamples& samples = devices.emplace_back(std::move(track.samples));
    const std::uint64_t covered = track.highest.covered_bytes();
    samples.peak = std::move(track.highest).take();
    if (covered > (samples.peak ? *samples.peak->used_bytes : 0)) samples.transient_peak_bytes = covered;
    for (Stretch& stretch : track.stretches) {
      if (auto input = std::move(stretch.highest).take()) samples.over_time.push_back(std::move(*input));
    }
  }
  return devices;
}

void SampleCollector::add(const SampleRecord& record, const EventsSoFar& events) {
  ledgers_.add(record, events);
  host_.add(record);
  host_ledgers_.add(record, &events);
}

void SampleCollector::finish(SampledOverview& overview) && {
  overview.samples = std::move(ledgers_).finish(overview.last_event_ns);
  overview.host = host_.result();
  overview.host_ledgers = std::move(host_ledgers_).finish(overview);
}

}  // namespace tidemark
