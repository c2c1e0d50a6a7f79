// Labelled runs from a seed: the kinds that a monitor must distinguish, with all other properties random.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "labelled_run.h"

namespace tidemark::detectors {

/// The names of all kinds: five leaks with three slopes each ("leak_hooks_fast"), growth that is no leak, and healthy
/// runs.
[[nodiscard]] std::vector<std::string_view> kinds();

/// Deterministic on every machine. `number`: among the runs of that kind.
[[nodiscard]] LabelledRun generate(std::string_view kind, std::uint64_t seed, std::uint64_t number);

}  // namespace tidemark::detectors
