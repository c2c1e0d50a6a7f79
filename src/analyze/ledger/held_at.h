// What was held at given times.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "store/store.h"

namespace tidemark {

/// Calls `visit` for each of `times_ns`, which never decrease, with its position and what was held then: what
/// Tally::held gives after the events up to that time.
void visit_held(const Store& store, const std::vector<std::uint64_t>& times_ns,
                const std::function<void(std::size_t, const HeldMemory&)>& visit);

}  // namespace tidemark
