#include "analyze/steps/annotated_steps.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <string>
#include <string_view>
#include <unordered_map>

#include "analyze/common/annotations.h"

namespace tidemark {
namespace {

constexpr std::array<std::string_view, 9> kStepWords = {
    "step", "trainstep", "trainingstep", "globalstep", "iter", "iteration", "batch", "trainbatch", "trainingbatch"};

enum class Meaning : std::uint8_t { planned, profiler_step, step, optimizer, other };
constexpr std::size_t kMeanings = 4;  // those that tell steps

// "Train_Step #7" → "trainstep".
std::string stem_of(std::string_view name) {
  std::string stem;
  for (const char letter : name) {
    const auto byte = static_cast<unsigned char>(letter);
    if (std::isalpha(byte) != 0) stem += static_cast<char>(std::tolower(byte));
  }
  return stem;
}

Meaning meaning_of(std::string_view name) {
  if (name.starts_with("Tidemark.step#")) return Meaning::planned;
  if (name.starts_with("ProfilerStep")) return Meaning::profiler_step;
  if (name.starts_with("Optimizer.step")) return Meaning::optimizer;
  const std::string stem = stem_of(name);
  return std::find(kStepWords.begin(), kStepWords.end(), stem) != kStepWords.end() ? Meaning::step : Meaning::other;
}

}  // namespace

AnnotatedSteps annotated_steps(const Definitions& definitions) {
  std::unordered_map<StringId, Meaning> known;
  std::array<AnnotatedSteps, kMeanings> found;
  for (const AnnotatedRange& range : annotated_ranges(definitions)) {
    const auto [entry, is_new] = known.try_emplace(range.name, Meaning::other);
    if (is_new && range.name.valid() && range.name.value < definitions.strings.size()) {
      entry->second = meaning_of(definitions.strings[range.name.value]);
    }
    if (entry->second == Meaning::other) continue;
    AnnotatedSteps& steps = found[static_cast<std::size_t>(entry->second)];
    if (!steps.name.valid()) steps.name = range.name;
    const bool later = steps.starts_ns.empty() || range.begin_ns > steps.starts_ns.back();
    if (later) steps.starts_ns.push_back(range.begin_ns);
  }
  found[static_cast<std::size_t>(Meaning::optimizer)].of_optimizer = true;
  AnnotatedSteps& planned = found[static_cast<std::size_t>(Meaning::planned)];
  if (!planned.starts_ns.empty()) return std::move(planned);
  for (AnnotatedSteps& steps : found) {
    if (steps.starts_ns.size() >= kFewestSteps) return std::move(steps);
  }
  return {};
}

}  // namespace tidemark
