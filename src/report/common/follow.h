// Words for recordings that are followed.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "collect/recorder/live/live_message.h"
#include "follow/follower.h"

namespace tidemark {

/// "run.tide: in progress, 1,234,567 events, 12.3 s": the line above its state at one time. `behind_bytes`: written and
/// not read yet.
[[nodiscard]] std::string follow_title(const std::string& path, FollowState state, std::uint64_t events,
                                       std::uint64_t end_ns, std::uint64_t behind_bytes);

/// "recordings in progress: 4711 (rank 0, python train.py, /data/run.rank0.tide)", or a message that there are none,
/// with advice.
[[nodiscard]] std::string live_recordings_text(const std::vector<LiveRecording>& recordings);

/// "... and 12 more lines", at the end of the screen.
[[nodiscard]] std::string more_lines_text(std::size_t lines);

}  // namespace tidemark
