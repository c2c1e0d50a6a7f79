// The program that replays requests with PyTorch: replay.py as the build embeds it.
#pragma once

#include <string_view>

namespace tidemark {

extern const std::string_view kReplayScript;

}  // namespace tidemark
