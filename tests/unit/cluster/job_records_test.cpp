#include "cluster/job_records.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <string>
#include <vector>

#include "temporary_folder.h"

namespace tidemark {
namespace {

using ::testing::HasSubstr;

EventMessage message(std::uint64_t instance, std::uint64_t number) {
  JobEvent event{JobEventKind::leak, "b", 1'790'000'000'000'000'000 + number, 3, 4711, "1", "grows"};
  if (number % 2 == 0) event.rank.reset();
  return {instance, number, event};
}

TEST(JobRecords, CountEachEventOnceAlsoAfterAStart) {
  const testing::TemporaryFolder folder;
  {
    auto records = JobRecords::open(folder.path());
    ASSERT_TRUE(records.ok()) << records.error().message;
    const auto fresh = records->add({message(0xFFFF'FFFF'FFFF'FFFF, 1), message(5, 1), message(5, 1)});
    ASSERT_TRUE(fresh);
    EXPECT_EQ(fresh->size(), 2U);
  }
  struct stat file {};
  ASSERT_EQ(::stat(folder.at("job.sqlite").c_str(), &file), 0);
  EXPECT_EQ(file.st_mode & 0777U, 0600U);
  auto records = JobRecords::open(folder.path());
  ASSERT_TRUE(records.ok()) << records.error().message;
  EXPECT_EQ(records->add({message(5, 1), message(5, 2)})->size(), 1U);
  ASSERT_EQ(records->events().size(), 3U);
  EXPECT_EQ(records->events()[1], message(5, 1).event);
  EXPECT_EQ(records->events()[2], message(5, 2).event);
}

TEST(JobRecords, WithoutAFileTheyAreOfThisStart) {
  JobRecords records;
  EXPECT_EQ(records.add({message(5, 1), message(5, 1)})->size(), 1U);
  EXPECT_EQ(records.add({message(5, 1)})->size(), 0U);
  EXPECT_FALSE(records.write({1, "record dump", {}, "me"}, {}, false).ok());
}

TEST(JobRecords, TheReportHasTheLatest) {
  JobRecords records;
  std::vector<EventMessage> events;
  for (std::uint64_t n = 1; n <= JobReport::kMaxEvents + 10; ++n) events.push_back(message(5, n));
  EXPECT_EQ(records.add(events)->size(), events.size());
  EXPECT_EQ(records.events().size(), JobReport::kMaxEvents);
  EXPECT_EQ(records.earlier(), 10U);
  EXPECT_EQ(records.events().back(), events.back().event);
}

TEST(JobRecords, RefuseAnotherFile) {
  const testing::TemporaryFolder folder;
  folder.write("job.sqlite", std::string(4096, 'x'));
  const auto records = JobRecords::open(folder.path());
  ASSERT_FALSE(records.ok());
  EXPECT_THAT(records.error().message, HasSubstr(folder.at("job.sqlite")));
}

TEST(JobRecords, KeepCommandsWithTheirAnswers) {
  const testing::TemporaryFolder folder;
  const CommandRequest request{0xAB, "record dump", {0, 3}, "ann on login1"};
  CommandReport report{"record dump", "ann on login1", 1'790'000'000'000'000'000, CommandState::refused, "", {}};
  {
    auto records = JobRecords::open(folder.path());
    ASSERT_TRUE(records.ok());
    ASSERT_TRUE(records->write(request, report, false).ok());
    report.state = CommandState::done;
    report.ranks = {{"b", 3, 4711, true, "/data/run.tide"}};
    ASSERT_TRUE(records->write(request, report, true).ok());
  }
  DatabaseError error;
  auto database = Database::open(folder.at("job.sqlite"), DatabaseUse::read, error);
  ASSERT_TRUE(database) << error.message;
  Statement query = database->prepare("SELECT who, command, ranks, state, answers FROM commands");
  ASSERT_TRUE(query.step());
  EXPECT_EQ(query.text(0), "ann on login1");
  EXPECT_EQ(query.text(2), "[0,3]");
  EXPECT_EQ(query.text(3), "done");
  EXPECT_EQ(query.text(4), R"([{"node":"b","rank":3,"pid":4711,"ok":true,"text":"/data/run.tide"}])");
  EXPECT_FALSE(query.step());
}

}  // namespace
}  // namespace tidemark
