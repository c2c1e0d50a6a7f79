#include "collect/recorder/session/output_files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <filesystem>
#include <memory>
#include <vector>

#include "temporary_folder.h"

namespace tidemark::testing {
namespace {

using ::testing::HasSubstr;

class OutputFilesTest : public ::testing::Test {
 protected:
  /// Name, within the folder, of the process's file; the error's message if it gets none.
  std::string open(OutputFiles& files, std::optional<std::int32_t> rank, std::int64_t pid,
                   std::optional<std::int32_t> world_size = std::nullopt) {
    ProcessInfo process;
    process.rank = rank;
    process.world_size = world_size;
    process.pid = pid;
    auto file = files.open_next(process);
    if (!file.ok()) return file.error().message;
    EXPECT_TRUE(std::filesystem::exists(file->path));
    EXPECT_NE(file->sink, nullptr);
    open_files.push_back(std::move(file->sink));
    return std::filesystem::path(file->path).filename().string();
  }

  TemporaryFolder folder;
  std::vector<std::unique_ptr<Sink>> open_files;  ///< recordings in progress
};

TEST_F(OutputFilesTest, FirstProcessGetsRequestedNameOthersTheirPid) {
  OutputFiles files(folder.at("run.tide"), false);
  EXPECT_EQ(open(files, std::nullopt, 100), "run.tide");
  EXPECT_EQ(open(files, std::nullopt, 101), "run.pid101.tide");
  EXPECT_EQ(open(files, std::nullopt, 102), "run.pid102.tide");
  EXPECT_EQ(open(files, std::nullopt, 101), "run.pid101.2.tide") << "after exec";
  EXPECT_EQ(open(files, std::nullopt, 101), "run.pid101.3.tide");
}

TEST_F(OutputFilesTest, RanksAreNamedAfterTheirNumber) {
  OutputFiles files(folder.at("job.tide"), false);
  EXPECT_EQ(open(files, 3, 103), "job.rank3.tide") << "a rank leaves the plain name alone, even when it is first";
  EXPECT_EQ(open(files, 0, 100), "job.rank0.tide");
  EXPECT_EQ(open(files, 3, 203), "job.rank3.pid203.tide") << "a child of rank 3";
  EXPECT_EQ(open(files, 0, 201), "job.rank0.pid201.tide");
  EXPECT_EQ(open(files, 3, 203), "job.rank3.2.tide");
  EXPECT_EQ(open(files, std::nullopt, 1), "job.tide") << "the launcher";
}

TEST_F(OutputFilesTest, TheOnlyRankOfAJobNeedsNoNumber) {
  OutputFiles files(folder.at("job.tide"), false);
  EXPECT_EQ(open(files, 0, 100, 1), "job.tide");
  EXPECT_EQ(open(files, 0, 101, 1), "job.pid101.tide") << "its child";
  EXPECT_EQ(open(files, 2, 102, 1), "job.rank2.tide") << "a launcher whose sizes are of something else";
  EXPECT_EQ(first_output("a.b/job.tide", 0, 1), "a.b/job.tide");
  EXPECT_EQ(first_output("a.b/job.tide", 0, 2), "a.b/job.rank0.tide");
  EXPECT_EQ(first_output("a.b/job.tide", std::nullopt, 2), "a.b/job.tide");
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
  EXPECT_EQ(open(files, std::nullopt, 6), "run.2.tide");
  EXPECT_EQ(open(files, std::nullopt, 7), "run.2.pid7.tide") << "the names of a run go together";
  EXPECT_EQ(std::filesystem::file_size(folder.at("run.tide")), 8U);
  EXPECT_EQ(std::filesystem::file_size(folder.at("run.pid7.tide")), 8U);
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

// Three runs at once with -f, or with a name made from the same second: `mpirun tidemark run -f` of an unknown
// launcher.
TEST_F(OutputFilesTest, RunsAtTheSameTimeHaveFilesOfTheirOwn) {
  for (const bool overwrite : {false, true}) {
    const std::string name = overwrite ? "forced" : "named";
    std::vector<OutputFiles> runs;
    runs.reserve(3);
    for (int count = 0; count < 3; ++count) runs.emplace_back(folder.at(name + ".tide"), overwrite);
    EXPECT_EQ(open(runs[0], std::nullopt, 10), name + ".tide");
    EXPECT_EQ(open(runs[1], std::nullopt, 20), name + ".2.tide");
    EXPECT_EQ(open(runs[2], std::nullopt, 30), name + ".3.tide");
    EXPECT_EQ(open(runs[0], std::nullopt, 11), name + ".pid11.tide");
    EXPECT_EQ(open(runs[1], std::nullopt, 21), name + ".2.pid21.tide");
    EXPECT_EQ(open(runs[0], 1, 12), name + ".rank1.tide");
    EXPECT_EQ(open(runs[2], 1, 31), name + ".3.rank1.tide");
  }
}

TEST_F(OutputFilesTest, ARunKeepsItsNamesUntilItEnds) {
  auto first = std::make_unique<OutputFiles>(folder.at("run.tide"), true);
  EXPECT_EQ(open(*first, std::nullopt, 10), "run.tide");
  EXPECT_EQ(open(*first, 1, 11), "run.rank1.tide");
  const std::array<std::byte, 10> frame{};
  for (const auto& file : open_files) ASSERT_TRUE(file->append(frame).ok());
  open_files.clear();  // the processes have ended, the run has not
  OutputFiles second(folder.at("run.tide"), true);
  EXPECT_EQ(open(second, 1, 21), "run.rank1.pid21.tide");
  EXPECT_EQ(open(second, std::nullopt, 20), "run.2.tide");
  first = nullptr;
  OutputFiles third(folder.at("run.tide"), true);
  EXPECT_EQ(open(third, std::nullopt, 30), "run.tide");
}

TEST_F(OutputFilesTest, ARecordingThatIsDeletedWhileItIsWrittenFails) {
  OutputFiles files(folder.at("run.tide"), false);
  EXPECT_EQ(open(files, std::nullopt, 1), "run.tide");
  const std::array<std::byte, 10> frame{};
  EXPECT_TRUE(open_files[0]->append(frame).ok());
  std::filesystem::remove(folder.at("run.tide"));
  EXPECT_THAT(open_files[0]->append(frame).error().message, HasSubstr("run.tide: was deleted"));
}

TEST_F(OutputFilesTest, AFolderThatDoesNotExist) {
  OutputFiles files(folder.at("nowhere/run.tide"), false);
  EXPECT_THAT(open(files, std::nullopt, 1), HasSubstr("No such file or directory"));
  EXPECT_THAT(open(files, 1, 2), HasSubstr("No such file or directory"));
}

}  // namespace
}  // namespace tidemark::testing
