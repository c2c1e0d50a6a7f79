// Other than regular files are not even opened, according to the kernel's notifications of opening.
#include "base/regular_file.h"

#include <gtest/gtest.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <filesystem>

#include "temporary_folder.h"

namespace tidemark {
namespace {

class RegularFile : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_GE(::inotify_add_watch(notices_.get(), folder_.at("").c_str(), IN_OPEN), 0); }
  /// Whether something in the folder was opened since the last call.
  bool was_opened() {
    std::array<char, 4096> events{};
    return ::read(notices_.get(), events.data(), events.size()) > 0;
  }

  testing::TemporaryFolder folder_;
  ScopedFd notices_{::inotify_init1(IN_NONBLOCK | IN_CLOEXEC)};
};

TEST_F(RegularFile, IsOpened) {
  const std::string path = folder_.write("file", "text");
  std::filesystem::create_symlink("file", folder_.at("link"));
  (void)was_opened();
  for (const std::string& name : {path, folder_.at("link")}) {
    const auto fd = open_regular_file(name);
    ASSERT_TRUE(fd.ok()) << fd.error().message;
    EXPECT_TRUE(was_opened());
    std::array<char, 8> bytes{};
    EXPECT_EQ(::read(fd->get(), bytes.data(), bytes.size()), 4);
  }
}

TEST_F(RegularFile, IsOpenedByALinkUnlessLinksAreRefused) {
  const std::string path = folder_.write("file", "text");
  std::filesystem::create_symlink("file", folder_.at("link"));
  EXPECT_TRUE(open_regular_file(path, Symlinks::refused).ok());
  (void)was_opened();
  const auto fd = open_regular_file(folder_.at("link"), Symlinks::refused);
  ASSERT_FALSE(fd.ok());
  EXPECT_EQ(fd.error().message, "not a regular file");
  EXPECT_FALSE(was_opened());
}

TEST_F(RegularFile, NothingElseIs) {
  ASSERT_EQ(::mkfifo(folder_.at("fifo").c_str(), 0600), 0);
  std::filesystem::create_directory(folder_.at("folder"));
  std::filesystem::create_symlink("fifo", folder_.at("link"));
  for (const char* name : {"fifo", "folder", "link"}) {
    const auto fd = open_regular_file(folder_.at(name));
    ASSERT_FALSE(fd.ok()) << name;
    EXPECT_EQ(fd.error().message, "not a regular file");
    EXPECT_FALSE(was_opened()) << name;
  }
  EXPECT_EQ(open_regular_file("/dev/tty").error().message, "not a regular file");
  EXPECT_EQ(open_regular_file(folder_.at("none")).error().message, "cannot be opened: No such file or directory");
}

}  // namespace
}  // namespace tidemark
