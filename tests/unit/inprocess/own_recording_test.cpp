#include "inprocess/recording/own_recording.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <string>
#include <vector>

#include "import/open.h"
#include "inprocess/recording/control_library.h"
#include "temporary_folder.h"

namespace tidemark {
namespace {

std::vector<std::string> mark_names(const std::string& path) {
  const auto store = open_store(path, {});
  EXPECT_TRUE(store) << store.error().message;
  std::vector<std::string> names;
  if (!store) return names;
  for (const Mark& mark : store->definitions.marks) names.push_back(store->definitions.strings[mark.name.value]);
  return names;
}

// In one process: the library stays loaded, and a second recording is another file.
TEST(OwnRecording, RecordsThisProcessUntilItIsStopped) {
  const testing::TemporaryFolder folder;
  OwnRecording recording;
  EXPECT_TRUE(recording.stop()->empty());
  for (const char* name : {"first", "second"}) {
    const std::string path = folder.at(std::string(name) + ".tide");
    const auto started = recording.start({path, TIDEMARK_PROGRAM, {"--no-samples"}});
    ASSERT_TRUE(started) << started.error().message;
    EXPECT_TRUE(recording.started());
    EXPECT_FALSE(recording.is_range());
    OwnRecording other;
    EXPECT_FALSE(other.start({folder.at("other.tide"), TIDEMARK_PROGRAM}));
    control_library()->mark(name);
    const auto files = recording.stop();
    ASSERT_TRUE(files) << files.error().message;
    ASSERT_EQ(files->size(), 1U);
    EXPECT_EQ(files->front().path, path);
    EXPECT_EQ(files->front().pid, ::getpid());
    EXPECT_FALSE(files->front().failed);
    EXPECT_EQ(mark_names(path), std::vector<std::string>{name});
  }
}

TEST(OwnRecording, ReportsWhyItCannotRecord) {
#ifdef TIDEMARK_SPAWN_NEVER_FAILS
  GTEST_SKIP() << "posix_spawn() does not fail with ThreadSanitizer";
#endif
  const testing::TemporaryFolder folder;
  OwnRecording recording;
  const std::string there = folder.write("there.tide", "kept");
  const auto exists = recording.start({there, TIDEMARK_PROGRAM});
  ASSERT_FALSE(exists);
  EXPECT_NE(exists.error().message.find("there.tide"), std::string::npos) << exists.error().message;
  const auto nowhere = recording.start({folder.at("no/folder.tide"), TIDEMARK_PROGRAM});
  EXPECT_FALSE(nowhere);
  const auto without = recording.start({folder.at("a.tide"), folder.at("no-program")});
  ASSERT_FALSE(without);
  EXPECT_NE(without.error().message.find("no-program"), std::string::npos) << without.error().message;
  EXPECT_FALSE(recording.started());
  // It can then be started after all.
  const auto started = recording.start({there, TIDEMARK_PROGRAM, {"--force", "--no-samples"}});
  ASSERT_TRUE(started) << started.error().message;
  EXPECT_TRUE(recording.stop());
}

TEST(OwnRecording, ForkedChildHasNoRecording) {
  const testing::TemporaryFolder folder;
  OwnRecording recording;
  ASSERT_TRUE(recording.start({folder.at("run.tide"), TIDEMARK_PROGRAM, {"--no-samples"}}));
  const pid_t child = ::fork();
  if (child == 0) ::_exit(recording.started() || !recording.stop()->empty() ? 1 : 0);
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  control_library()->mark("still recording");
  const auto files = recording.stop();
  ASSERT_TRUE(files) << files.error().message;
  EXPECT_EQ(mark_names(files->front().path), std::vector<std::string>{"still recording"});
}

}  // namespace
}  // namespace tidemark
