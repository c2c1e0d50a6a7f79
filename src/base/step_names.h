// Common names of marks for the steps of a training loop.
#pragma once

#include <algorithm>
#include <array>
#include <cctype>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace tidemark {

/// Kind of a mark or range by its name, the most reliable first.
enum class StepName : std::uint8_t {
  planned,        ///< a step that `tidemark plan` counted: "Tidemark.step#2"
  profiler_step,  ///< as PyTorch's profiler names them: "ProfilerStep#12"
  step,           ///< "step", "train_step 7", "iteration", "batch"
  optimizer,      ///< as PyTorch's optimizers name theirs: "Optimizer.step#AdamW.step"
  other,
};
inline constexpr std::size_t kStepNames = 4;  // kinds that mark steps

/// The part of a name that is the same in each step: "Train_Step #7" → "trainstep".
[[nodiscard]] inline std::string step_stem(std::string_view name) {
  std::string stem;
  for (const char letter : name) {
    const auto byte = static_cast<unsigned char>(letter);
    if (std::isalpha(byte) != 0) stem += static_cast<char>(std::tolower(byte));
  }
  return stem;
}

[[nodiscard]] inline StepName step_name_of(std::string_view name) {
  constexpr std::array<std::string_view, 9> kWords = {"step",      "trainstep", "trainingstep", "globalstep",   "iter",
                                                      "iteration", "batch",     "trainbatch",   "trainingbatch"};
  if (name.starts_with("Tidemark.step#")) return StepName::planned;
  if (name.starts_with("ProfilerStep")) return StepName::profiler_step;
  if (name.starts_with("Optimizer.step")) return StepName::optimizer;
  return std::find(kWords.begin(), kWords.end(), step_stem(name)) != kWords.end() ? StepName::step : StepName::other;
}

}  // namespace tidemark
