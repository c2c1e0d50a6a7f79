#include "collect/recorder/notices.h"

#include <fmt/format.h>

#include <string_view>

namespace tidemark {
namespace {

constexpr std::size_t kMaxLines = 3;

// By kind; empty where the end of a run tells the total.
constexpr std::string_view kOthers[] = {
    "",
    "recordings that stopped",
    "recordings that reached --max-size",
    "processes still running, whose recordings were ended",
};

}  // namespace

void Notices::say(Kind kind, const std::string& message) {
  if (counts_[static_cast<std::size_t>(kind)]++ < kMaxLines) say_(message);
}

void Notices::say_others() {
  for (std::size_t kind = 0; kind < counts_.size(); ++kind) {
    if (counts_[kind] > kMaxLines && !kOthers[kind].empty()) {
      say_(fmt::format("more {}: {}", kOthers[kind], counts_[kind] - kMaxLines));
    }
    counts_[kind] = 0;
  }
}

}  // namespace tidemark
