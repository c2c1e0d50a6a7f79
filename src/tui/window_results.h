// What the analyses say of the last part of a recording that is under way.
#pragma once

#include <cstdint>

#include "analyze/attribution/attributed_store.h"
#include "tui/process_results.h"

namespace tidemark::tui {

/// Fills holders and findings from a window that begins at `begin_ns`. Takes time that grows with the window's events.
void fill_results(ProcessResults& process, const AttributedStore& window, std::uint64_t begin_ns);

}  // namespace tidemark::tui
