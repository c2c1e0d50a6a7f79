// Makes an agent's messages from the states of its monitor.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "cluster/protocol.h"
#include "monitor/engine.h"
#include "monitor/state_codec.h"

namespace tidemark {

/// One thread at a time.
class StateSender {
 public:
  /// A full state this often, so that a coordinator that was started meanwhile, or has lost a message without being
  /// able to ask, recovers.
  static constexpr std::uint64_t kFullEveryNs = 30'000'000'000;

  StateSender(const std::string& node, std::uint64_t instance) : node_(clean_name(node)), instance_(instance) {}

  /// The next message. `elapsed_ns`: since the agent's start.
  [[nodiscard]] std::string next(const MonitorSnapshot& state, std::vector<RankIdentity> ranks,
                                 std::uint64_t elapsed_ns);
  /// The next message will be a full state: the receiver asked for it, or the latest message was not sent.
  void send_full_next() { full_due_ = true; }
  /// The last message.
  [[nodiscard]] std::string leave(std::uint64_t elapsed_ns);

  [[nodiscard]] const std::string& node() const { return node_; }
  [[nodiscard]] std::uint64_t instance() const { return instance_; }

 private:
  /// What all messages have.
  [[nodiscard]] AgentMessage begin(bool full, std::uint64_t elapsed_ns);

  std::string node_;
  std::uint64_t instance_;
  std::uint64_t sequence_ = 0;
  StateEncoder encoder_;
  bool full_due_ = true;
  std::uint64_t full_at_ns_ = 0;
};

}  // namespace tidemark
