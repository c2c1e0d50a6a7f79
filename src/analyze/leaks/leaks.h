// Memory that grows from step to step of the training loop and is not given back: which stacks, and how fast.
//
// A leak is growth that survives at the same phase of successive steps after warm-up, attributed to a stack. What each
// step left behind is counted at the last step's start: blocks born in it that are still there and older than blocks of
// that stack get where they are freed. docs/commands.md states the criterion.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "analyze/common/recording.h"
#include "analyze/common/stack_names.h"
#include "analyze/leaks/growth.h"
#include "analyze/steps/training_steps.h"
#include "base/result.h"
#include "store/store.h"
#include "store/symbols.h"

namespace tidemark {

struct LeakOptions {
  std::optional<std::string> device;          ///< only this one: "cuda:0"
  std::size_t top = 10;                       ///< stacks to list; 0 = all
  std::optional<std::uint32_t> warmup_steps;  ///< steps that may leave anything; none: a tenth of them, at least 2
  std::vector<std::uint64_t> step_starts_ns;  ///< when steps begin, increasing; empty: found in the recording
};

enum class LeakVerdict : std::uint8_t { leak, no_leak, insufficient_data };

/// Why there is not enough to say.
enum class LeakDoubt : std::uint8_t { none, no_events, no_steps, too_few_steps };

/// The blocks of a stack on one device; blocks without a stack go by the size asked for.
struct LeakPlace {
  Device device;
  StackId stack_id;
  NamedStack stack;
  std::optional<std::uint64_t> requested_bytes;  ///< only blocks asked for with this size; none: of all sizes
  Growth growth;
  std::uint64_t held_bytes = 0;  ///< at the last step's start, in blocks born after warm-up
  std::uint64_t held_blocks = 0;
  std::uint64_t first_step_ns = 0;  ///< when growth.first_step began
  std::uint64_t last_step_ns = 0;
};

struct Leaks {
  RecordingInfo recording;
  LeakVerdict verdict = LeakVerdict::insufficient_data;
  LeakDoubt doubt = LeakDoubt::none;  ///< none unless the verdict is insufficient_data
  TrainingSteps steps;
  NamedStack anchor;                ///< of steps.anchor
  std::optional<std::string> mark;  ///< text of steps.mark
  std::uint32_t warmup_steps = 0;
  std::uint32_t judged_steps = 0;  ///< steps after warm-up that could leave something, at most
  std::uint64_t leak_count = 0;    ///< all, also those not listed
  double bytes_per_step = 0;       ///< of all leaks
  std::vector<LeakPlace> leaks;    ///< fastest first
  std::uint64_t growth_count = 0;
  std::vector<LeakPlace> growths;  ///< what grew but is no leak by the criterion, and why; most bytes held first
};

/// Fails when the device asked for is not in the recording, or when step_starts_ns does not increase.
Result<Leaks> analyze_leaks(const Store& store, Symbols& symbols, const LeakOptions& options);

}  // namespace tidemark
