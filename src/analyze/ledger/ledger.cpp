#include "analyze/ledger/ledger.h"

#include <algorithm>
#include <map>
#include <utility>

#include "analyze/ledger/devices.h"
#include "analyze/ledger/held_at.h"
#include "analyze/ledger/points.h"

namespace tidemark {
namespace {

// A device at a time, of which a ledger is wanted; the lists of processes as in DeviceMoment.
struct Wanted {
  std::optional<std::uint64_t> time_ns;
  std::optional<std::uint64_t> used_bytes;
  const DeviceProcessesSample* processes = nullptr;
  const DeviceProcessesSample* next_processes = nullptr;
};

Wanted at_time(const DeviceSeries& series, std::uint64_t time_ns) {
  Wanted wanted;
  wanted.time_ns = time_ns;
  const auto next =
      std::upper_bound(series.processes.begin(), series.processes.end(), time_ns,
                       [](std::uint64_t time, const DeviceProcessesSample& sample) { return time < sample.time_ns; });
  if (next != series.processes.begin()) wanted.processes = &*(next - 1);
  if (next != series.processes.end()) wanted.next_processes = &*next;
  return wanted;
}

Wanted at_sample(const DeviceSeries& series, std::size_t index) {
  Wanted wanted = at_time(series, series.time_ns[index]);
  wanted.used_bytes = series.used_bytes[index];
  return wanted;
}

// When slow calls of the driver were under way.
class SlowTimes {
 public:
  explicit SlowTimes(const std::vector<SlowDriverCall>& calls) {
    spans_.reserve(calls.size());
    for (const SlowDriverCall& call : calls) {
      spans_.emplace_back(call.time_ns - std::min(call.time_ns, call.duration_ns), call.time_ns);
    }
    std::sort(spans_.begin(), spans_.end());
    // The end of each becomes the latest of all that begin up to then.
    for (std::size_t n = 1; n < spans_.size(); ++n) spans_[n].second = std::max(spans_[n].second, spans_[n - 1].second);
  }
  [[nodiscard]] bool cover(std::uint64_t time_ns) const {
    const auto after = std::upper_bound(spans_.begin(), spans_.end(), time_ns,
                                        [](std::uint64_t time, const auto& span) { return time < span.first; });
    return after != spans_.begin() && time_ns <= (after - 1)->second;
  }

 private:
  std::vector<std::pair<std::uint64_t, std::uint64_t>> spans_;
};

// Without samples that a slow call covers: the first sample with the most used bytes of each of at most `points` equal
// stretches of time.
std::vector<Wanted> thinned(const DeviceSeries& series, const SlowTimes& slow, std::size_t points) {
  std::vector<Wanted> kept;
  if (points == 0 || series.time_ns.empty()) return kept;
  const std::uint64_t stretch_ns = series.time_ns.back() / points + 1;
  std::uint64_t stretch = 0;
  for (std::size_t index = 0; index < series.time_ns.size(); ++index) {
    if (!series.used_bytes[index] || slow.cover(series.time_ns[index])) continue;
    const std::uint64_t here = series.time_ns[index] / stretch_ns;
    if (kept.empty() || here != stretch) {
      kept.push_back(at_sample(series, index));
    } else if (*series.used_bytes[index] > *kept.back().used_bytes) {
      kept.back() = at_sample(series, index);
    }
    stretch = here;
  }
  return kept;
}

// The latest sample with used bytes that is not after `time_ns`.
std::optional<std::size_t> sample_until(const DeviceSeries& series, std::uint64_t time_ns) {
  auto index = latest_until(series.time_ns, time_ns);
  while (index && !series.used_bytes[*index]) index = *index == 0 ? std::nullopt : std::optional(*index - 1);
  return index;
}

// Makes ledgers of one device from what was held at any times.
class Maker {
 public:
  Maker(const LedgerTarget& target, MemoryOwners& owners) : target_(target), owners_(owners) {}

