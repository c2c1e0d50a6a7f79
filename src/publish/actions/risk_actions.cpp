#include "publish/actions/risk_actions.h"

#include <fmt/format.h>

#include <cstddef>
#include <utility>

#include "http/post.h"
#include "publish/actions/command.h"

namespace tidemark {
namespace {

constexpr std::size_t kMaxActionsWaiting = 64;
constexpr std::chrono::milliseconds kPatienceWithActions{5000};  // at the end

}  // namespace

RiskActions::RiskActions(RiskActionOptions options)
    : options_(std::move(options)),
      limit_(options_.interval),
      worker_(kMaxActionsWaiting,
              [this](const std::string& why) { options_.problem(fmt::format("commands and webhooks: {}", why)); }) {}

RiskActions::~RiskActions() {
  worker_.finish(kPatienceWithActions);
}

void RiskActions::tell(const RiskChange& change, const std::function<std::string()>& json) {
  std::string text;
  for (std::size_t index = 0; index < options_.actions.size(); ++index) {
    const RiskAction& action = options_.actions[index];
    if (change.now.level < action.least || change.now.level <= change.before) continue;
    const std::string key = fmt::format("{} {} {}", index, name_of(change.now.level), change.device);
    if (!limit_.allow(key, RateLimit::Clock::now())) continue;
    if (text.empty()) text = json();
    worker_.add([this, &action, text] { act(action, text); });
  }
}

void RiskActions::act(const RiskAction& action, const std::string& json) {
  if (action.url.empty()) {
    const auto ran = run_command(action.command, json, options_.patience, worker_.stopping());
    if (!ran) options_.problem(fmt::format("{}: {}", action.command, ran.error().message));
    return;
  }
  const auto answer =
      post({action.url, json, {"Content-Type: application/json"}, options_.patience}, worker_.stopping());
  if (!answer) {
    options_.problem(answer.error().message);
  } else if (answer->status < 200 || answer->status >= 300) {
    options_.problem(fmt::format("{} answers with status {}", shown_url(action.url), answer->status));
  }
}

}  // namespace tidemark
