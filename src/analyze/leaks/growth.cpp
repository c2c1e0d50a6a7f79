#include "analyze/leaks/growth.h"

#include <algorithm>
#include <numeric>

namespace tidemark {
namespace {

// Of a place's long-lived blocks, so many may be freed later than all others without changing what is usual.
constexpr double kUnusual = 0.05;
// A block has survived when it is older than what is freed gets, by this factor; by more where no block is known to
// have outlived one of those frees: the next collection of garbage may yet take them all.
constexpr double kOlder = 1.5;
constexpr double kOlderWithoutProof = 3;
constexpr std::size_t kProof = 3;        // blocks that outlived a free of others, to be proof
constexpr std::size_t kPerLateFree = 4;  // blocks that must be left for each one that was freed when as old as they are
constexpr std::uint32_t kPause = 2;
constexpr std::uint32_t kSlower = 3;
constexpr double kSteadyRise = 0.8;  // Kendall's tau of a replaced block's size
constexpr double kWorkRises = 0.5;   // Kendall's tau of the work in a step
constexpr std::size_t kMostValues = 200;

std::uint32_t round_down(double value) {
  return static_cast<std::uint32_t>(value);
}

// What is freed, and how late.
struct Releases {
  std::uint32_t usual_age = 0;  // boundaries lived through by the oldest that is not unusual; 0 = nothing is freed
  std::uint32_t last_step = 0;  // the step of the last one
  std::size_t outlived = 0;     // blocks born before that step and still there
  std::size_t survivors = 0;
  std::vector<std::uint32_t> ages;  // of all that were freed, in no order

