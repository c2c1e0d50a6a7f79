// Recordings with samples of the host by what holds it, for the golden tests.
#pragma once

#include <string>

namespace tidemark::testing {

/// Writes host.tide, whose job has two DataLoader workers in a control group with a limit, of which the kernel kills
/// one, and host_hostile.tide, whose names and sizes make no sense, into `folder`.
void write_host_recordings(const std::string& folder);

}  // namespace tidemark::testing
