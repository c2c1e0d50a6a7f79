#include "sweep/kept_trials.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "temporary_folder.h"

namespace tidemark {
namespace {

using ::testing::HasSubstr;

constexpr const char* kCommon = R"({"program":["train.py"]})";

KeptTrial trial_of(const char* batch, std::uint64_t bytes) {
  KeptTrial trial{"H200", {batch, "eager"}, "trials/0001", {}};
  trial.result.fits = true;
  trial.result.peak_allocated_bytes = bytes;
  trial.result.uncertain = {"a sentence"};
  trial.result.duration_ns = 5;
  return trial;
}

class KeptTrialsFile : public ::testing::Test {
 protected:
  [[nodiscard]] std::string folder() const { return folder_.path() + "/sweep"; }
  [[nodiscard]] std::string file() const { return folder() + "/trials.jsonl"; }
  [[nodiscard]] std::string contents() const {
    std::ostringstream text;
    text << std::ifstream(file()).rdbuf();
    return text.str();
  }

  ::tidemark::testing::TemporaryFolder folder_;
};

TEST_F(KeptTrialsFile, GivesBackWhatWasAppended) {
  {
    auto kept = KeptTrials::open(folder(), kCommon);
    ASSERT_TRUE(kept) << kept.error().message;
    ASSERT_TRUE(kept->append(trial_of("1", 1000)));
    KeptTrial failed{"H200", {"2", "eager"}, "trials/0002", {}};
    failed.result.failure = "three is \xFF too many";  // not UTF-8
    ASSERT_TRUE(kept->append(failed));
  }
  const auto kept = KeptTrials::open(folder(), kCommon);
  ASSERT_TRUE(kept);
  ASSERT_EQ(kept->trials().size(), 2U);
  const KeptTrial& first = kept->trials()[0];
  EXPECT_EQ(first.values, (std::vector<std::string>{"1", "eager"}));
  EXPECT_EQ(first.result.fits, true);
  EXPECT_EQ(first.result.peak_allocated_bytes, 1000U);
  EXPECT_EQ(first.result.peak_reserved_bytes, std::nullopt);
  EXPECT_EQ(first.result.uncertain.size(), 1U);
  EXPECT_EQ(kept->trials()[1].result.fits, std::nullopt);
  EXPECT_EQ(kept->trials()[1].result.failure, "three is \xEF\xBF\xBD too many");
}

TEST_F(KeptTrialsFile, ATornLastLineIsTakenAway) {
  ASSERT_TRUE(KeptTrials::open(folder(), kCommon)->append(trial_of("1", 1000)));
  const std::string whole = contents();
  std::ofstream(file(), std::ios::app) << R"({"gpu":"H200","values":["2",)";
  {
    auto kept = KeptTrials::open(folder(), kCommon);
    ASSERT_TRUE(kept);
    EXPECT_EQ(kept->trials().size(), 1U);
    EXPECT_EQ(contents(), whole);
    ASSERT_TRUE(kept->append(trial_of("2", 2000)));
  }
  EXPECT_EQ(KeptTrials::open(folder(), kCommon)->trials().size(), 2U);
}

TEST_F(KeptTrialsFile, ATornFirstLineIsRewritten) {
  std::filesystem::create_directories(folder());
  std::ofstream(file()) << R"({"progr)";
  ASSERT_TRUE(KeptTrials::open(folder(), kCommon));
  EXPECT_EQ(contents(), std::string(kCommon) + "\n");
}

TEST_F(KeptTrialsFile, ALineThatIsNoTrialIsAnError) {
  ASSERT_TRUE(KeptTrials::open(folder(), kCommon)->append(trial_of("1", 1000)));
  const std::string whole = contents();
  const std::string trial = whole.substr(whole.find('\n') + 1);
  const auto changed = [&](const std::string& from, const std::string& to) {
    std::string line = trial;
    return line.replace(line.find(from), from.size(), to);
  };
  for (const std::string& line :
       {std::string("[]\n"), std::string("{}\n"), std::string("nothing\n"), std::string("{\"gpu\": 7}\n"),
        std::string(1 << 20, '[') + "\n", changed("1000", "-1"), changed("1000", "1e300"),
        changed("trials/0001", "../../0001"), changed("trials/0001", "trials/99999999999999999999")}) {
    std::ofstream(file()) << whole << line << trial;
    EXPECT_THAT(KeptTrials::open(folder(), kCommon).error().message, HasSubstr("trials.jsonl: line 3 is damaged"));
    EXPECT_EQ(contents(), whole + line + trial);
  }
}

// Its files would be removed for the files of a new trial.
TEST_F(KeptTrialsFile, FoldersOfTrialsAreNotUsedAgain) {
  auto kept = KeptTrials::open(folder(), kCommon);
  KeptTrial trial = trial_of("1", 1000);
  EXPECT_EQ(kept->new_folder(), "trials/0001");
  trial.folder = "trials/0002";  // as if the line before it had been removed
  ASSERT_TRUE(kept->append(trial));
  EXPECT_EQ(kept->new_folder(), "trials/0003");
  kept = Error{"closed"};
  kept = KeptTrials::open(folder(), kCommon);
  EXPECT_EQ(kept->new_folder(), "trials/0001");
  EXPECT_EQ(kept->new_folder(), "trials/0003");
}

TEST_F(KeptTrialsFile, AnotherFileIsLeftAsItIs) {
  std::filesystem::create_directories(folder());
  std::ofstream(file()) << "a line without an end";
  EXPECT_THAT(KeptTrials::open(folder(), kCommon).error().message, HasSubstr("trials of another program"));
  EXPECT_EQ(contents(), "a line without an end");
  std::filesystem::resize_file(file(), std::uintmax_t{1} << 40);  // sparse
  EXPECT_THAT(KeptTrials::open(folder(), kCommon).error().message, HasSubstr("larger than 64 MiB"));
}

TEST_F(KeptTrialsFile, AnotherProgramAndAnotherSweepAreRefused) {
  auto kept = KeptTrials::open(folder(), kCommon);
  ASSERT_TRUE(kept);
  EXPECT_THAT(KeptTrials::open(folder(), kCommon).error().message, HasSubstr("another sweep is under way"));
  kept = Error{"closed"};
  EXPECT_THAT(KeptTrials::open(folder(), "{}").error().message, HasSubstr("trials of another program"));
}

TEST_F(KeptTrialsFile, FailsForAnImpossibleFolder) {
  std::ofstream(folder_.path() + "/file") << "x";
  EXPECT_FALSE(KeptTrials::open(folder_.path() + "/file", kCommon));
}

}  // namespace
}  // namespace tidemark
