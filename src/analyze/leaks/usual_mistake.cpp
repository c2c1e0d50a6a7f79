#include "analyze/leaks/usual_mistake.h"

#include <algorithm>
#include <array>
#include <cctype>

namespace tidemark {
namespace {

// Parts of the names that programs give to what they keep.
constexpr std::array kMetricNames = {"metric", "score", "acc",    "correct", "pred",
                                     "output", "logit", "result", "eval",    "stat"};
constexpr std::array kCacheNames = {"cache", "memo"};
constexpr std::string_view kHookName = "hook";

std::string lower(std::string_view text) {
  std::string result(text);
  std::ranges::transform(result, result.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return result;
}

template <typename Names>
bool has_any(std::string_view text, const Names& names) {
  return std::ranges::any_of(names, [&](std::string_view name) { return text.find(name) != text.npos; });
}

// "__main__.losses[12]" of "__main__.losses[12].grad_fn → (1 node) → …": what keeps the graph.
std::string_view before_graph(std::string_view chain) {
  return chain.substr(0, chain.find(".grad_fn"));
}

UsualMistake mistake_of(std::string_view written, LeakObjectKind object) {
  const std::string chain = lower(written);
  const std::string_view keeper = before_graph(chain);
  const bool is_graph = keeper.size() < chain.size();
  if (keeper.find(kHookName) != keeper.npos) return UsualMistake::capturing_hook;
  const bool is_element = keeper.find('[') != keeper.npos || keeper.find("deque") != keeper.npos;
  const UsualMistake with_graph =
      has_any(keeper, kMetricNames) ? UsualMistake::metrics_not_detached : UsualMistake::losses_with_graph;
  if (is_graph) return with_graph;
  if (has_any(keeper, kCacheNames)) return UsualMistake::unbounded_cache;
  if (!is_element) return UsualMistake::none;
  // The chain to the tensor that a graph ends in does not go through the graph.
  return object == LeakObjectKind::autograd_graph ? with_graph : UsualMistake::growing_container;
}

}  // namespace

MatchedMistake match_usual_mistake(const LeakEvidence& evidence) {
  for (const std::string& chain : evidence.chains) {
    const UsualMistake mistake = mistake_of(chain, evidence.object);
    if (mistake != UsualMistake::none) return {mistake, Confidence::exact};
  }
  for (const std::string& function : evidence.functions) {
    const std::string name = lower(function);
    if (name.find(kHookName) != name.npos) return {UsualMistake::capturing_hook, Confidence::derived};
    if (has_any(name, kCacheNames)) return {UsualMistake::unbounded_cache, Confidence::derived};
  }
  if (evidence.object == LeakObjectKind::autograd_graph) return {UsualMistake::losses_with_graph, Confidence::derived};
  return {};
}

}  // namespace tidemark