  [[nodiscard]] std::size_t later_than(std::uint32_t age) const {
    return static_cast<std::size_t>(std::count_if(ages.begin(), ages.end(), [&](auto other) { return other > age; }));
  }
};

// Only blocks that lived through a whole step count: others are the work of a step.
Releases releases_of(std::span<const Stay> stays, std::uint32_t boundaries, std::uint32_t warmup) {
  Releases releases;
  std::vector<std::uint32_t>& ages = releases.ages;
  for (const Stay& stay : stays) {
    if (stay.first == 0 || stay.boundaries() < 2 || stay.last + 1 == boundaries) continue;
    ages.push_back(stay.boundaries());
    releases.last_step = std::max(releases.last_step, stay.last);
  }
  for (const Stay& stay : stays) {
    if (stay.first <= warmup || stay.boundaries() < 2 || stay.last + 1 != boundaries) continue;
    ++releases.survivors;
    if (stay.first - 1 < releases.last_step) ++releases.outlived;
  }
  const auto unusual = round_down(kUnusual * static_cast<double>(ages.size() + releases.survivors));
  if (ages.size() > unusual) {
    const auto oldest = ages.end() - 1 - unusual;
    std::nth_element(ages.begin(), oldest, ages.end());
    releases.usual_age = *oldest;
  }
  return releases;
}

// What each of the judged steps left, bytes and blocks.
struct Left {
  std::vector<double> bytes;
  std::vector<std::uint32_t> blocks;
};

Left left_by(std::span<const Stay> stays, std::uint32_t boundaries, std::uint32_t begin, std::uint32_t end) {
  Left left{std::vector<double>(end - begin), std::vector<std::uint32_t>(end - begin)};
  for (const Stay& stay : stays) {
    if (stay.last + 1 != boundaries || stay.first <= begin || stay.first - 1 >= end) continue;
    left.bytes[stay.first - 1 - begin] += static_cast<double>(stay.bytes);
    ++left.blocks[stay.first - 1 - begin];
  }
  return left;
}

std::vector<double> thinned(std::span<const double> values, std::size_t stride) {
  std::vector<double> kept;
  for (std::size_t index = 0; index < values.size(); index += stride) kept.push_back(values[index]);
  return kept;
}

}  // namespace

std::uint32_t judged_steps(std::uint32_t boundaries, std::uint32_t warmup) {
  return boundaries < 2 || boundaries - 2 < warmup ? 0 : boundaries - 2 - warmup;
}

std::optional<Growth> judge_kept(std::span<const Stay> stays, std::uint32_t boundaries, std::uint32_t warmup) {
  const Releases releases = releases_of(stays, boundaries, warmup);
  if (releases.survivors < 2) return std::nullopt;
  Growth growth;
  growth.released_after = releases.usual_age;
  const bool proof = releases.outlived >= kProof;
  const std::uint32_t young =
      std::max(1U, round_down(releases.usual_age * (proof || releases.usual_age == 0 ? kOlder : kOlderWithoutProof)));
  const std::uint32_t end = boundaries > young + 1 ? boundaries - young - 1 : 0;  // the first step not judged
  std::vector<std::uint32_t> grown;
  for (const Stay& stay : stays) {
    if (stay.last + 1 != boundaries || stay.first <= warmup || stay.boundaries() < 2) continue;
    growth.last_step = std::max(growth.last_step, stay.first - 1);
    grown.push_back(stay.first - 1);
  }
  std::sort(grown.begin(), grown.end());
  grown.erase(std::unique(grown.begin(), grown.end()), grown.end());
  growth.first_step = grown.front();
  if (end < warmup + kFewestJudgedSteps) {
    if (!proof || grown.size() < kFewestGrownSteps) return std::nullopt;
    growth.finding = GrowthFinding::unclear;
    return growth;
  }
  grown.erase(std::lower_bound(grown.begin(), grown.end(), end), grown.end());
  if (grown.size() < 2) return std::nullopt;

  std::uint32_t pause = 1;
  for (std::size_t index = 1; index < grown.size(); ++index) pause = std::max(pause, grown[index] - grown[index - 1]);
  const std::uint32_t long_pause = kPause * (pause + 1);
  const std::uint32_t begin = grown.front() - warmup > long_pause ? grown.front() : warmup;
  const Left left = left_by(stays, boundaries, begin, end);
  growth.bytes_per_step = mean_with_interval(left.bytes);
  growth.bytes_per_step.low = std::max(growth.bytes_per_step.low, 0.0);
  const auto blocks = std::accumulate(left.blocks.begin(), left.blocks.end(), std::size_t{0});
  growth.judged_steps = end - begin;
  growth.blocks_per_step = static_cast<double>(blocks) / growth.judged_steps;
  growth.grown_steps = static_cast<std::uint32_t>(grown.size());

  const auto middle = std::lower_bound(grown.begin(), grown.end(), warmup + (end - warmup) / 2);
  const auto early = static_cast<std::uint32_t>(middle - grown.begin());
  if (end - 1 - grown.back() > long_pause) {
    growth.finding = GrowthFinding::stopped;
  } else if (grown.size() < kFewestGrownSteps || end - grown.front() < kFewestJudgedSteps) {
    growth.finding = GrowthFinding::too_few;
  } else if ((growth.grown_steps - early) * kSlower < early) {
    growth.finding = GrowthFinding::slowing;
  } else if (releases.later_than(young) * kPerLateFree >= blocks) {
    growth.finding = GrowthFinding::unclear;
  }
  return growth;
}

std::optional<Growth> judge_replaced(std::span<const Stay> stays, std::uint32_t boundaries, std::uint32_t warmup,
                                     std::span<const double> work) {
  if (judged_steps(boundaries, warmup) < kFewestJudgedSteps) return std::nullopt;
  std::vector<double> held(boundaries + 1);
  std::size_t replaced = 0;
  std::size_t others = 0;
  for (const Stay& stay : stays) {
    held[stay.first] += static_cast<double>(stay.bytes);
    held[stay.last + 1] -= static_cast<double>(stay.bytes);
    if (stay.first > warmup && stay.last + 1 != boundaries) ++(stay.boundaries() == 1 ? replaced : others);
  }
  for (std::size_t index = 1; index < held.size(); ++index) held[index] += held[index - 1];
  if (replaced < kFewestJudgedSteps || others > replaced) return std::nullopt;

  const std::span<const double> judged = std::span(held).subspan(warmup + 1, boundaries - warmup - 1);
  if (judged.back() <= judged.front() || *std::min_element(judged.begin(), judged.end()) <= 0) return std::nullopt;
  const std::size_t stride = 1 + judged.size() / kMostValues;
  const std::vector<double> values = thinned(judged, stride);
  if (kendall_tau(values) < kSteadyRise) return std::nullopt;
  Growth growth;
  growth.kind = GrowthKind::replaced;
  growth.bytes_per_step = theil_sen(values);
  for (double* bound : {&growth.bytes_per_step.value, &growth.bytes_per_step.low, &growth.bytes_per_step.high}) {
    *bound /= static_cast<double>(stride);
  }
  if (growth.bytes_per_step.low <= 0) return std::nullopt;
  growth.judged_steps = static_cast<std::uint32_t>(judged.size() - 1);
  for (std::size_t index = 1; index < judged.size(); ++index) {
    if (judged[index] <= judged[index - 1]) continue;
    if (growth.grown_steps++ == 0) growth.first_step = static_cast<std::uint32_t>(warmup + index);
    growth.last_step = static_cast<std::uint32_t>(warmup + index);
  }
  const double middle = judged[judged.size() / 2];
  if (kendall_tau(thinned(work.subspan(warmup, boundaries - 1 - warmup), stride)) >= kWorkRises) {
    growth.finding = GrowthFinding::with_work;
  } else if (growth.grown_steps < kFewestGrownSteps) {
    growth.finding = GrowthFinding::too_few;
  } else if ((judged.back() - middle) * kSlower < middle - judged.front()) {
    growth.finding = GrowthFinding::slowing;
  }
  return growth;
}

}  // namespace tidemark
