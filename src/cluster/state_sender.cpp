#include "cluster/state_sender.h"

namespace tidemark {

AgentMessage StateSender::begin(bool full, std::uint64_t elapsed_ns) {
  AgentMessage message;
  message.node = node_;
  message.instance = instance_;
  message.sequence = ++sequence_;
  message.full = full;
  message.elapsed_ns = elapsed_ns;
  return message;
}

std::string StateSender::next(const MonitorSnapshot& state, std::vector<RankIdentity> ranks, std::uint64_t elapsed_ns) {
  const bool full = full_due_ || elapsed_ns - full_at_ns_ >= kFullEveryNs;
  AgentMessage message = begin(full, elapsed_ns);
  message.ranks = std::move(ranks);
  message.state = full ? encoder_.full(state) : encoder_.changes(state);
  if (full) {
    full_due_ = false;
    full_at_ns_ = elapsed_ns;
  }
  return encode(message);
}

std::string StateSender::leave(std::uint64_t elapsed_ns) {
  AgentMessage message = begin(true, elapsed_ns);
  message.leaving = true;
  return encode(message);
}

}  // namespace tidemark
