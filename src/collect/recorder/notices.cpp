#include "collect/recorder/notices.h"

#include <fmt/format.h>

#include <string_view>

namespace tidemark {
namespace {

constexpr std::size_t kMost = 3;

// By kind.
constexpr std::string_view kOthers[] = {
    "processes are not recorded",
    "recordings stopped",
    "recordings reached --max-size",
    "processes are still running: their recordings were ended",
};

}  // namespace

void Notices::say(Kind kind, const std::string& message) {
  if (counts_[static_cast<std::size_t>(kind)]++ < kMost) say_(message);
}

void Notices::say_others() {
  for (std::size_t kind = 0; kind < counts_.size(); ++kind) {
    if (counts_[kind] > kMost) say_(fmt::format("{} more {}", counts_[kind] - kMost, kOthers[kind]));
    counts_[kind] = 0;
  }
}

}  // namespace tidemark
