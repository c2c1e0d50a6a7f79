// When the steps of the training loop begin: given by the caller, named by the program, or found from what repeats.
//
// Marks come first (annotated_steps). Where they do not tell, two clocks are looked for. (1) Runs of allocations made
// below torch/optim: one run is one optimizer step. (2) Something that is allocated once in a step: a stack, or, where
// blocks have no stacks, four sizes in a row. Of all such anchors the one is taken between whose occurrences everything
// else repeats most regularly. Only anchors that occur all over the run count, so that what repeats inside one step
// (layers of one size) is none.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/enum_names.h"
#include "store/store.h"

namespace tidemark {

struct TrainingSteps {
  enum class Source : std::uint8_t {
    none,        ///< no repetition found
    given,       ///< by the caller
    annotation,  ///< a step begins where `mark` does
    optimizer,   ///< a step begins where the optimizer does (first allocation below torch/optim)
    stack,       ///< a step begins with the allocation of `anchor`
    sizes,       ///< a step begins with the fourth of four sizes in a row
  };
  struct Start {
    std::uint64_t time_ns = 0;
    std::uint64_t event_count = 0;  ///< how many of Store::live_changes happened before
  };

  Source source = Source::none;
  std::vector<Start> starts;  ///< in order of time; the last step's end is not known
  StackId anchor;             ///< Source::stack: what begins a step
  StringId mark;              ///< Source::annotation: the first name of those that begin a step
  double regularity = 0;  ///< 0 to 1: how alike the steps are, by step_score(), or by 1 / (1 + cv^2) for sizes, where
                          ///< cv is the coefficient of variation of the allocations a step; 0 when given or none
};

inline constexpr EnumName<TrainingSteps::Source> kStepSourceNames[] = {
    {TrainingSteps::Source::none, "none"},
    {TrainingSteps::Source::given, "given"},
    {TrainingSteps::Source::annotation, "annotation"},
    {TrainingSteps::Source::optimizer, "optimizer"},
    {TrainingSteps::Source::stack, "stack"},
    {TrainingSteps::Source::sizes, "sizes"}};
[[nodiscard]] constexpr std::string_view name_of(TrainingSteps::Source source) {
  return name_in(kStepSourceNames, source);
}

/// Looks at the device with the most allocations; the steps hold for all devices. Takes O(n log n) for n blocks.
[[nodiscard]] TrainingSteps find_training_steps(const Store& store);

/// Steps that begin at `times_ns`, in increasing order. Events at exactly that time belong to the step before, as for
/// --at.
[[nodiscard]] TrainingSteps given_training_steps(const Store& store, std::span<const std::uint64_t> times_ns);

}  // namespace tidemark
