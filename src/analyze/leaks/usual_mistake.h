// Which of the usual mistakes a leak matches, from what keeps its memory.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "analyze/attribution/attribution.h"
#include "analyze/leaks/objects.h"
#include "base/enum_names.h"

namespace tidemark {

enum class UsualMistake : std::uint8_t {
  none,                  ///< nothing tells
  losses_with_graph,     ///< losses kept with the autograd graphs that they end
  metrics_not_detached,  ///< outputs, scores or other metrics, likewise
  capturing_hook,        ///< a hook that keeps the tensors that it is called with
  unbounded_cache,       ///< a dictionary or functools.lru_cache that never forgets
  growing_container,     ///< a list, dictionary, set or deque that only grows
};
inline constexpr EnumName<UsualMistake> kUsualMistakeNames[] = {
    {UsualMistake::none, "none"},
    {UsualMistake::losses_with_graph, "losses_with_graph"},
    {UsualMistake::metrics_not_detached, "metrics_not_detached"},
    {UsualMistake::capturing_hook, "capturing_hook"},
    {UsualMistake::unbounded_cache, "unbounded_cache"},
    {UsualMistake::growing_container, "growing_container"}};
[[nodiscard]] constexpr std::string_view name_of(UsualMistake mistake) {
  return name_in(kUsualMistakeNames, mistake);
}

/// What is known of a source that leaks; views must outlive the call.
struct LeakEvidence {
  LeakObjectKind object = LeakObjectKind::call_site;
  /// References from a root to what is kept, as docs/holders.md writes them: "__main__.losses[12].grad_fn".
  std::span<const std::string> chains;
  std::span<const std::string> functions;  ///< of the stack that allocated it, innermost first
};

struct MatchedMistake {
  UsualMistake mistake = UsualMistake::none;
  Confidence known_as =
      Confidence::unknown;  ///< exact: a reference shows it; derived: from the stack or the kind of object
};

/// Chains decide where there are any, and of these the first that tells.
[[nodiscard]] MatchedMistake match_usual_mistake(const LeakEvidence& evidence);

}  // namespace tidemark
