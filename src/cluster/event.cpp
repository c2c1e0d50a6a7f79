#include "cluster/event.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <nlohmann/json.hpp>
#include <protozero/pbf_builder.hpp>
#include <protozero/pbf_message.hpp>
#include <utility>

#include "cluster/protocol.h"
#include "cluster/report_codec.h"

namespace tidemark {
namespace {

constexpr std::uint32_t kEventVersion = 1;
constexpr std::size_t kMaxFileBytes = std::size_t{8} << 20;

enum class EventField : protozero::pbf_tag_type { version = 1, instance = 2, number = 3, event = 4 };

}  // namespace

std::string EventMessage::id() const {
  return fmt::format("{:016x}-{}", instance, number);
}

std::string encode(const EventMessage& message) {
  std::string bytes;
  protozero::pbf_builder<EventField> fields(bytes);
  fields.add_uint32(EventField::version, kEventVersion);
  fields.add_fixed64(EventField::instance, message.instance);
  fields.add_uint64(EventField::number, message.number);
  fields.add_bytes(EventField::event, encode(message.event));
  return bytes;
}

Result<EventMessage> decode_event_message(std::string_view bytes) {
  if (bytes.size() > EventMessage::kMaxBytes) return Error{fmt::format("an event has {} bytes", bytes.size())};
  EventMessage message;
  std::uint32_t version = 0;
  try {
    protozero::pbf_message<EventField> fields(bytes.data(), bytes.size());
    while (fields.next()) {
      switch (fields.tag_and_type()) {
        case protozero::tag_and_type(EventField::version, protozero::pbf_wire_type::varint):
          version = fields.get_uint32();
          break;
        case protozero::tag_and_type(EventField::instance, protozero::pbf_wire_type::fixed64):
          message.instance = fields.get_fixed64();
          break;
        case protozero::tag_and_type(EventField::number, protozero::pbf_wire_type::varint):
          message.number = fields.get_uint64();
          break;
        case protozero::tag_and_type(EventField::event, protozero::pbf_wire_type::length_delimited): {
          const auto view = fields.get_view();
          auto event = decode_event({view.data(), view.size()});
          if (!event) return event.error();
          message.event = std::move(event).value();
          break;
        }
        default:
          fields.skip();
      }
    }
  } catch (const std::exception&) {
    return Error{"an event is damaged"};
  }
  if (version != kEventVersion)
    return Error{"an event is of another version: update the older of agent and coordinator"};
  if (message.instance == 0 || message.number == 0) return Error{"an event lacks a field"};
  return message;
}

std::string event_subject(std::string_view job, std::string_view node) {
  return fmt::format("tidemark.{}.event.{}", subject_token(job), subject_token(node));
}

std::string all_events_subject(std::string_view job) {
  return fmt::format("tidemark.{}.event.*", subject_token(job));
}

std::string stored_subject(std::string_view job, std::string_view node, std::string_view id) {
  return fmt::format("tidemark.{}.stored.{}.{}", subject_token(job), subject_token(node), id);
}

std::string deliver_subject(std::string_view job) {
  return fmt::format("tidemark.{}.deliver", subject_token(job));
}

// Each with its length before it: two bytes, little-endian.
Result<void> EventOutbox::keep_in(const std::string& path) {
  ScopedFd file(::open(path.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, S_IRUSR | S_IWUSR));
  if (!file) return Error{fmt::format("{}: cannot be opened: {}", path, std::strerror(errno))};
  if (::flock(file.get(), LOCK_EX | LOCK_NB) != 0) return Error{path + ": another agent of this node uses it"};
  std::string bytes(kMaxFileBytes, '\0');
  bytes.resize(static_cast<std::size_t>(std::max<ssize_t>(::pread(file.get(), bytes.data(), bytes.size(), 0), 0)));
  std::string_view rest = bytes;
  while (rest.size() > 2 && waiting_.size() < kMaxWaiting) {
    const std::size_t length =
        static_cast<unsigned char>(rest[0]) + (std::size_t{static_cast<unsigned char>(rest[1])} << 8);
    auto message = decode_event_message(rest.substr(2, length));
    if (!message) break;  // the end of one that was being written
    waiting_.push_back({std::move(message).value()});
    rest.remove_prefix(std::min(length + 2, rest.size()));
  }
  file_ = std::move(file);
  write_file();
  return {};
}

void EventOutbox::write_file() {
  if (!file_ || ::ftruncate(file_.get(), 0) != 0) return;
  file_bytes_ = 0;
  for (const Waiting& waiting : waiting_) append(waiting.message);
}

// A full disk costs only what a killed agent could not send.
void EventOutbox::append(const EventMessage& message) {
  if (!file_) return;
  const std::string bytes = encode(message);
  std::string record = {static_cast<char>(bytes.size() & 0xFF), static_cast<char>(bytes.size() >> 8)};
  record += bytes;
  const ssize_t written = ::write(file_.get(), record.data(), record.size());
  file_bytes_ += written > 0 ? static_cast<std::size_t>(written) : 0;
}

void EventOutbox::add(JobEvent event) {
  event.text = clean_name(event.text, JobEvent::kMaxTextBytes);
  if (waiting_.size() == kMaxWaiting) {
    waiting_.pop_front();
    ++dropped_;
  }
  waiting_.push_back({{instance_, ++number_, std::move(event)}});
  append(waiting_.back().message);
  if (file_bytes_ > kMaxFileBytes / 2) write_file();
}

std::optional<EventMessage> EventOutbox::next(Clock::time_point now) {
  const std::size_t most = std::min(waiting_.size(), kMaxAtOnce);
  for (std::size_t n = 0; n < most; ++n) {
    Waiting& waiting = waiting_[n];
    if (waiting.sent && now - *waiting.sent < kSendAgain) continue;
    waiting.sent = now;
    return waiting.message;
  }
  return std::nullopt;
}

// {"stream": "…", "seq": 5}, or {"error": {…}}; empty: no stream is there.
void EventOutbox::take_answer(std::string_view id, std::string_view answer) {
  const auto json = nlohmann::json::parse(answer, nullptr, false);
  if (json.is_object() && json.contains("seq") && !json.contains("error")) remove(id);
}

void EventOutbox::remove(std::string_view id) {
  const std::size_t removed =
      std::erase_if(waiting_, [id](const Waiting& waiting) { return waiting.message.id() == id; });
  if (removed > 0 && waiting_.empty() && file_bytes_ > 0) write_file();
}

}  // namespace tidemark
