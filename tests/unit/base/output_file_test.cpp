#include "base/output_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

namespace tidemark {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class OutputFileTest : public ::testing::Test {
 protected:
  OutputFileTest() { std::filesystem::create_directories(folder_); }
  ~OutputFileTest() override { std::filesystem::remove_all(folder_); }

  [[nodiscard]] std::string path(const std::string& name) const { return folder_ + "/" + name; }
  [[nodiscard]] static std::string text(const std::string& path) {
    std::ifstream file(path);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  [[nodiscard]] std::vector<std::string> names() const {
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(folder_)) names.push_back(entry.path().filename());
    std::sort(names.begin(), names.end());
    return names;
  }

  const std::string folder_ = ::testing::TempDir() + "output_file_test." + std::to_string(::getpid());
};

TEST_F(OutputFileTest, TakesItsPlaceWhenWhole) {
  std::ofstream(path("out")) << "old";
  {
    auto file = OutputFile::create(path("out"));
    ASSERT_TRUE(file.ok());
    EXPECT_TRUE(file->write("new").ok());
    EXPECT_EQ(text(path("out")), "old");
    EXPECT_TRUE(file->commit().ok());
  }
  EXPECT_EQ(text(path("out")), "new");
  EXPECT_THAT(names(), ElementsAre("out"));
}

TEST_F(OutputFileTest, LeavesNothingBehindWithoutCommit) {
  std::ofstream(path("out")) << "old";
  EXPECT_TRUE(OutputFile::create(path("out"))->write("half").ok());
  EXPECT_EQ(text(path("out")), "old");
  EXPECT_THAT(names(), ElementsAre("out"));
}

TEST_F(OutputFileTest, WritesWhereASymbolicLinkLeads) {
  std::ofstream(path("target")) << "old";
  std::filesystem::create_symlink("target", path("link"));
  auto file = OutputFile::create(path("link"));
  EXPECT_TRUE(file->write("new").ok());
  EXPECT_TRUE(file->commit().ok());
  EXPECT_EQ(text(path("target")), "new");
  EXPECT_TRUE(std::filesystem::is_symlink(path("link")));
}

// Renaming something over /dev/full would take the device away.
TEST_F(OutputFileTest, WritesToDevicesDirectly) {
  auto file = OutputFile::create("/dev/full");
  ASSERT_TRUE(file.ok());
  Result<void> result = file->write("x");
  if (result.ok()) result = file->commit();
  ASSERT_FALSE(result.ok());
  EXPECT_THAT(result.error().message, HasSubstr("/dev/full: cannot be written: No space left"));
  EXPECT_TRUE(std::filesystem::is_character_file("/dev/full"));
}

TEST_F(OutputFileTest, SaysWhyItCannotBeCreated) {
  const auto nowhere = OutputFile::create(path("no/such/folder"));
  ASSERT_FALSE(nowhere.ok());
  EXPECT_THAT(nowhere.error().message, HasSubstr("no/such/folder: cannot be created: No such file"));
  EXPECT_THAT(OutputFile::create(folder_).error().message, HasSubstr("Is a directory"));
}

}  // namespace
}  // namespace tidemark
