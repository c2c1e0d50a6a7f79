#include "analyze/leaks/grown_steps.h"

#include <algorithm>
#include <cstddef>

namespace tidemark {
namespace {

// A block has survived when it is older than what is freed gets, by this factor; by more where no block is known to
// have outlived one of those frees: the next collection of garbage may yet take them all.
constexpr double kOlder = 1.5;
constexpr double kOlderWithoutProof = 3;
constexpr std::uint32_t kPause = 2;
constexpr std::uint32_t kRarer = 3;

}  // namespace

std::uint32_t GrownSteps::long_pause() const {
  std::uint32_t pause = 1;
  for (std::size_t index = 1; index < grown.size(); ++index) pause = std::max(pause, grown[index] - grown[index - 1]);
  return kPause * (pause + 1);
}

std::uint32_t GrownSteps::begin() const {
  return grown.front() - warmup > long_pause() ? grown.front() : warmup;
}

GrowthClass GrownSteps::classify() const {
  const auto middle = std::lower_bound(grown.begin(), grown.end(), warmup + (end - warmup) / 2);
  const auto early = static_cast<std::uint32_t>(middle - grown.begin());
  const auto late = static_cast<std::uint32_t>(grown.end() - middle);
  if (end - 1 - grown.back() > long_pause()) return GrowthClass::stopped;
  if (grown.size() < kMinGrownSteps || end - grown.front() < kMinAnalyzedSteps) return GrowthClass::too_few;
  return late * kRarer < early ? GrowthClass::slowing : GrowthClass::leak;
}

std::uint32_t young_age(std::uint32_t usual_age, bool proof) {
  const double factor = proof || usual_age == 0 ? kOlder : kOlderWithoutProof;
  return std::max(1U, static_cast<std::uint32_t>(usual_age * factor));
}

}  // namespace tidemark
