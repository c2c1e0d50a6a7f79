#include "trace/sink.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <filesystem>
#include <fstream>
#include <span>
#include <vector>

namespace tidemark {
namespace {

using ::testing::HasSubstr;

std::string fresh_path(const char* name) {
  std::string path = ::testing::TempDir() + name;
  std::filesystem::remove(path);
  return path;
}

TEST(FileSink, CreatesFilesForTheOwnerOnlyAndReplacesNone) {
  const std::string path = fresh_path("tidemark_sink_new");
  const ::mode_t old_mask = ::umask(0);
  auto sink = open_file_sink(path, false);
  ::umask(old_mask);
  ASSERT_TRUE(sink.ok());
  struct ::stat facts {};
  ASSERT_EQ(::stat(path.c_str(), &facts), 0);
  EXPECT_EQ(facts.st_mode & 0777U, 0600U);
  const auto again = open_file_sink(path, false);
  ASSERT_FALSE(again.ok());
  EXPECT_THAT(again.error().message, HasSubstr(path));
  EXPECT_THAT(again.error().message, HasSubstr("File exists"));
  EXPECT_THAT(open_file_sink(path, true).error().message, HasSubstr("is being written"));
  sink->reset();
  EXPECT_TRUE(open_file_sink(path, true).ok());
  std::filesystem::remove(path);
}

TEST(FileSink, LeavesNoEmptyFile) {
  const std::string path = fresh_path("tidemark_sink_empty");
  auto sink = open_file_sink(path, false);
  EXPECT_TRUE(std::filesystem::exists(path));
  sink->reset();
  EXPECT_FALSE(std::filesystem::exists(path));
}

// Somebody gave the empty file another name and put a file of theirs in its place.
TEST(FileSink, DeletesNothingButItsOwnFile) {
  const std::string path = fresh_path("tidemark_sink_replaced");
  auto sink = open_file_sink(path, false);
  std::filesystem::rename(path, path + ".moved");
  std::ofstream(path) << "theirs";
  sink->reset();
  EXPECT_EQ(std::filesystem::file_size(path), 6U);
  EXPECT_TRUE(std::filesystem::exists(path + ".moved"));
  std::filesystem::remove(path);
  std::filesystem::remove(path + ".moved");
}

TEST(FileSink, SaysWhyAFileCannotBeCreated) {
  const auto sink = open_file_sink("/nonexistent/run.tide", false);
  ASSERT_FALSE(sink.ok());
  EXPECT_THAT(sink.error().message, HasSubstr("/nonexistent/run.tide"));
  EXPECT_THAT(sink.error().message, HasSubstr("No such file or directory"));
}

TEST(FileSink, CutsAPartlyWrittenFrameOff) {
  const std::string path = fresh_path("tidemark_sink_full");
  const auto sink = open_file_sink(path, false);
  ASSERT_TRUE(sink.ok());
  const std::array<std::byte, 3000> frame{};
  ASSERT_TRUE((*sink)->append(frame).ok());

  // A file size limit stands in for a full disk: write() comes back short, then fails with EFBIG.
  struct ::rlimit old_limit {};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &old_limit), 0);
  const auto old_handler = ::signal(SIGXFSZ, SIG_IGN);
  struct ::rlimit limit = old_limit;
  limit.rlim_cur = 4000;
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &limit), 0);
  const Result<void> failed = (*sink)->append(frame);
  ::setrlimit(RLIMIT_FSIZE, &old_limit);
  ::signal(SIGXFSZ, old_handler);

  ASSERT_FALSE(failed.ok());
  EXPECT_THAT(failed.error().message, HasSubstr("File too large"));
  EXPECT_THAT(failed.error().message, HasSubstr("after 3000 bytes"));
  EXPECT_EQ(std::filesystem::file_size(path), 3000U);
  std::filesystem::remove(path);
}

// If no more bytes fit, the last frame is dropped to make room; the file's first is kept.
TEST(FileSink, MakesRoomForWhatEndsTheFile) {
  const std::string path = fresh_path("tidemark_sink_last");
  const auto sink = open_file_sink(path, false);
  ASSERT_TRUE(sink.ok());
  std::array<std::byte, 1000> frame{};
  for (int count = 0; count < 3; ++count) ASSERT_TRUE((*sink)->append(frame).ok());
  struct ::rlimit old_limit {};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &old_limit), 0);
  const auto old_handler = ::signal(SIGXFSZ, SIG_IGN);
  struct ::rlimit limit = old_limit;
  limit.rlim_cur = 3000;
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &limit), 0);
  EXPECT_FALSE((*sink)->append(frame).ok());
  EXPECT_EQ((*sink)->failure_reason(), "File too large");
  frame.fill(std::byte{7});
  const auto size = (*sink)->append_last(std::span(frame).first(100));
  const auto too_large = (*sink)->append_last(std::vector<std::byte>(5000));
  ::setrlimit(RLIMIT_FSIZE, &old_limit);
  ::signal(SIGXFSZ, old_handler);

  ASSERT_TRUE(size.ok()) << size.error().message;
  EXPECT_EQ(*size, 2100U);
  EXPECT_FALSE(too_large.ok());
  EXPECT_GE(std::filesystem::file_size(path), 1000U);
  std::filesystem::remove(path);
}

TEST(FileSink, ReportsAFullDevice) {
  if (!std::filesystem::exists("/dev/full")) GTEST_SKIP() << "no /dev/full here";
  const auto sink = open_file_sink("/dev/full", true);
  ASSERT_TRUE(sink.ok());
  const std::array<std::byte, 10> frame{};
  const Result<void> failed = (*sink)->append(frame);
  ASSERT_FALSE(failed.ok());
  EXPECT_THAT(failed.error().message, HasSubstr("No space left on device"));
}

}  // namespace
}  // namespace tidemark
