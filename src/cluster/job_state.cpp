#include "cluster/job_state.h"

#include <algorithm>
#include <utility>

namespace tidemark {
namespace {

constexpr std::uint64_t kSecondNs = 1'000'000'000;
constexpr std::uint64_t kClockWindowNs = 300 * kSecondNs;
constexpr std::uint64_t kStepsNs = 120 * kSecondNs;
constexpr std::uint64_t kMinSteps = 3;
constexpr std::size_t kMaxFormer = 8;
constexpr std::size_t kMaxStepCounts = 512;

std::uint64_t since(std::uint64_t before, std::uint64_t now) {
  return now > before ? now - before : 0;
}

void take_steps(NodeState& node) {
  const MachineState& state = node.decoder.state().state;
  std::map<std::int64_t, StepPace> kept;
  for (const ProcessSteps& steps : state.steps) {
    if (kept.size() == AgentMessage::kMaxRanks) break;
    if (kept.count(steps.pid) != 0) continue;  // of another device: the same steps
    const auto before = node.steps.find(steps.pid);
    StepPace times = before == node.steps.end() ? StepPace() : std::move(before->second);
    times.take(node.elapsed_ns, steps.steps);
    kept.emplace(steps.pid, std::move(times));
  }
  node.steps = std::move(kept);
}

}  // namespace

void ReceiverClock::take(std::uint64_t elapsed_ns, std::uint64_t received_ns) {
  const auto offset = static_cast<std::int64_t>(received_ns - elapsed_ns);
  if (!window_began_ns_) {
    before_ = least_ = offset;
    window_began_ns_ = received_ns;
  } else if (since(*window_began_ns_, received_ns) >= kClockWindowNs) {
    before_ = std::exchange(least_, offset);
    window_began_ns_ = received_ns;
  }
  least_ = std::min(least_, offset);
}

std::uint64_t ReceiverClock::age_ns(std::uint64_t elapsed_ns, std::uint64_t now_ns) const {
  const auto offset = static_cast<std::int64_t>(now_ns - elapsed_ns);
  return static_cast<std::uint64_t>(std::max<std::int64_t>(offset - std::min(least_, before_), 0));
}

void StepPace::take(std::uint64_t elapsed_ns, std::uint64_t steps) {
  if (!seen_.empty() && steps < seen_.back().steps) seen_.clear();  // another process, or another count
  if (seen_.empty() || steps > seen_.back().steps) seen_.push_back({elapsed_ns, steps});
  while (seen_.size() > 1 &&
         (since(seen_.front().elapsed_ns, elapsed_ns) > kStepsNs || seen_.size() > kMaxStepCounts)) {
    seen_.pop_front();
  }
}

std::optional<std::uint64_t> StepPace::steps() const {
  return seen_.empty() ? std::nullopt : std::optional(seen_.back().steps);
}

std::optional<double> StepPace::seconds() const {
  if (seen_.empty()) return std::nullopt;
  const std::uint64_t steps = seen_.back().steps - seen_.front().steps;
  if (steps < kMinSteps) return std::nullopt;
  return static_cast<double>(since(seen_.front().elapsed_ns, seen_.back().elapsed_ns)) / 1e9 /
         static_cast<double>(steps);
}

bool NodeState::has_rival(std::uint64_t now_ns) const {
  return rival_ns && since(*rival_ns, now_ns) < JobState::kOldNs;
}

JobState::Taken JobState::refuse(NodeState* node, std::string problem) {
  ++(node == nullptr ? refused_ : node->refused);
  return {.problem = std::move(problem)};
}

JobState::Taken JobState::ask(NodeState& node, std::uint64_t now_ns) {
  if (node.asked_ns && since(*node.asked_ns, now_ns) < kSecondNs) return {};
  node.asked_ns = now_ns;
  return {.ask = node.name};
}

// The agent that started last counts, as far as this receiver has heard them: one that was killed does not come back.
// Where two of one name go on sending, the earlier one is ignored until the later one falls silent.
bool JobState::choose(NodeState& node, const AgentMessage& message, std::uint64_t now_ns) {
  if (message.instance == node.instance) return true;
  const auto former = std::find(node.former.begin(), node.former.end(), message.instance);
  if (former != node.former.end()) {
    node.rival_ns = now_ns;
    if (!node.left && since(node.heard_ns, now_ns) < kOldNs) return false;
    node.former.erase(former);
  }
  if (node.instance != 0) node.former.push_back(node.instance);
  if (node.former.size() > kMaxFormer) node.former.erase(node.former.begin());
  node.instance = message.instance;
  node.decoder = StateDecoder();
  node.ranks.clear();
  node.steps.clear();
  node.clock = ReceiverClock();
  node.sequence = 0;
  node.elapsed_ns = 0;
  node.heard_ns = now_ns;
  node.left = false;
  return true;
}

JobState::Taken JobState::take(std::string_view token, std::string_view bytes, std::uint64_t now_ns) {
  auto decoded = decode_agent_message(bytes);
  if (!decoded) return refuse(nullptr, decoded.error().message);
  AgentMessage& message = *decoded;
  if (subject_token(message.node) != token) return refuse(nullptr, "the message is of another node than its subject");
  auto at = nodes_.find(message.node);
  if (at == nodes_.end()) {
    if (nodes_.size() == kMaxNodes) return refuse(nullptr, "there are too many nodes");
    if (message.leaving) return {};
    at = nodes_.emplace(message.node, NodeState()).first;
    at->second.name = message.node;
    at->second.allowed_at_ns = now_ns;
  }
  NodeState& node = at->second;

  node.allowed = std::min(NodeState::kBurst,
                          node.allowed + kMaxRate * static_cast<double>(since(node.allowed_at_ns, now_ns)) / 1e9);
  node.allowed_at_ns = now_ns;
  if (node.allowed < 1) return refuse(&node, "the node sends too many messages");
  node.allowed -= 1;

  if (!choose(node, message, now_ns)) return {};
  if (message.sequence <= node.sequence) {
    ++node.repeated;
    return {};
  }
  if (!message.full && message.sequence != node.sequence + 1) return ask(node, now_ns);
  if (message.leaving) {
    node.left = true;
  } else {
    const std::uint64_t larger =
        message.full && message.state.size() > node.state_bytes ? message.state.size() - node.state_bytes : 0;
    if (total_bytes_ + larger > kMaxTotalBytes) return refuse(&node, "the states of all nodes take too much memory");
    if (const auto taken = node.decoder.take(message.state); !taken) {
      Taken refused = ask(node, now_ns);
      refused.problem = refuse(&node, taken.error().message).problem;
      return refused;
    }
    total_bytes_ += larger;
    node.state_bytes += larger;
    node.left = false;
  }
  if (node.sequence != 0) node.lost += message.sequence - node.sequence - 1;
  node.sequence = message.sequence;
  node.heard_ns = now_ns;
  node.elapsed_ns = message.elapsed_ns;
  node.clock.take(message.elapsed_ns, now_ns);
  ++node.taken;
  if (message.leaving) return {.accepted = true};
  node.ranks = std::move(message.ranks);
  take_steps(node);
  return {.accepted = true};
}

}  // namespace tidemark
