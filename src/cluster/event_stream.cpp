#include "cluster/event_stream.h"

#include <fmt/format.h>

#include <cstdint>
#include <nlohmann/json.hpp>

#include "cluster/event.h"
#include "cluster/protocol.h"

namespace tidemark {
namespace {

using StreamJson = nlohmann::ordered_json;

constexpr std::chrono::seconds kAskServerAgain{2};
constexpr std::chrono::seconds kRedeliver{10};  // what the coordinator has not acknowledged
constexpr std::size_t kMaxUnacknowledged = 512;
constexpr const char* kConsumer = "coordinator";

std::int64_t nanoseconds(std::chrono::nanoseconds time) {
  return time.count();
}

}  // namespace

std::string EventStream::name() const {
  return fmt::format("tidemark-{}-events", subject_token(job_));
}

std::string EventStream::reply(std::string_view of) const {
  return fmt::format("tidemark.{}.setup.{}", subject_token(job_), of);
}

std::string EventStream::reply_subjects() const {
  return reply("*");
}

std::optional<EventStream::Request> EventStream::next(bool is_connected, Clock::time_point now) {
  if (is_connected && !was_connected_) {
    state_ = State::no_stream;
    asked_.reset();
  }
  was_connected_ = is_connected;
  if (!is_connected || state_ == State::ready || (asked_ && now - *asked_ < kAskServerAgain)) return std::nullopt;
  asked_ = now;
  if (state_ == State::no_stream) {
    const StreamJson stream = {{"name", name()},
                               {"subjects", StreamJson::array({all_events_subject(job_)})},
                               {"retention", "limits"},
                               {"storage", "file"},
                               {"discard", "old"},
                               {"max_consumers", -1},
                               {"max_msgs", -1},
                               {"max_bytes", kMaxBytes},
                               {"max_age", nanoseconds(kMaxAge)},
                               {"max_msg_size", EventMessage::kMaxBytes},
                               {"duplicate_window", nanoseconds(kDuplicates)},
                               {"num_replicas", 1}};
    return Request{"$JS.API.STREAM.CREATE." + name(), stream.dump(), reply("stream")};
  }
  const StreamJson consumer = {{"stream_name", name()},
                               {"config",
                                {{"durable_name", kConsumer},
                                 {"deliver_subject", deliver_subject(job_)},
                                 {"deliver_policy", "all"},
                                 {"ack_policy", "explicit"},
                                 {"ack_wait", nanoseconds(kRedeliver)},
                                 {"max_deliver", -1},
                                 {"max_ack_pending", kMaxUnacknowledged},
                                 {"replay_policy", "instant"}}}};
  return Request{fmt::format("$JS.API.CONSUMER.DURABLE.CREATE.{}.{}", name(), kConsumer), consumer.dump(),
                 reply("consumer")};
}

void EventStream::take_answer(std::string_view reply_subject, std::string_view answer) {
  const bool is_stream = reply_subject == reply("stream");
  const State expected = is_stream ? State::no_stream : State::no_consumer;
  if (state_ != expected) return;
  const StreamJson json = StreamJson::parse(answer, nullptr, false);
  if (!json.is_object()) {
    problem_ = "the server has no JetStream, which keeps events";
    return;
  }
  if (const auto error = json.find("error"); error != json.end()) {
    const auto description = error->is_object() ? error->find("description") : error->end();
    const bool is_text = error->is_object() && description != error->end() && description->is_string();
    problem_ = "the server cannot keep events: " + clean_name(is_text ? description->get<std::string>() : "unknown");
    return;
  }
  problem_.clear();
  asked_.reset();
  state_ = is_stream ? State::no_consumer : State::ready;
}

}  // namespace tidemark