  /// Of a device that has a peak.
  [[nodiscard]] LedgerBreakdown make_peak(const DeviceMoments& moments) const {
    LedgerBreakdown ledger = make(*moments.peak);
    ledger.transient_peak_bytes = moments.transient_peak_bytes;
    if (moments.transient_peak_bytes) ledger.caveats.push_back(LedgerCaveat::transient_peak);
    return ledger;
  }
  [[nodiscard]] LedgerBreakdown make(const DeviceMoment& moment) const {
    const auto listed = [this](const std::optional<ProcessesMoment>& processes) {
      return processes ? std::optional(read(processes->sample, own(processes->held))) : std::nullopt;
    };
    return make(moment.time_ns, moment.used_bytes, own(moment.held), listed(moment.processes),
                listed(moment.next_processes));
  }
  [[nodiscard]] LedgerBreakdown make(const Wanted& wanted, const std::map<std::uint64_t, OwnMemory>& held) const {
    const auto listed = [&](const DeviceProcessesSample* processes) {
      return processes == nullptr ? std::nullopt : std::optional(read(*processes, held.at(processes->time_ns)));
    };
    return make(wanted.time_ns, wanted.used_bytes, wanted.time_ns ? held.at(*wanted.time_ns) : OwnMemory(),
                listed(wanted.processes), listed(wanted.next_processes));
  }
  [[nodiscard]] OwnMemory own(const HeldMemory& held) const {
    return target_.indexes ? target_.indexes->own(held, owners_) : OwnMemory();
  }

 private:
  [[nodiscard]] ProcessLines read(const DeviceProcessesSample& sample, const OwnMemory& own) const {
    return read_processes(sample, target_.indexes ? &own : nullptr);
  }
  // The list that counts. The recorded process is in it where it is in one of them, unless it held nothing yet: then it
  // began later.
  [[nodiscard]] static const ProcessLines* choose(std::uint64_t time_ns, const OwnMemory& own,
                                                  const std::optional<ProcessLines>& latest,
                                                  const std::optional<ProcessLines>& next) {
    if (!latest || !next) return latest ? &*latest : next ? &*next : nullptr;
    if (latest->has_process != next->has_process) {
      return next->has_process && own.known_bytes() != 0 ? &*next : &*latest;
    }
    return next->time_ns - time_ns < time_ns - latest->time_ns ? &*next : &*latest;
  }
  [[nodiscard]] LedgerBreakdown make(std::optional<std::uint64_t> time_ns, std::optional<std::uint64_t> used_bytes,
                                     const OwnMemory& own, const std::optional<ProcessLines>& latest,
                                     const std::optional<ProcessLines>& next) const {
    const ProcessLines* processes = choose(time_ns.value_or(0), own, latest, next);
    return make_ledger(time_ns, used_bytes, target_.indexes ? &own : nullptr, processes, owners_);
  }

