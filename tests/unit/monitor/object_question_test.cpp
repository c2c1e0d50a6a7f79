// A program's answers are hostile input: bounds, invalid files, and invalid answers.
#include "monitor/object_question.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "temporary_folder.h"

namespace tidemark {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using namespace std::chrono_literals;

std::string storages(std::size_t count, const std::string& entry) {
  std::string text = R"({"new_storages": 3, "new_bytes": 4096, "seconds": 0.5, "storages": [)";
  for (std::size_t n = 0; n < count; ++n) text.append(n == 0 ? "" : ", ").append(entry);
  return text + "]}";
}

TEST(ObjectAnswer, IsReadWithItsChains) {
  const auto answer = parse_object_answer(storages(
      1,
      R"({"address": 4096, "bytes": 512, "device": "cuda:0", "kind": "tensor", "type": "Parameter", "chains": ["a.b", "c[1]"]})"));
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->new_storages, 3U);
  EXPECT_EQ(answer->new_bytes, 4096U);
  EXPECT_EQ(answer->seconds, 0.5);
  EXPECT_FALSE(answer->stopped_after_seconds);
  EXPECT_EQ(parse_object_answer(R"({"storages": [], "stopped_after_seconds": 10.0})")->stopped_after_seconds, 10);
  ASSERT_EQ(answer->storages.size(), 1U);
  const HeldStorage& storage = answer->storages.front();
  EXPECT_EQ(storage.address, 4096U);
  EXPECT_EQ(storage.bytes, 512U);
  EXPECT_EQ(storage.device + storage.kind + storage.type, "cuda:0tensorParameter");
  EXPECT_THAT(storage.chains, ElementsAre("a.b", "c[1]"));
  EXPECT_FALSE(storage.native);
  const auto unreadable = parse_object_answer(R"({"storages": [{"native": true}], "notes": ["not listed", 7]})");
  EXPECT_TRUE(unreadable->storages.at(0).native);
  EXPECT_THAT(unreadable->notes, ElementsAre("not listed"));
}

TEST(ObjectAnswer, IsBounded) {
  const std::string chains = fmt::format(R"({{"chains": [{}"last"]}})", [] {
    std::string text;
    for (int n = 0; n < 99; ++n) text += fmt::format(R"("{}", )", std::string(3000, 'x'));
    return text;
  }());
  const auto answer = parse_object_answer(storages(1, chains));
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->storages.front().chains.size(), 8U);
  EXPECT_EQ(answer->storages.front().chains.front().size(), 2000U);
  EXPECT_EQ(parse_object_answer(storages(1000, "{}"))->storages.size(), 256U);
  EXPECT_FALSE(parse_object_answer(storages(1, "{}") + std::string(kMaxAnswerBytes, ' ')));
  EXPECT_FALSE(parse_object_answer(std::string(kMaxAnswerBytes, '['))) << "nested, and never closed";
  const std::string nested = std::string(100'000, '[') + std::string(100'000, ']');
  EXPECT_TRUE(parse_object_answer(storages(1, nested))->storages.empty());
}

TEST(ObjectAnswer, OtherTypesAreRefused) {
  for (const char* text : {"", "null", "[]", "{}", R"({"storages": {}})", "{\"storages\": [\"\xff\"]}", "storages"}) {
    EXPECT_FALSE(parse_object_answer(text)) << text;
  }
  const auto answer = parse_object_answer(
      R"({"new_storages": -1, "new_bytes": 1e300, "seconds": "long", "storages": [7, {"bytes": -5, "kind": [], "chains": {"a": "b"}}]})");
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->new_storages + answer->new_bytes, 0U);
  EXPECT_EQ(answer->seconds, 0);
  ASSERT_EQ(answer->storages.size(), 1U);
  EXPECT_EQ(answer->storages.front().bytes, 0U);
  EXPECT_TRUE(answer->storages.front().kind.empty() && answer->storages.front().chains.empty());
}

TEST(ObjectQuestion, IsAFileThatTheProgramAnswers) {
  const testing::TemporaryFolder folder;
  const std::string stem = folder.at("objects.7");
  {
    ObjectQuestion question(folder.at(""), 7);
    question.ask(true);
    std::ifstream asked(stem + ".question");
    EXPECT_EQ(std::string(std::istreambuf_iterator<char>(asked), {}), "first\n");
    struct ::stat facts {};
    ASSERT_EQ(::stat((stem + ".question").c_str(), &facts), 0);
    EXPECT_EQ(facts.st_mode & 0777, 0600U);
    EXPECT_FALSE(question.is_answered());
    EXPECT_EQ(question.answer().error().message, kNoAnswer);
    std::ofstream(stem + ".answer") << storages(2, "{}");
    EXPECT_TRUE(question.is_answered());
    EXPECT_EQ(question.answer()->storages.size(), 2U);
    question.ask(false);
    EXPECT_FALSE(question.is_answered()) << "asked anew";
    std::ofstream(stem + ".answer") << R"({"problem": "no PyTorch"})";
    EXPECT_TRUE(question.is_answered());
    EXPECT_THAT(question.answer().error().message, HasSubstr("no PyTorch"));
  }
  EXPECT_FALSE(std::filesystem::exists(stem + ".question"));
  EXPECT_FALSE(std::filesystem::exists(stem + ".answer"));
}

