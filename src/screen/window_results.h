// What the analyses say of the last part of a recording that is under way.
#pragma once

#include "live/sliding_window.h"
#include "screen/recorded_process.h"
#include "trace/definitions.h"

namespace tidemark::screen {

/// Fills holders and findings. Takes time that grows with the window's events.
void fill_results(RecordedProcess& process, const SlidingWindow& window, const Definitions& definitions);

}  // namespace tidemark::screen
