#include "cluster/request.h"

#include <fmt/format.h>

#include <algorithm>
#include <protozero/pbf_builder.hpp>
#include <protozero/pbf_message.hpp>

#include "cluster/protocol.h"

namespace tidemark {
namespace {

constexpr std::uint32_t kRequestVersion = 1;

enum class RequestField : protozero::pbf_tag_type { version = 1, id = 2 };
enum class PartField : protozero::pbf_tag_type { number = 1, count = 2, bytes = 3 };

}  // namespace

std::string encode(const Request& request) {
  std::string bytes;
  protozero::pbf_builder<RequestField> fields(bytes);
  fields.add_uint32(RequestField::version, kRequestVersion);
  fields.add_fixed64(RequestField::id, request.id);
  return bytes;
}

Result<Request> decode_request(std::string_view bytes) {
  Request request;
  std::uint32_t version = 0;
  try {
    protozero::pbf_message<RequestField> fields(bytes.data(), bytes.size());
    while (fields.next()) {
      switch (fields.tag_and_type()) {
        case protozero::tag_and_type(RequestField::version, protozero::pbf_wire_type::varint):
          version = fields.get_uint32();
          break;
        case protozero::tag_and_type(RequestField::id, protozero::pbf_wire_type::fixed64):
          request.id = fields.get_fixed64();
          break;
        default:
          fields.skip();
      }
    }
  } catch (const std::exception&) {
    return Error{"a question is damaged"};
  }
  if (version != kRequestVersion || request.id == 0) return Error{"a question is of another version"};
  return request;
}

std::vector<std::string> answer_messages(std::string_view bytes) {
  std::vector<std::string> messages;
  const std::size_t count =
      std::max<std::size_t>((bytes.size() + AnswerParts::kPartBytes - 1) / AnswerParts::kPartBytes, 1);
  for (std::size_t n = 0; n < count; ++n) {
    std::string message;
    protozero::pbf_builder<PartField> fields(message);
    fields.add_uint32(PartField::number, static_cast<std::uint32_t>(n));
    fields.add_uint32(PartField::count, static_cast<std::uint32_t>(count));
    const std::string_view part = bytes.substr(n * AnswerParts::kPartBytes, AnswerParts::kPartBytes);
    fields.add_bytes(PartField::bytes, part.data(), part.size());
    messages.push_back(std::move(message));
  }
  return messages;
}

Result<void> AnswerParts::take(std::string_view message) {
  std::uint32_t number = 0;
  std::uint32_t count = 0;
  std::string bytes;
  try {
    protozero::pbf_message<PartField> fields(message.data(), message.size());
    while (fields.next()) {
      switch (fields.tag_and_type()) {
        case protozero::tag_and_type(PartField::number, protozero::pbf_wire_type::varint):
          number = fields.get_uint32();
          break;
        case protozero::tag_and_type(PartField::count, protozero::pbf_wire_type::varint):
          count = fields.get_uint32();
          break;
        case protozero::tag_and_type(PartField::bytes, protozero::pbf_wire_type::length_delimited):
          bytes = fields.get_string();
          break;
        default:
          fields.skip();
      }
    }
  } catch (const std::exception&) {
    return Error{"the answer is damaged"};
  }
  const bool fits = parts_.empty() || parts_.size() == count;
  if (count == 0 || count > kMaxParts || number >= count || bytes.size() > kPartBytes || !fits) {
    return Error{"the answer is damaged: its parts do not belong together"};
  }
  parts_.resize(count);
  parts_[number] = std::move(bytes);
  return {};
}

std::optional<std::string> AnswerParts::whole() const {
  if (parts_.empty()) return std::nullopt;
  std::string bytes;
  for (const auto& part : parts_) {
    if (!part) return std::nullopt;
    bytes += *part;
  }
  return bytes;
}

std::string report_subject(std::string_view job) {
  return fmt::format("tidemark.{}.report", subject_token(job));
}

std::string answer_subject(std::string_view job, std::uint64_t id) {
  return fmt::format("tidemark.{}.answer.{:016x}", subject_token(job), id);
}

}  // namespace tidemark
