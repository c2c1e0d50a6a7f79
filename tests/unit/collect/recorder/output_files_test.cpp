#include "collect/recorder/output_files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "temporary_folder.h"

namespace tidemark::testing {
namespace {

using ::testing::HasSubstr;

class OutputFilesTest : public ::testing::Test {
 protected:
  /// Name, within the folder, of the file that the process gets; the error's message when it gets none.
  static std::string open(OutputFiles& files, std::optional<std::int32_t> rank, std::int64_t pid) {
    ProcessInfo process;
    process.rank = rank;
    process.pid = pid;
    auto file = files.open_next(process);
    if (!file.ok()) return file.error().message;
    EXPECT_TRUE(std::filesystem::exists(file->path));
    EXPECT_NE(file->sink, nullptr);
    return std::filesystem::path(file->path).filename().string();
  }

  TemporaryFolder folder;
};

TEST_F(OutputFilesTest, TheFirstProcessGetsTheNameAskedForOthersTheirPid) {
  OutputFiles files(folder.at("run.tide"), false);
  EXPECT_EQ(open(files, std::nullopt, 100), "run.tide");
  EXPECT_EQ(open(files, std::nullopt, 101), "run.pid101.tide");
  EXPECT_EQ(open(files, std::nullopt, 102), "run.pid102.tide");
  EXPECT_EQ(open(files, std::nullopt, 101), "run.pid101.2.tide") << "after exec";
  EXPECT_EQ(open(files, std::nullopt, 101), "run.pid101.3.tide");
}

TEST_F(OutputFilesTest, RanksAreNamedAfterTheirNumber) {
  OutputFiles files(folder.at("job.tide"), false);
  EXPECT_EQ(open(files, 3, 103), "job.rank3.tide");
  EXPECT_EQ(open(files, 0, 100), "job.rank0.tide") << "so that job.rank*.tide has all";
  EXPECT_EQ(open(files, 3, 203), "job.rank3.pid203.tide") << "a child of rank 3";
  EXPECT_EQ(open(files, 0, 200), "job.rank0.pid200.tide") << "a child of rank 0";
  EXPECT_EQ(open(files, std::nullopt, 99), "job.tide") << "the launcher, should it allocate";
  EXPECT_EQ(open(files, 3, 203), "job.rank3.2.tide");
}

TEST_F(OutputFilesTest, NamesWithoutAnExtensionAndFoldersWithDots) {
  std::filesystem::create_directory(folder.at("of.v2"));
  OutputFiles files(folder.at("of.v2/recording"), false);
  EXPECT_EQ(open(files, std::nullopt, 1), "recording");
  EXPECT_EQ(open(files, std::nullopt, 2), "recording.pid2");
  EXPECT_TRUE(std::filesystem::exists(folder.at("of.v2/recording.pid2")));
}

TEST_F(OutputFilesTest, ExistingFilesAreKept) {
  folder.write("run.tide", "precious");
  folder.write("run.pid7.tide", "precious");
  OutputFiles files(folder.at("run.tide"), false);
  EXPECT_THAT(open(files, std::nullopt, 6), HasSubstr("run.tide"));
  EXPECT_EQ(std::filesystem::file_size(folder.at("run.tide")), 8U);
  OutputFiles others(folder.at("run.tide"), false);
  EXPECT_EQ(open(others, 2, 7), "run.rank2.tide");
  folder.write("run.rank4.tide", "precious");
  EXPECT_EQ(open(others, 4, 8), "run.rank4.pid8.tide");
  EXPECT_EQ(std::filesystem::file_size(folder.at("run.rank4.tide")), 8U);
}

TEST_F(OutputFilesTest, ExistingFilesAreReplacedWhenAskedTo) {
  folder.write("run.tide", "old");
  folder.write("run.pid7.tide", "old");
  OutputFiles files(folder.at("run.tide"), true);
  EXPECT_EQ(open(files, std::nullopt, 6), "run.tide");
  EXPECT_EQ(open(files, std::nullopt, 7), "run.pid7.tide");
  EXPECT_EQ(open(files, std::nullopt, 7), "run.pid7.2.tide") << "not one of this run's own";
  EXPECT_EQ(std::filesystem::file_size(folder.at("run.tide")), 0U);
  EXPECT_EQ(std::filesystem::file_size(folder.at("run.pid7.tide")), 0U);
}

TEST_F(OutputFilesTest, AFolderThatDoesNotExist) {
  OutputFiles files(folder.at("nowhere/run.tide"), false);
  EXPECT_THAT(open(files, std::nullopt, 1), HasSubstr("No such file or directory"));
  EXPECT_THAT(open(files, 1, 2), HasSubstr("No such file or directory"));
}

}  // namespace
}  // namespace tidemark::testing
