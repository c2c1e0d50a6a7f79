// Recordings with samples of the host's memory by part, for the golden tests.
#pragma once

#include <string>

namespace tidemark::testing {

/// Writes into `folder` host.tide, whose job has two DataLoader workers in a control group with a limit, one of which
/// the kernel kills, and host_hostile.tide, with invalid names and sizes.
void write_host_recordings(const std::string& folder);

}  // namespace tidemark::testing
