// Labelled runs from a seed: the kinds that a monitor must tell apart, with everything else drawn at random.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "labelled_run.h"

namespace tidemark::detectors {

/// The names of all kinds: five leaks with three slopes each ("leak_hooks_fast"), growth that is no leak, and what is
/// healthy.
[[nodiscard]] std::vector<std::string_view> kinds();

/// The same run for the same three, everywhere. `number`: of the runs of that kind.
[[nodiscard]] LabelledRun generate(std::string_view kind, std::uint64_t seed, std::uint64_t number);

}  // namespace tidemark::detectors
