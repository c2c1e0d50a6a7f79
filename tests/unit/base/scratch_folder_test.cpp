#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>

#include "base/output_file.h"

namespace tidemark {
namespace {

TEST(ScratchFolderTest, IsRemovedWithItsLastOwner) {
  std::string path;
  {
    auto created = ScratchFolder::create("tidemark-test");
    ASSERT_TRUE(created);
    const ScratchFolder folder = std::move(*created);
    path = folder.path();
    EXPECT_TRUE(std::filesystem::path(path).filename().string().starts_with("tidemark-test-"));
    struct stat status {};
    ASSERT_EQ(::stat(path.c_str(), &status), 0);
    EXPECT_EQ(status.st_mode & 0777U, 0700U);
    std::filesystem::create_directories(path + "/a/b");
    std::ofstream(path + "/a/b/file") << "text";
  }
  EXPECT_FALSE(std::filesystem::exists(path));
}

TEST(ScratchFolderTest, SaysWhereNoneCouldBeCreated) {
  const char* const before = ::getenv("TMPDIR");
  const std::string kept = before != nullptr ? before : "";
  ::setenv("TMPDIR", "/proc", 1);
  const auto folder = ScratchFolder::create("tidemark-test");
  before != nullptr ? ::setenv("TMPDIR", kept.c_str(), 1) : ::unsetenv("TMPDIR");
  ASSERT_FALSE(folder);
  EXPECT_TRUE(folder.error().message.starts_with("/proc/tidemark-test-")) << folder.error().message;
}

}  // namespace
}  // namespace tidemark
