#include "cluster/protocol.h"

#include <fmt/format.h>
#include <utf8proc.h>

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

using WireType = protozero::pbf_wire_type;

// Fields of an unexpected type are skipped, as unknown ones.
RankIdentity decode_identity(protozero::pbf_message<Identity> fields) {
  RankIdentity identity;
  while (fields.next()) {
    switch (fields.tag_and_type()) {
      case protozero::tag_and_type(Identity::pid, WireType::varint):
        identity.pid = fields.get_int64();
        break;
      case protozero::tag_and_type(Identity::rank, WireType::varint):
        identity.rank = fields.get_uint32();
        break;
      case protozero::tag_and_type(Identity::local_rank, WireType::varint):
        identity.local_rank = fields.get_uint32();
        break;
      case protozero::tag_and_type(Identity::world_size, WireType::varint):
        identity.world_size = fields.get_uint32();
        break;
      case protozero::tag_and_type(Identity::role, WireType::length_delimited): {
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
    switch (fields.tag_and_type()) {
      case protozero::tag_and_type(Envelope::version, WireType::varint):
        version = fields.get_uint32();
        break;
      case protozero::tag_and_type(Envelope::node, WireType::length_delimited): {
        const auto name = fields.get_view();
        message.node = clean_name({name.data(), name.size()});
        break;
      }
      case protozero::tag_and_type(Envelope::instance, WireType::fixed64):
        message.instance = fields.get_fixed64();
        break;
      case protozero::tag_and_type(Envelope::sequence, WireType::varint):
        message.sequence = fields.get_uint64();
        break;
      case protozero::tag_and_type(Envelope::full, WireType::varint):
        message.full = fields.get_bool();
        break;
      case protozero::tag_and_type(Envelope::elapsed_ns, WireType::varint):
        message.elapsed_ns = fields.get_uint64();
        break;
      case protozero::tag_and_type(Envelope::leaving, WireType::varint):
        message.leaving = fields.get_bool();
        break;
      case protozero::tag_and_type(Envelope::rank, WireType::length_delimited):
        if (message.ranks.size() == AgentMessage::kMaxRanks) return Error{"the message has too many ranks"};
        message.ranks.push_back(decode_identity(fields.get_message()));
        break;
      case protozero::tag_and_type(Envelope::state, WireType::length_delimited):
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

// Controls, and characters that hide or reorder text or break lines.
bool is_shown(utf8proc_int32_t character) {
  switch (utf8proc_category(character)) {
    case UTF8PROC_CATEGORY_CC:
    case UTF8PROC_CATEGORY_CF:
    case UTF8PROC_CATEGORY_ZL:
    case UTF8PROC_CATEGORY_ZP:
      return false;
    default:
      return true;
  }
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

std::string clean_name(std::string_view name, std::size_t max_bytes) {
  std::string clean;
  while (!name.empty() && clean.size() < max_bytes) {
    utf8proc_int32_t character = 0;
    const utf8proc_ssize_t read = utf8proc_iterate(reinterpret_cast<const utf8proc_uint8_t*>(name.data()),
                                                   static_cast<utf8proc_ssize_t>(name.size()), &character);
    const std::size_t length = read > 0 ? static_cast<std::size_t>(read) : 0;  // 0: not UTF-8
    if (clean.size() + length > max_bytes) break;
    if (length != 0 && is_shown(character)) {
      clean += name.substr(0, length);
    } else {
      clean += '?';
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
