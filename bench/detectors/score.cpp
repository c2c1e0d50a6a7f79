#include "score.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace tidemark::detectors {
namespace {

constexpr double kHorizon = ForecastOptions{}.horizon_seconds;
constexpr double kAskEvery = 1;
constexpr double kCalibrateEvery = 20;
constexpr double kForeseeableSeconds = 90;
constexpr double kForeseeableSteps = 40;
constexpr double kEnoughSeconds = 60;
constexpr double kEnoughSteps = 20;
constexpr double kLeakSeconds = 120;

double share(std::uint64_t part, std::uint64_t whole) {
  return whole == 0 ? std::nan("") : static_cast<double>(part) / static_cast<double>(whole);
}

bool reaches_limit(const LabelledRun& run, double from, double within) {
  return run.limit_at && *run.limit_at - from <= within;
}

void calibrate(const LabelledRun& run, const RiskAssessment& risk, double now, Calibration& calibration) {
  if (!risk.confidence) return;
  auto& cell = calibration.cells[static_cast<std::size_t>(risk.level)][evidence_class(risk, {})];
  const bool foreseen = foresees_limit(risk, {});
  ++cell.assessments;
  cell.right += reaches_limit(run, now, foreseen ? kRightWithin * kHorizon : kHorizon) == foreseen ? 1U : 0U;
  cell.confidence += *risk.confidence;
  if (risk.level < RiskLevel::high || !run.limit_at || !risk.seconds_to_limit) return;
  const double left = *run.limit_at - now;
  ++calibration.intervals;
  const Interval& interval = *risk.seconds_to_limit;
  calibration.inside += left >= interval.earliest && left <= interval.latest.value_or(left) ? 1U : 0U;
}

}  // namespace

Outcome watch(const LabelledRun& run, Monitor& monitor, Calibration& calibration) {
  Outcome outcome;
  bool was = false;
  double asked = -1;
  double calibrated = run.begin();
  for (const UsageSample& sample : run.samples) {
    monitor.add(sample);
    const double now = static_cast<double>(sample.time_ns) / kNanosecondsPerSecond;
    if (now - asked < kAskEvery * 0.99) continue;
    asked = now;
    const Verdict verdict = monitor.assess(run.limit_bytes);
    if (verdict.runs_out && !was) {
      ++outcome.alarms;
      if (!outcome.alarm_at) {
        outcome.alarm_at = now;
        outcome.predicted = verdict.seconds;
      }
    }
    was = verdict.runs_out;
    if (verdict.leaks) {
      auto& found = run.leaks == Leaks::yes && now < run.grows_from ? outcome.leak_before : outcome.leak_at;
      if (!found) found = now;
    }
    if (verdict.assessment && now - calibrated >= kCalibrateEvery) {
      calibrated = now;
      calibrate(run, *verdict.assessment, now, calibration);
    }
  }
  return outcome;
}

double Score::recall() const {
  return share(foreseen, foreseeable);
}
double Score::precision() const {
  return share(right_runs, right_runs + false_runs);
}
double Score::leak_recall() const {
  return share(leaks_found, leaking);
}
double Score::leak_precision() const {
  return share(leaks_found, leaks_found + false_leaks);
}

std::string add_outcome(const LabelledRun& run, const Outcome& outcome, Score& score) {
  std::string wrong;
  ++score.runs;
  const double grown_for = run.limit_at.value_or(0) - std::max(run.grows_from, run.begin());
  const bool has_many_steps = run.samples.back().steps && grown_for >= kForeseeableSteps * run.seconds_per_step;
  const bool foreseeable = run.ran_out && (grown_for >= kForeseeableSeconds || has_many_steps);
  const bool right = outcome.alarm_at && reaches_limit(run, *outcome.alarm_at, kRightWithin * kHorizon);
  if (!run.limit_at) {
    score.healthy_hours += (run.end() - run.begin()) / 3600;
    score.false_alarms += outcome.alarms;
  }
  if (outcome.alarm_at && !right) {
    ++score.false_runs;
    wrong += fmt::format("false alarm at {:.0f} s; ", *outcome.alarm_at);
  }
  if (right) ++score.right_runs;
  if (foreseeable) {
    ++score.foreseeable;
    if (right) {
      ++score.foreseen;
      const double lead = *run.limit_at - *outcome.alarm_at;
      score.lead_seconds.push_back(lead);
      score.lead_steps.push_back(lead / run.seconds_per_step);
      if (lead >= kEnoughSeconds || lead >= kEnoughSteps * run.seconds_per_step) {
        ++score.in_time;
      } else {
        wrong += fmt::format("alarm only {:.0f} s before the limit, after {:.0f} s of growth; ", lead, grown_for);
      }
      if (outcome.predicted) score.errors.push_back(std::abs(*outcome.predicted - lead) / lead);
    } else {
      wrong += fmt::format("no alarm in {:.0f} s of growth; ", grown_for);
    }
  }
  const double leaked_for = run.end() - std::max(run.grows_from, run.begin());
  if (run.leaks == Leaks::yes && leaked_for >= kLeakSeconds) {
    ++score.leaking;
    if (outcome.leak_at) {
      ++score.leaks_found;
      score.leak_delay.push_back(*outcome.leak_at - std::max(run.grows_from, run.begin()));
    } else {
      wrong += fmt::format("no leak found in {:.0f} s; ", leaked_for);
    }
  }
  if (run.leaks == Leaks::no && outcome.leak_at) {
    ++score.false_leaks;
    wrong += fmt::format("false leak at {:.0f} s; ", *outcome.leak_at);
  } else if (outcome.leak_before) {
    ++score.false_leaks;
    wrong += fmt::format("leak at {:.0f} s, before it began; ", *outcome.leak_before);
  } else if (run.leaks == Leaks::undecidable) {
    ++score.undecidable;
    if (outcome.leak_at) ++score.undecidable_found;
  }
  return wrong;
}

}  // namespace tidemark::detectors