  const LedgerTarget& target_;
  MemoryOwners& owners_;
};

// When to look at a device that has no sample for the moment.
std::optional<std::uint64_t> time_without_sample(const Store& store, const LedgerTarget& target, const Moment& at) {
  switch (at.kind) {
    case Moment::Kind::peak: {
      if (!target.framework) return std::nullopt;
      const DeviceSummary& summary = store.devices[*target.framework];
      return summary.peak_reserved_at_ns ? summary.peak_reserved_at_ns : summary.peak_allocated_at_ns;
    }
    case Moment::Kind::end:
      return store.end_ns;
    case Moment::Kind::time:
      return at.time_ns;
    case Moment::Kind::share:
      return static_cast<std::uint64_t>(at.share * static_cast<double>(store.end_ns));
  }
  return std::nullopt;
}

// One device while its ledgers are made.
struct Work {
  const LedgerTarget* target = nullptr;
  const DeviceSeries* series = nullptr;       // null: not sampled
  const DeviceMoments* peak = nullptr;        // where the peak is asked for, and reading kept it
  const DeviceMoment* kept_moment = nullptr;  // where the end is, likewise
  Wanted moment;                              // otherwise
  std::vector<Wanted> over_time;
  std::map<std::uint64_t, OwnMemory> held;  // by time, for all that is wanted
};

Work plan(const Store& store, const SlowTimes& slow, const LedgerTarget& target, const LedgerOptions& options) {
  Work work;
  work.target = &target;
  if (target.sampled) {
    work.series = &store.samples.devices[*target.sampled];
    const DeviceMoments& moments = store.device_moments[*target.sampled];
    if (options.at.kind == Moment::Kind::peak && moments.peak) work.peak = &moments;
    if (options.at.kind == Moment::Kind::end && moments.end) work.kept_moment = &*moments.end;
    work.over_time = thinned(*work.series, slow, options.points);
  }
  if (work.peak == nullptr && work.kept_moment == nullptr) {
    work.moment.time_ns = time_without_sample(store, target, options.at);
    const bool any_time = options.at.kind == Moment::Kind::time || options.at.kind == Moment::Kind::share;
    if (work.series != nullptr && work.moment.time_ns) {
      const auto sample = any_time ? sample_until(*work.series, *work.moment.time_ns) : std::nullopt;
      work.moment = sample ? at_sample(*work.series, *sample) : at_time(*work.series, *work.moment.time_ns);
    }
  }
  const auto want = [&](const Wanted& wanted) {
    if (wanted.time_ns) work.held.try_emplace(*wanted.time_ns);
    if (wanted.processes != nullptr) work.held.try_emplace(wanted.processes->time_ns);
    if (wanted.next_processes != nullptr) work.held.try_emplace(wanted.next_processes->time_ns);
  };
  want(work.moment);
  for (const Wanted& wanted : work.over_time) want(wanted);
  return work;
}

// One walk for all devices.
void fill_held(const Store& store, std::vector<Work>& works, MemoryOwners& owners) {
  std::vector<std::uint64_t> times;
  for (const Work& work : works) {
    for (const auto& [time_ns, own] : work.held) times.push_back(time_ns);
  }
  std::sort(times.begin(), times.end());
  times.erase(std::unique(times.begin(), times.end()), times.end());
  visit_held(store, times, [&](std::size_t index, const HeldMemory& held) {
    for (Work& work : works) {
      const auto entry = work.held.find(times[index]);
      if (entry != work.held.end()) entry->second = Maker(*work.target, owners).own(held);
    }
  });
}

void add_sample_caveats(const Store& store, const SlowTimes& slow, const Work& work, LedgerBreakdown& moment) {
  if (!moment.time_ns) moment.caveats.insert(moment.caveats.begin(), LedgerCaveat::no_events);
  if (moment.used_bytes) {
    if (slow.cover(*moment.time_ns)) moment.caveats.push_back(LedgerCaveat::slow_call);
    return;
  }
  const auto sampled = work.target->sampled;
  const LedgerCaveat why = store.device_moments.empty()           ? LedgerCaveat::no_samples
                           : !sampled                             ? LedgerCaveat::device_not_sampled
                           : !store.device_moments[*sampled].peak ? LedgerCaveat::used_unknown
                                                                  : LedgerCaveat::no_sample_yet;
  moment.caveats.insert(moment.caveats.begin(), why);
}

LedgerDevice finish(const Store& store, const SlowTimes& slow, const Work& work, MemoryOwners& owners) {
  const Maker maker(*work.target, owners);
  LedgerDevice device;
  device.device = work.target->name;
  if (work.series != nullptr) {
    device.model = work.series->device.name;
    device.total_bytes = work.series->device.total_bytes;
  }
  device.breakdown = work.peak != nullptr          ? maker.make_peak(*work.peak)
                     : work.kept_moment != nullptr ? maker.make(*work.kept_moment)
                                                   : maker.make(work.moment, work.held);
  add_sample_caveats(store, slow, work, device.breakdown);
  std::vector<LedgerBreakdown> ledgers;
  ledgers.reserve(work.over_time.size());
  for (const Wanted& wanted : work.over_time) ledgers.push_back(maker.make(wanted, work.held));
  device.libraries = largest_libraries(ledgers);
  device.points = points_of(ledgers, device.libraries);
  return device;
}

}  // namespace

Result<Ledger> analyze_ledger(const Store& store, const Symbols& symbols, const LedgerOptions& options) {
  const auto targets = select_targets(store, options.device);
  if (!targets) return targets.error();
  const SlowTimes slow(store.samples.slow_calls);
  MemoryOwners owners(store.definitions);
  std::vector<Work> works;
  works.reserve(targets->size());
  for (const LedgerTarget& target : *targets) works.push_back(plan(store, slow, target, options));
  fill_held(store, works, owners);
  Ledger ledger;
  ledger.devices.reserve(works.size());
  for (const Work& work : works) ledger.devices.push_back(finish(store, slow, work, owners));
  ledger.recording = describe_recording(store, symbols);
  return ledger;
}

std::vector<LedgerExtremes> ledger_extremes(const Overview& overview, const std::optional<std::string>& device) {
  std::vector<LedgerExtremes> extremes;
  MemoryOwners owners(overview.definitions);
  for (const LedgerTarget& target : ledger_targets(overview)) {
    if (!target.sampled || !(device ? *device == target.name : target.used)) continue;
    const DeviceMoments& moments = overview.device_moments[*target.sampled];
    if (!moments.peak) continue;
    const Maker maker(target, owners);
    LedgerExtremes& here = extremes.emplace_back();
    here.device = target.name;
    here.model = moments.device.name;
    here.total_bytes = moments.device.total_bytes;
    here.peak = maker.make_peak(moments);
    if (moments.end) here.end = maker.make(*moments.end);
  }
  return extremes;
}

}  // namespace tidemark
