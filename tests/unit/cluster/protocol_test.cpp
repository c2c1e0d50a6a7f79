#include "cluster/protocol.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <string>

namespace tidemark {
namespace {

using ::testing::HasSubstr;

AgentMessage message_of(std::string node) {
  AgentMessage message;
  message.node = std::move(node);
  message.instance = 0x1234567890ABCDEF;
  message.sequence = 7;
  message.full = true;
  message.elapsed_ns = 12'000'000'000;
  message.ranks = {{4711, 3, 1, 8, "pipeline 0"}, {4712, std::nullopt, std::nullopt, std::nullopt, ""}};
  message.state = std::string("state\0bytes", 11);
  return message;
}

TEST(Protocol, RestoresMessages) {
  const AgentMessage message = message_of("node0.example");
  const auto decoded = decode_agent_message(encode(message));
  ASSERT_TRUE(decoded) << decoded.error().message;
  EXPECT_EQ(*decoded, message);
  AgentMessage leaving = message_of("b");
  leaving.leaving = true;
  leaving.state.clear();
  leaving.ranks.clear();
  const auto last = decode_agent_message(encode(leaving));
  ASSERT_TRUE(last) << last.error().message;
  EXPECT_EQ(*last, leaving);
}

TEST(Protocol, RefusesIncompleteMessages) {
  for (const auto change :
       {+[](AgentMessage& message) { message.instance = 0; }, +[](AgentMessage& message) { message.sequence = 0; },
        +[](AgentMessage& message) { message.state.clear(); },
        +[](AgentMessage& message) { message.elapsed_ns = ~std::uint64_t{0}; },
        +[](AgentMessage& message) { message.ranks.resize(AgentMessage::kMaxRanks + 1); }}) {
    AgentMessage message = message_of("a");
    change(message);
    EXPECT_FALSE(decode_agent_message(encode(message)));
  }
  EXPECT_FALSE(decode_agent_message(""));
  EXPECT_FALSE(decode_agent_message("not a message"));
  EXPECT_FALSE(decode_agent_message(std::string(AgentMessage::kMaxBytes + 1, 'x')));
  // Field 1, the version, is 2.
  std::string newer = encode(message_of("a"));
  ASSERT_EQ(newer.substr(0, 2), std::string("\x08\x01"));
  newer[1] = 2;
  const auto refused = decode_agent_message(newer);
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message, HasSubstr("version 2"));
}

TEST(Protocol, EveryPrefixIsRefusedOrDecoded) {
  const std::string whole = encode(message_of("node"));
  for (std::size_t length = 0; length < whole.size(); ++length) {
    static_cast<void>(decode_agent_message(whole.substr(0, length)));
  }
}

TEST(Protocol, NamesHaveNoControlCharacters) {
  EXPECT_EQ(clean_name("node-1.example"), "node-1.example");
  EXPECT_EQ(clean_name("a\x1b[2Jb\n"), "a?[2Jb?");
  EXPECT_EQ(clean_name("kn\xC3\xB6ten"), "kn\xC3\xB6ten");
  EXPECT_EQ(clean_name("a\xC3"), "a?");
  EXPECT_EQ(clean_name("a\xE2\x80\xAE"
                       "b"),
            "a?b");  // right-to-left override
  EXPECT_EQ(clean_name("a\xC2\x9B"
                       "b"),
            "a?b");  // CSI as one character
  EXPECT_EQ(clean_name(""), "?");
  EXPECT_EQ(clean_name(std::string(65'536, 'h')).size(), AgentMessage::kMaxNameBytes);
  const auto decoded = decode_agent_message(encode(message_of("a\x1b]0;owned\x07")));
  ASSERT_TRUE(decoded);
  EXPECT_EQ(decoded->node, "a?]0;owned?");
}

TEST(Protocol, SubjectsHaveOneTokenForEachName) {
  EXPECT_EQ(state_subject("train", "node-1"), "tidemark.train.state.node-1");
  EXPECT_EQ(ask_subject("train", "node_1"), "tidemark.train.ask.node_1");
  EXPECT_EQ(all_states_subject("a"), "tidemark.a.state.*");
  // Wildcards and separators of NATS are no part of a token.
  for (const char* name : {"a.b", "*", ">", "a b", "", "a\nb"}) {
    const std::string token = subject_token(name);
    EXPECT_EQ(token.find_first_of(".*> \n"), std::string::npos) << name;
    EXPECT_FALSE(token.empty());
  }
  EXPECT_NE(subject_token("a.b"), subject_token("a_b"));
  EXPECT_NE(subject_token("a.b"), subject_token("a>b"));
  EXPECT_LE(subject_token(std::string(70'000, 'h')).size(), 64U);
  EXPECT_NE(subject_token(std::string(65, 'h')), subject_token(std::string(66, 'h')));
}

TEST(Protocol, AnyBytesAreDecodedOrRefused) {
  rc::check([](const std::string& bytes) { static_cast<void>(decode_agent_message(bytes)); });
  rc::check([](std::size_t place, char byte) {
    std::string bytes = encode(message_of("node"));
    bytes[place % bytes.size()] = byte;
    if (const auto decoded = decode_agent_message(bytes)) {
      RC_ASSERT(std::none_of(decoded->node.begin(), decoded->node.end(),
                             [](char letter) { return static_cast<unsigned char>(letter) < ' '; }));
    }
  });
}

}  // namespace
}  // namespace tidemark
