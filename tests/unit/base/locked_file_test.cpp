// Names that several processes request, and the files that have them.
#include "base/locked_file.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <vector>

#include "temporary_folder.h"

namespace tidemark::testing {
namespace {

using ::testing::HasSubstr;

class LockedFileTest : public ::testing::Test {
 protected:
  [[nodiscard]] static std::string text(const std::string& path) {
    std::ifstream file(path);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  static void put(const ScopedFd& fd, const std::string& bytes) {
    ASSERT_EQ(::write(fd.get(), bytes.data(), bytes.size()), static_cast<ssize_t>(bytes.size()));
  }

  TemporaryFolder folder;
};

TEST_F(LockedFileTest, ANewFileIsForItsOwnerOnly) {
  for (const mode_t mask : {mode_t{0000}, mode_t{0077}}) {
    const std::string path = folder.at("run" + std::to_string(mask));
    const mode_t before = ::umask(mask);
    const auto file = create_locked_file(path, false);
    ::umask(before);
    ASSERT_TRUE(file.ok() && *file);
    struct stat facts {};
    ASSERT_EQ(::stat(path.c_str(), &facts), 0);
    EXPECT_EQ(facts.st_mode & 0777U, 0600U);
  }
}

TEST_F(LockedFileTest, AnExistingFileIsReplacedOnlyWhenAskedTo) {
  const std::string path = folder.write("run", "precious");
  ::chmod(path.c_str(), 0666);
  const auto kept = create_locked_file(path, false);
  EXPECT_TRUE(kept.ok() && !*kept);
  EXPECT_EQ(text(path), "precious");

  std::ifstream reader(path);
  const auto replaced = create_locked_file(path, true);
  ASSERT_TRUE(replaced.ok() && *replaced);
  put(*replaced, "new");
  EXPECT_EQ(text(path), "new");
  EXPECT_EQ(std::string(std::istreambuf_iterator<char>(reader), {}), "precious") << "who has it open keeps it";
  struct stat facts {};
  ASSERT_EQ(::stat(path.c_str(), &facts), 0);
  EXPECT_EQ(facts.st_mode & 0777U, 0600U) << "and not the mode of the file before";
}

TEST_F(LockedFileTest, AFileThatIsBeingWrittenIsNotReplaced) {
  const std::string path = folder.at("run");
  {
    const auto first = create_locked_file(path, true);
    put(*first, "first");
    const auto second = create_locked_file(path, true);
    EXPECT_TRUE(second.ok() && !*second);
    put(*first, " and more");
  }
  EXPECT_EQ(text(path), "first and more");
  EXPECT_TRUE(*create_locked_file(path, true)) << "nobody writes it any more";
}

TEST_F(LockedFileTest, SymbolicLinksAreNotFollowed) {
  const std::string target = folder.write("target", "precious");
  std::filesystem::create_symlink(target, folder.at("link"));
  std::filesystem::create_symlink(folder.at("nowhere"), folder.at("dangling"));
  for (const char* name : {"link", "dangling"}) {
    for (const bool replace : {false, true}) {
      const auto file = create_locked_file(folder.at(name), replace);
      EXPECT_TRUE(file.ok() && !*file) << name;
    }
    EXPECT_TRUE(std::filesystem::is_symlink(folder.at(name)));
  }
  EXPECT_EQ(text(target), "precious");
  EXPECT_FALSE(std::filesystem::exists(folder.at("nowhere")));
}

TEST_F(LockedFileTest, ReadersKnowWhetherSomebodyWrites) {
  ScopedFd writer = create_locked_file(folder.at("run"), false).value();
  const ScopedFd reader(::open(folder.at("run").c_str(), O_RDONLY | O_CLOEXEC));
  EXPECT_EQ(probe_lock(reader), LockState::taken);
  writer.reset();
  EXPECT_EQ(probe_lock(reader), LockState::held);
  EXPECT_EQ(try_lock(ScopedFd(::open(folder.at("run").c_str(), O_WRONLY | O_CLOEXEC))), LockState::held)
      << "nothing is kept of it";
}

TEST_F(LockedFileTest, DevicesAndFolders) {
  std::filesystem::create_symlink("/dev/null", folder.at("null"));
  for (const std::string& path : {std::string("/dev/null"), folder.at("null")}) {
    EXPECT_TRUE(*create_locked_file(path, true)) << path;
    EXPECT_FALSE(*create_locked_file(path, false)) << path;
  }
  EXPECT_THAT(create_locked_file(folder.path(), true).error().message, HasSubstr("Is a directory"));
  EXPECT_THAT(create_locked_file(folder.at("no/run"), true).error().message, HasSubstr("No such file or directory"));
  EXPECT_TRUE(std::filesystem::is_character_file("/dev/null"));
}

// Each writes its number into its file, and leaves: the last one's file has the name, and no file has two numbers.
TEST_F(LockedFileTest, ManyProcessesWantTheSameName) {
  const std::string path = folder.at("run");
  constexpr int kProcesses = 16;
  std::array<int, 2> start{};
  ASSERT_EQ(::pipe(start.data()), 0);
  std::vector<pid_t> children;
  for (int number = 0; number < kProcesses; ++number) {
    children.push_back(::fork());
    if (children.back() != 0) continue;
    ::close(start[1]);
    char nothing = 0;
    if (::read(start[0], &nothing, 1) != 0) ::_exit(2);
    const char digit = static_cast<char>('a' + number);
    for (int round = 0; round < 200; ++round) {
      const auto file = create_locked_file(path, true);
      if (!file.ok()) ::_exit(3);
      if (!*file) continue;
      for (int count = 0; count < 5; ++count) {
        if (::write(file->get(), &digit, 1) != 1) ::_exit(4);
      }
      // As long as it is locked, the name is its own.
      struct stat open {};
      struct stat named {};
      if (::fstat(file->get(), &open) != 0 || ::stat(path.c_str(), &named) != 0 || open.st_ino != named.st_ino ||
          open.st_size != 5) {
        ::_exit(5);
      }
    }
    ::_exit(0);
  }
  ::close(start[0]);
  ::close(start[1]);
  for (const pid_t child : children) {
    int status = -1;
    ::waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
  }
  EXPECT_EQ(text(path).size(), 5U);
}

}  // namespace
}  // namespace tidemark::testing
