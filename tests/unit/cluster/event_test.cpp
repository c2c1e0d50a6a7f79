#include "cluster/event.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "cluster/event_stream.h"
#include "temporary_folder.h"

namespace tidemark {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using namespace std::chrono_literals;

JobEvent event(const std::string& text) {
  return {JobEventKind::rank_ended, "b", 1'790'000'000'000'000'000, 3, 4711, "", text};
}

TEST(EventMessage, ComesBackAsItWas) {
  const EventMessage message{0xAB, 7, event("ended")};
  EXPECT_EQ(message.id(), "00000000000000ab-7");
  EXPECT_EQ(decode_event_message(encode(message)).value(), message);
}

TEST(EventMessage, IsCleanAndBounded) {
  EventMessage message{1, 1, event("a\x1b[31m" + std::string(2000, 'x'))};
  message.event.node = "b\n";
  const auto read = decode_event_message(encode(message));
  ASSERT_TRUE(read.ok()) << read.error().message;
  EXPECT_EQ(read->event.node, "b?");
  EXPECT_EQ(read->event.text.substr(0, 6), "a?[31m");
  EXPECT_EQ(read->event.text.size(), JobEvent::kMaxTextBytes);
  message.event.text = std::string(EventMessage::kMaxBytes, 'x');
  EXPECT_FALSE(decode_event_message(encode(message)).ok());
  EXPECT_FALSE(decode_event_message(encode(EventMessage{0, 1, event("")})).ok());
  EXPECT_FALSE(decode_event_message(encode(EventMessage{1, 0, event("")})).ok());
  EXPECT_FALSE(decode_event_message("").ok());
}

class EventOutboxTest : public ::testing::Test {
 protected:
  std::string next() {
    const auto message = outbox_.next(now_);
    return message ? message->event.text : "";
  }

  EventOutbox outbox_{5};
  EventOutbox::Clock::time_point now_;
};

TEST_F(EventOutboxTest, KeepsEventsUntilTheyAreStored) {
  outbox_.add(event("first"));
  outbox_.add(event("second"));
  EXPECT_EQ(next(), "first");
  EXPECT_EQ(next(), "second");
  EXPECT_EQ(next(), "");
  outbox_.take_answer("0000000000000005-1", R"({"stream":"S","seq":12})");
  EXPECT_EQ(outbox_.waiting(), 1U);
  now_ += EventOutbox::kSendAgain;
  EXPECT_EQ(next(), "second");  // with the number that it had
  outbox_.take_answer("0000000000000005-2", R"({"error":{"code":503,"description":"no space"}})");
  outbox_.take_answer("0000000000000005-2", "");  // no stream is there
  now_ += EventOutbox::kSendAgain;
  const auto again = outbox_.next(now_);
  ASSERT_TRUE(again);
  EXPECT_EQ(again->id(), "0000000000000005-2");
  outbox_.take_answer("0000000000000005-2", R"({"stream":"S","seq":12,"duplicate":true})");
  EXPECT_EQ(outbox_.waiting(), 0U);
}

TEST_F(EventOutboxTest, IsBounded) {
  for (std::size_t n = 0; n < EventOutbox::kMaxWaiting + 3; ++n) outbox_.add(event(std::to_string(n)));
  EXPECT_EQ(outbox_.waiting(), EventOutbox::kMaxWaiting);
  EXPECT_EQ(outbox_.dropped(), 3U);
  EXPECT_EQ(next(), "3");
  std::size_t sent = 1;
  while (!next().empty()) ++sent;
  EXPECT_EQ(sent, EventOutbox::kMaxAtOnce);
}

TEST_F(EventOutboxTest, AFileKeepsThemWhenTheAgentIsKilled) {
  const testing::TemporaryFolder folder;
  {
    EventOutbox killed(5);
    ASSERT_TRUE(killed.keep_in(folder.at("unsent")).ok());
    killed.add(event("first"));
    killed.add(event("second"));
    killed.take_answer("0000000000000005-1", R"({"stream":"S","seq":12})");
    EXPECT_FALSE(outbox_.keep_in(folder.at("unsent")).ok());  // one agent at a time
  }
  {
    EventOutbox successor(6);
    ASSERT_TRUE(successor.keep_in(folder.at("unsent")).ok());
    successor.add(event("third"));
    // What was stored may come again, under its own number.
    const std::vector<std::string> expected = {"0000000000000005-1", "0000000000000005-2", "0000000000000006-1"};
    for (const std::string& id : expected) {
      const auto message = successor.next(now_);
      ASSERT_TRUE(message);
      EXPECT_EQ(message->id(), id);
      successor.take_answer(message->id(), R"({"stream":"S","seq":13})");
    }
    EXPECT_EQ(successor.waiting(), 0U);
  }
  EventOutbox last(7);
  ASSERT_TRUE(last.keep_in(folder.at("unsent")).ok());
  EXPECT_EQ(last.waiting(), 0U);
}

class EventStreamTest : public ::testing::Test {
 protected:
  EventStream stream_{"4711"};
  EventStream::Clock::time_point now_;
};

TEST_F(EventStreamTest, AsksForAStreamAndThenForItsConsumer) {
  EXPECT_FALSE(stream_.next(false, now_));
  const auto stream = stream_.next(true, now_);
  ASSERT_TRUE(stream);
  EXPECT_EQ(stream->subject, "$JS.API.STREAM.CREATE.tidemark-4711-events");
  const auto config = nlohmann::json::parse(stream->bytes);
  EXPECT_EQ(config["subjects"], nlohmann::json::array({"tidemark.4711.event.*"}));
  EXPECT_EQ(config["max_bytes"], 64 << 20);
  EXPECT_EQ(config["max_age"], 7LL * 24 * 3600 * 1'000'000'000);
  EXPECT_EQ(config["duplicate_window"], 600'000'000'000);
  EXPECT_FALSE(stream_.next(true, now_ + 1s));  // it waits for the answer
  EXPECT_TRUE(stream_.next(true, now_ + 2s));
  stream_.take_answer(stream->reply, R"({"type":"io.nats.jetstream.api.v1.stream_create_response","config":{}})");
  const auto consumer = stream_.next(true, now_ + 2s);
  ASSERT_TRUE(consumer);
  EXPECT_EQ(consumer->subject, "$JS.API.CONSUMER.DURABLE.CREATE.tidemark-4711-events.coordinator");
  EXPECT_FALSE(stream_.is_ready());
  stream_.take_answer(stream->reply, "{}");  // late
  EXPECT_FALSE(stream_.is_ready());
  stream_.take_answer(consumer->reply, "{}");
  EXPECT_TRUE(stream_.is_ready());
  EXPECT_FALSE(stream_.next(true, now_ + 60s));
  // The server may come back without its files.
  EXPECT_FALSE(stream_.next(false, now_ + 60s));
  EXPECT_EQ(stream_.next(true, now_ + 61s)->subject, stream->subject);
}

TEST_F(EventStreamTest, SaysWhyThereIsNone) {
  const auto stream = stream_.next(true, now_);
  stream_.take_answer(stream->reply, R"({"error":{"code":400,"description":"insufficient storage\u001b"}})");
  EXPECT_EQ(stream_.problem(), "the server cannot keep events: insufficient storage?");
  stream_.take_answer(stream->reply, "");
  EXPECT_THAT(stream_.problem(), HasSubstr("no JetStream"));
  stream_.take_answer(stream->reply, "{}");
  EXPECT_THAT(stream_.problem(), IsEmpty());
}

}  // namespace
}  // namespace tidemark
