#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <tidemark/profiler.h>
#include <tidemark/recording.h>

#include <string>

#include "temporary_folder.h"

namespace {

using ::testing::HasSubstr;
using tidemark::testing::TemporaryFolder;

TEST(Profiler, RecordsAFileThatCanBeRead) {
  const TemporaryFolder folder;
  tidemark::RecordingOptions options;
  options.sample_interval_seconds = 0.05;
  tidemark::Profiler profiler(folder.at("run.tide"), options);
  EXPECT_FALSE(profiler.is_recording());
  EXPECT_FALSE(tidemark::is_recording());
  tidemark::mark("nobody records this");
  profiler.start();
  EXPECT_TRUE(profiler.is_recording());
  EXPECT_TRUE(tidemark::is_recording());
  {
    const tidemark::Step step;
    const tidemark::Scope scope("forward");
    tidemark::mark(std::string("epoch ") + "1");
  }
  const auto files = profiler.stop();
  ASSERT_EQ(files.size(), 1U);
  EXPECT_EQ(files.front().path, folder.at("run.tide"));
  EXPECT_EQ(files.front().dropped, 0U);
  EXPECT_FALSE(profiler.is_recording());
  EXPECT_TRUE(profiler.stop().empty());

  const tidemark::Recording recording(folder.at("run.tide"));
  EXPECT_EQ(recording.program().pid, files.front().pid);
  EXPECT_THAT(recording.program().command_line, HasSubstr("api_test"));
  EXPECT_TRUE(recording.devices().empty());  // nothing of PyTorch here
  EXPECT_THAT(recording.analyze("summary"), HasSubstr("\"command_line\""));
}

TEST(Profiler, TheFolderHasToBeThere) {
  const TemporaryFolder folder;
  tidemark::Profiler profiler(folder.at("no/run.tide"));
  try {
    profiler.start();
    FAIL();
  } catch (const tidemark::Error& error) {
    EXPECT_THAT(error.what(), HasSubstr(folder.at("no")));
  }
  EXPECT_FALSE(profiler.is_recording());
}

TEST(Profiler, OneAtATime) {
  const TemporaryFolder folder;
  tidemark::Profiler first(folder.at("first.tide"));
  first.start();
  tidemark::Profiler second(folder.at("second.tide"));
  EXPECT_THROW(second.start(), tidemark::Error);
  EXPECT_EQ(first.stop().size(), 1U);
}

}  // namespace
