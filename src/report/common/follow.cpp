#include "report/common/follow.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/units.h"
#include "query/words/printable.h"

namespace tidemark {
namespace {

constexpr std::uint64_t kWorthSaying = std::uint64_t{1} << 20;  // bytes that are not read yet

const char* state_text(FollowState state) {
  switch (state) {
    case FollowState::growing:
      return "in progress";
    case FollowState::ended:
      return "ended";
    case FollowState::recorder_gone:
      return "the recorder is gone, the recording has no end";
    case FollowState::changed:
      return "changed or deleted before all of it was read";
  }
  return "";
}

}  // namespace

std::string follow_title(const std::string& path, FollowState state, std::uint64_t events, std::uint64_t end_ns,
                         std::uint64_t behind_bytes) {
  std::string text = fmt::format("{}: {}, {} events, {}", printable(path), state_text(state), format_count(events),
                                 format_duration_ns(end_ns));
  if (behind_bytes >= kWorthSaying) text += fmt::format("; {} to be read", format_bytes(behind_bytes));
  return text;
}

std::string live_recordings_text(const std::vector<LiveRecording>& recordings) {
  if (recordings.empty()) {
    return "no recording of this user is in progress on this machine; name its file, or start one with tidemark run";
  }
  constexpr std::size_t kMaxListed = 8;
  std::vector<std::string> names;
  for (std::size_t index = 0; index < std::min(recordings.size(), kMaxListed); ++index) {
    const LiveRecording& recording = recordings[index];
    names.push_back(fmt::format("{} ({}{}, {})", recording.pid,
                                recording.rank ? fmt::format("rank {}, ", *recording.rank) : "",
                                printable(recording.command), printable(recording.path)));
  }
  const std::size_t more = recordings.size() - names.size();
  return fmt::format("recordings in progress: {}{}", fmt::join(names, ", "),
                     more == 0 ? "" : fmt::format(" and {} more", more));
}

std::string more_lines_text(std::size_t lines) {
  return fmt::format("... and {} more lines", format_count(lines));
}

}  // namespace tidemark
