// When the steps of the training loop begin: given by the caller, marked by the program, or detected from repetition.
//
// Marks come first (annotated_steps). If they are not sufficient, two clocks are tried. (1) Runs of allocations made
// below torch/optim: one run is one optimizer step. (2) An allocation that happens once in a step: of a stack or, if
// blocks have no stacks, of four sizes in a row. Of all such anchors, the one with the most regular repetition of
// everything else between its occurrences is used. Only anchors that occur all over the run count, which excludes
// repetition inside one step (layers of one size).
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/enum_names.h"
#include "store/store.h"

namespace tidemark {

/// Minimum number of occurrences of a training step, from names or from allocations.
inline constexpr std::size_t kFewestSteps = 4;

struct AnnotatedSteps {
  std::vector<std::uint64_t> starts_ns;  ///< increasing; empty: no name marks steps
  StringId name;                         ///< of the first
  /// They are calls of an optimizer, of which a step may have several; otherwise the names contain "step".
  bool of_optimizer = false;
};

/// The steps that `tidemark plan` counted in the program ("Tidemark.step#2"), however few. Otherwise ranges or marks
/// that occur at least kFewestSteps times and are named, whatever number follows, in this order of preference: as
/// PyTorch's profiler does ("ProfilerStep#12"), as a step ("step", "train_step 7", "iteration", "batch"), or as
/// PyTorch's optimizers do ("Optimizer.step#AdamW.step").
[[nodiscard]] AnnotatedSteps annotated_steps(const Definitions& definitions);

struct TrainingSteps {
  enum class Source : std::uint8_t {
    none,        ///< no repetition found
    given,       ///< by the caller
    annotation,  ///< a step begins at `mark`
    optimizer,   ///< a step begins with the optimizer (first allocation below torch/optim)
    stack,       ///< a step begins with the allocation of `anchor`
    sizes,       ///< a step begins with the fourth of four sizes in a row
  };
  struct Start {
    std::uint64_t time_ns = 0;
    std::uint64_t event_count = 0;  ///< how many of Store::live_changes happened before
  };

  Source source = Source::none;
  std::vector<Start> starts;   ///< in order of time; the end of the last step is unknown
  StackId anchor;              ///< Source::stack: the allocation at the start of a step
  StringId mark;               ///< Source::annotation: the first name of the marks at the start of a step
  bool last_is_empty = false;  ///< nothing was allocated after the last start: it only ends the step before
  double regularity = 0;  ///< 0 to 1: similarity of the steps, by step_score(), or by 1 / (1 + cv^2) for sizes, where
                          ///< cv is the coefficient of variation of the allocations per step; 0 if steps are given or
                          ///< not found

  /// Number of steps with allocations.
  [[nodiscard]] std::size_t count() const { return starts.size() - (last_is_empty ? 1 : 0); }

  /// How many steps began before this change (an index into Store::live_changes): the number of the step that it is in,
  /// from 1; 0 before the first.
  [[nodiscard]] std::size_t begun_by(std::uint64_t change) const {
    return static_cast<std::size_t>(std::ranges::upper_bound(starts, change, {}, &Start::event_count) - starts.begin());
  }
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

struct LeadIn {
  std::uint64_t end_ns = 0;    ///< births before this time are of such blocks; 0: none
  std::uint64_t began_ns = 0;  ///< when the window began, since the beginning of the recording
  std::uint64_t whole_ns = 0;  ///< how long the recording was until the window's end
};

/// For a file of a flight recorder, with a window that begins at its time 0, or for a SlidingWindow, with the
/// recording's times.
[[nodiscard]] inline LeadIn lead_in_of(const Store& store) {
  if (store.window_began_ns) return {1, *store.window_began_ns, *store.window_began_ns + store.end_ns};
  if (store.pauses.empty() || store.pauses.front().begin_ns != 0 || store.live_changes.empty()) return {};
  const std::uint64_t end_ns = store.pauses.front().end_ns;
  if (store.live_changes.front().time_ns >= end_ns) return {};  // a program that began without being recorded
  return {end_ns, end_ns, store.end_ns};
}

/// An allocation that may mark steps.
struct StepKey {
  std::uint64_t count = 0;
  std::size_t first = 0;      ///< its first position in the sequence
  double mean_live = 0;       ///< bytes alive on the device before its allocations, on average
  bool anchor = false;        ///< whether a step may begin with it
  std::uint16_t deciles = 0;  ///< one bit for each tenth of the sequence that contains it
};

/// One occurrence of a key.
struct Occurrence {
  std::uint32_t position = 0;  ///< into KeySequence::blocks
  std::uint32_t key = 0;       ///< index into KeySequence::keys
};

struct KeySequence {
  bool by_stack = false;                ///< keys are stacks; otherwise four sizes in a row
  std::vector<BlockId> blocks;          ///< of the device, in order of birth; without the initial blocks of a window
  std::vector<std::uint64_t> live;      ///< bytes alive on the device before each of them
  std::vector<StepKey> keys;            ///< only keys that occur all over the sequence
  std::vector<Occurrence> occurrences;  ///< of these keys, in order
};

[[nodiscard]] KeySequence make_key_sequence(const Store& store, std::size_t device);

/// Similarity of the periods between successive boundaries: 0 to 1, the geometric mean of two shares, of keys and of
/// occurrences. A key counts with the share of periods in which it occurs as often as in most periods, or by as many
/// times more than in the period before as in most, and not at all below 70%. `boundaries` are positions in increasing
/// order, at least two.
[[nodiscard]] double step_score(const KeySequence& sequence, const std::vector<std::uint32_t>& boundaries);

}  // namespace tidemark
