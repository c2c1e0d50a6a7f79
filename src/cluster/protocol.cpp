#include "cluster/protocol.h"

#include <fmt/format.h>

#include <algorithm>
#include <protozero/pbf_builder.hpp>
#include <protozero/pbf_message.hpp>

#include "base/crc32c.h"

namespace tidemark {
namespace {

constexpr std::uint32_t kProtocolVersion = 1;
constexpr std::uint64_t kMaxElapsedNs = std::uint64_t{1} << 60;  // 36 years
constexpr std::size_t kMaxTokenLetters = 64;
constexpr std::size_t kHashLetters = 9;  // "-" and 8 digits

// Numbers of fields are never used for another meaning; unknown ones are skipped.
enum class Envelope : protozero::pbf_tag_type {
  version = 1,
  node = 2,
  instance = 3,
  sequence = 4,
  full = 5,
  elapsed_ns = 6,
  leaving = 7,
  rank = 8,
  state = 9
};
enum class Identity : protozero::pbf_tag_type { pid = 1, rank = 2, local_rank = 3, world_size = 4, role = 5 };

RankIdentity decode_identity(protozero::pbf_message<Identity> fields) {
  RankIdentity identity;
  while (fields.next()) {
    switch (fields.tag()) {
      case Identity::pid:
        identity.pid = fields.get_int64();
        break;
      case Identity::rank:
        identity.rank = fields.get_uint32();
        break;
      case Identity::local_rank:
        identity.local_rank = fields.get_uint32();
        break;
      case Identity::world_size:
        identity.world_size = fields.get_uint32();
        break;
      case Identity::role: {
        const auto role = fields.get_view();
        identity.role = role.empty() ? "" : clean_name({role.data(), role.size()});
        break;
      }
      default:
        fields.skip();
    }
  }
  return identity;
}

// Throws protozero's exceptions for bytes that are not protobuf.
Result<AgentMessage> decode_fields(std::string_view bytes) {
  AgentMessage message;
  std::uint32_t version = 0;
  protozero::pbf_message<Envelope> fields(bytes.data(), bytes.size());
  while (fields.next()) {
    switch (fields.tag()) {
      case Envelope::version:
        version = fields.get_uint32();
        break;
      case Envelope::node: {
        const auto name = fields.get_view();
        message.node = clean_name({name.data(), name.size()});
        break;
      }
      case Envelope::instance:
        message.instance = fields.get_fixed64();
        break;
      case Envelope::sequence:
        message.sequence = fields.get_uint64();
        break;
      case Envelope::full:
        message.full = fields.get_bool();
        break;
      case Envelope::elapsed_ns:
        message.elapsed_ns = fields.get_uint64();
        break;
      case Envelope::leaving:
        message.leaving = fields.get_bool();
        break;
      case Envelope::rank:
        if (message.ranks.size() == AgentMessage::kMaxRanks) return Error{"the message has too many ranks"};
        message.ranks.push_back(decode_identity(fields.get_message()));
        break;
      case Envelope::state:
        message.state = fields.get_string();
        break;
      default:
        fields.skip();
    }
  }
  if (version != kProtocolVersion) {
    return Error{fmt::format("the message has version {}, expected {}: update the older of agent and coordinator",
                             version, kProtocolVersion)};
  }
  if (message.elapsed_ns > kMaxElapsedNs) return Error{"the message is of a time that cannot be"};
  if (message.node.empty() || message.instance == 0 || message.sequence == 0 ||
      message.state.empty() != message.leaving) {
    return Error{"the message lacks a field"};
  }
  return message;
}

// Length of the valid UTF-8 sequence at the beginning of `text`; 0: none.
std::size_t utf8_length(std::string_view text) {
  const auto at = [&](std::size_t n) { return static_cast<unsigned char>(text[n]); };
  const unsigned first = at(0);
  const std::size_t length = first < 0x80   ? 1
                             : first < 0xC2 ? 0
                             : first < 0xE0 ? 2
                             : first < 0xF0 ? 3
                             : first < 0xF5 ? 4
                                            : 0;
  if (length == 0 || length > text.size()) return 0;
  for (std::size_t n = 1; n < length; ++n) {
    if ((at(n) & 0xC0U) != 0x80) return 0;
  }
  return length;
}

}  // namespace

std::string encode(const AgentMessage& message) {
  std::string bytes;
  protozero::pbf_builder<Envelope> fields(bytes);
  fields.add_uint32(Envelope::version, kProtocolVersion);
  fields.add_string(Envelope::node, message.node);
  fields.add_fixed64(Envelope::instance, message.instance);
  fields.add_uint64(Envelope::sequence, message.sequence);
  fields.add_bool(Envelope::full, message.full);
  fields.add_uint64(Envelope::elapsed_ns, message.elapsed_ns);
  if (message.leaving) fields.add_bool(Envelope::leaving, true);
  for (const RankIdentity& identity : message.ranks) {
    protozero::pbf_builder<Identity> rank(fields, Envelope::rank);
    rank.add_int64(Identity::pid, identity.pid);
    if (identity.rank) rank.add_uint32(Identity::rank, *identity.rank);
    if (identity.local_rank) rank.add_uint32(Identity::local_rank, *identity.local_rank);
    if (identity.world_size) rank.add_uint32(Identity::world_size, *identity.world_size);
    if (!identity.role.empty()) rank.add_string(Identity::role, identity.role);
  }
  if (!message.state.empty()) fields.add_bytes(Envelope::state, message.state);
  return bytes;
}

Result<AgentMessage> decode_agent_message(std::string_view bytes) {
  if (bytes.size() > AgentMessage::kMaxBytes) return Error{fmt::format("the message has {} bytes", bytes.size())};
  try {
    return decode_fields(bytes);
  } catch (const protozero::exception& wrong) {
    return Error{fmt::format("the message is no protobuf: {}", wrong.what())};
  }
}

std::string clean_name(std::string_view name) {
  std::string clean;
  while (!name.empty() && clean.size() < AgentMessage::kMaxNameBytes) {
    const std::size_t length = utf8_length(name);
    const auto first = static_cast<unsigned char>(name[0]);
    // U+0080 to U+009F are control characters too; U+200B to U+202E and U+2060 to U+206F reorder or hide text.
    const bool hides = name.starts_with("\xE2\x80") || name.starts_with("\xE2\x81");
    const bool control =
        first < ' ' || first == 0x7F || (first == 0xC2 && length == 2 && static_cast<unsigned char>(name[1]) < 0xA0);
    if (clean.size() + length > AgentMessage::kMaxNameBytes) break;
    if (length == 0 || control || hides) {
      clean += '?';
    } else {
      clean += name.substr(0, length);
    }
    name.remove_prefix(std::max<std::size_t>(length, 1));
  }
  return clean.empty() ? "?" : clean;
}

std::string subject_token(std::string_view name) {
  std::string token;
  bool changed = name.empty();
  for (const char letter : name.substr(0, kMaxTokenLetters)) {
    const bool allowed = (letter >= 'a' && letter <= 'z') || (letter >= 'A' && letter <= 'Z') ||
                         (letter >= '0' && letter <= '9') || letter == '-' || letter == '_';
    token += allowed ? letter : '_';
    changed = changed || !allowed;
  }
  if (!changed && name.size() <= kMaxTokenLetters) return token;
  token.resize(std::min(token.size(), kMaxTokenLetters - kHashLetters));
  const std::uint32_t hash = crc32c({reinterpret_cast<const std::byte*>(name.data()), name.size()});
  return fmt::format("{}-{:08x}", token, hash);
}

std::string state_subject(std::string_view job, std::string_view node) {
  return fmt::format("tidemark.{}.state.{}", subject_token(job), subject_token(node));
}

std::string ask_subject(std::string_view job, std::string_view node) {
  return fmt::format("tidemark.{}.ask.{}", subject_token(job), subject_token(node));
}

std::string all_states_subject(std::string_view job) {
  return fmt::format("tidemark.{}.state.*", subject_token(job));
}

}  // namespace tidemark
