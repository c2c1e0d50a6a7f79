// The messages between the agents of a job's nodes and its coordinator, and the subjects they are published to.
//
//   tidemark.JOB.state.NODE   an AgentMessage of that node, once a second
//   tidemark.JOB.ask.NODE     empty: the agent's next message shall be a full state
//
// An AgentMessage is a protobuf message around a message of StateEncoder (monitor/state_codec.h), which holds the
// machine's state. The envelope tells losses and duplicates apart from damage, and two agents of one name from each
// other.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace tidemark {

/// What the environment of a process says of its place in the job.
struct RankIdentity {
  std::int64_t pid = -1;
  std::optional<std::uint32_t> rank;
  std::optional<std::uint32_t> local_rank;
  std::optional<std::uint32_t> world_size;
  std::string role;  ///< "pipeline 0"; empty: unknown

  bool operator==(const RankIdentity&) const = default;
};

struct AgentMessage {
  static constexpr std::size_t kMaxBytes = std::size_t{4}
                                           << 20;    ///< the largest that the coordinator's server passes on
  static constexpr std::size_t kMaxNameBytes = 255;  ///< of a node, a role
  static constexpr std::size_t kMaxRanks = 1024;     ///< of a node

  std::string node;              ///< printable
  std::uint64_t instance = 0;    ///< random, of one start of an agent; never 0
  std::uint64_t sequence = 0;    ///< from 1
  bool full = false;             ///< `state` does not depend on earlier messages
  std::uint64_t elapsed_ns = 0;  ///< since the agent's start, by its steady clock
  bool leaving = false;          ///< the last message: the agent was stopped. `state` is empty
  std::vector<RankIdentity> ranks;
  std::string state;  ///< for StateDecoder

  bool operator==(const AgentMessage&) const = default;
};

[[nodiscard]] std::string encode(const AgentMessage& message);

/// Hostile input: the error says what is wrong; names come out without control characters.
[[nodiscard]] Result<AgentMessage> decode_agent_message(std::string_view bytes);

/// A name as one token of a subject: at most 64 letters, digits, '-' and '_'. Different names have different tokens,
/// except for collisions of a 32-bit hash of names that have other characters.
[[nodiscard]] std::string subject_token(std::string_view name);

[[nodiscard]] std::string state_subject(std::string_view job, std::string_view node);
[[nodiscard]] std::string ask_subject(std::string_view job, std::string_view node);
/// The states of all nodes.
[[nodiscard]] std::string all_states_subject(std::string_view job);

/// At most `max_bytes` bytes of UTF-8; control characters, characters that hide or reorder text, and
/// broken bytes become '?'. Never empty.
[[nodiscard]] std::string clean_name(std::string_view name, std::size_t max_bytes = AgentMessage::kMaxNameBytes);

}  // namespace tidemark