class ObjectQuestionsTest : public ::testing::Test {
 protected:
  using Clock = ObjectQuestions::Clock;

  void answer(const std::string& json) const {
    std::filesystem::remove(stem_ + ".question");  // as the program does
    std::ofstream(stem_ + ".answer") << json;
  }
  /// Whether the request is sent at this time, and not the moment before.
  bool is_asked_at(std::chrono::milliseconds time) {
    EXPECT_FALSE(questions_.update(begin_ + time - 1ms)) << time.count();
    const bool due = questions_.update(begin_ + time);
    if (due) questions_.ask();
    std::ifstream asked(stem_ + ".question");
    return due && std::string(std::istreambuf_iterator<char>(asked), {}) == "again\n";
  }

  testing::TemporaryFolder folder_;
  std::string stem_ = folder_.at("objects.7");
  ObjectQuestions questions_{folder_.at(""), 7};
  Clock::time_point begin_ = Clock::now();
};

TEST_F(ObjectQuestionsTest, ComeNowAndThen) {
  EXPECT_FALSE(questions_.update(begin_ + 1h)) << "what it was asked first is not answered";
  answer(R"({"first": true})");
  EXPECT_FALSE(questions_.update(begin_));
  for (const std::chrono::seconds time : {1s, 3s, 7s, 15s, 31s, 63s, 123s, 183s}) {
    EXPECT_TRUE(is_asked_at(time)) << time.count();
    EXPECT_FALSE(questions_.update(begin_ + 24h)) << "no answer, no further question";
    answer(R"({"storages": [], "seconds": 0.01})");
    EXPECT_FALSE(questions_.update(begin_ + time));
  }
}

// At most a fiftieth of its time.
TEST_F(ObjectQuestionsTest, AreRareIfAnswersTakeLong) {
  answer(R"({"first": true})");
  EXPECT_FALSE(questions_.update(begin_));
  EXPECT_TRUE(is_asked_at(1s));
  answer(R"({"storages": [], "seconds": 9.5})");
  EXPECT_FALSE(questions_.update(begin_ + 15s));
  EXPECT_TRUE(is_asked_at(15s + 475s));
  answer(R"({"storages": [], "seconds": 1e300})");
  EXPECT_FALSE(questions_.update(begin_ + 500s));
  EXPECT_TRUE(is_asked_at(500s + 24h));
}

TEST_F(ObjectQuestionsTest, TheLatestAnswerIsKept) {
  EXPECT_EQ(questions_.latest(true).error().message, kNoAnswer);
  EXPECT_EQ(questions_.latest(false).error().message, kEndedBeforeAnswer);
  answer(R"({"first": true})");
  EXPECT_FALSE(questions_.update(begin_));
  EXPECT_EQ(questions_.latest(false).error().message, kEndedBeforeAskedAgain);
  EXPECT_TRUE(is_asked_at(1s));
  answer(storages(2, "{}"));
  (void)questions_.update(begin_ + 2s);
  EXPECT_EQ(questions_.latest(true)->older_because, "");
  EXPECT_EQ(questions_.latest(false)->older_because, kEndedBeforeAskedAgain);
  questions_.ask();
  EXPECT_TRUE(questions_.is_awaited());
  EXPECT_EQ(questions_.latest(true)->older_because, kNoAnswer);
  EXPECT_EQ(questions_.latest(false)->older_because, kEndedBeforeAnswer);
  answer(R"({"problem": "too many"})");
  (void)questions_.update(begin_ + 7s);
  EXPECT_EQ(questions_.latest(true)->storages.size(), 2U);
  EXPECT_EQ(questions_.latest(true)->older_because, "the program says: too many");
  EXPECT_GT(questions_.latest(true)->answered_wall_ns, std::uint64_t{1'700'000'000'000'000'000});
}

TEST(ObjectQuestion, OtherThanRegularFilesAreNoAnswer) {
  const testing::TemporaryFolder folder;
  const std::string answer = folder.at("objects.7.answer");
  ObjectQuestion question(folder.at(""), 7);
  question.ask(true);
  std::ofstream(folder.at("elsewhere")) << storages(1, "{}");
  ASSERT_EQ(::symlink(folder.at("elsewhere").c_str(), answer.c_str()), 0);
  EXPECT_FALSE(question.is_answered()) << "a link";
  ::unlink(answer.c_str());
  ASSERT_EQ(::mkfifo(answer.c_str(), 0600), 0);
  EXPECT_FALSE(question.is_answered()) << "a pipe, for which nothing waits";
  ::unlink(answer.c_str());
  ASSERT_EQ(::mkdir(answer.c_str(), 0700), 0);
  EXPECT_FALSE(question.is_answered()) << "a folder";
}

}  // namespace
}  // namespace tidemark
