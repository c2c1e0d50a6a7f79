#include "tui/flight_recorder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "temporary_folder.h"

namespace tidemark::tui {
namespace {

using ::testing::HasSubstr;

TEST(FlightRecorder, ArgumentsThatKeepOnSignal) {
  EXPECT_TRUE(dumps_on_signal({"tidemark", "run", "--keep", "10min", "--", "python", "train.py"}));
  EXPECT_TRUE(dumps_on_signal({"/opt/bin/tidemark", "run", "-o", "x.tide", "--keep=2GiB", "python"}));
  EXPECT_TRUE(dumps_on_signal({"tidemark", "run", "--keep", "10min", "--dump", "on-oom,on-signal", "--", "python"}));
  EXPECT_TRUE(dumps_on_signal({"tidemark", "run", "--stacks", "python", "--keep", "1min", "--", "python"}));
}

TEST(FlightRecorder, OthersWouldPassTheSignalOn) {
  EXPECT_FALSE(dumps_on_signal({}));
  EXPECT_FALSE(dumps_on_signal({"tidemark", "run", "--", "python", "--keep", "10min"}));
  EXPECT_FALSE(dumps_on_signal({"tidemark", "run", "python", "--keep", "10min"}));
  EXPECT_FALSE(dumps_on_signal({"tidemark", "run", "--quiet", "python", "--keep", "10min"}));
  EXPECT_FALSE(dumps_on_signal({"tidemark", "run", "--keep", "10min", "--dump", "on-oom", "--", "python"}));
  EXPECT_FALSE(dumps_on_signal({"tidemark", "run", "--keep", "10min", "--dump=on-exit-code", "--", "python"}));
  EXPECT_FALSE(dumps_on_signal({"python", "run", "--keep", "10min"}));
  EXPECT_FALSE(dumps_on_signal({"tidemark", "summary", "--keep", "10min"}));
}

class ProcFolder {
 public:
  void add(int pid, int parent, const std::string& command_line) {
    const std::filesystem::path process = folder_.path() + "/proc/" + std::to_string(pid);
    std::filesystem::create_directories(process);
    std::ofstream(process / "cmdline") << command_line;
    std::ofstream(process / "status") << "Name:\tx\nPid:\t" << pid << "\nPPid:\t" << parent << "\n";
  }
  [[nodiscard]] std::string root() const { return folder_.path(); }

 private:
  tidemark::testing::TemporaryFolder folder_;
};

TEST(FlightRecorder, IsFoundAboveAProcess) {
  using namespace std::string_literals;
  ProcFolder proc;
  proc.add(10, 1,
           "tidemark\0run\0--keep\0"
           "10min\0--\0sh\0"s);
  proc.add(11, 10, "sh\0"s);
  proc.add(12, 11, "python\0train.py\0"s);
  proc.add(20, 1, "tidemark\0run\0--\0python\0"s);
  proc.add(21, 20, "python\0"s);
  proc.add(30, 1, "python\0"s);
  const auto found = find_flight_recorder(12, proc.root());
  ASSERT_TRUE(found);
  EXPECT_EQ(*found, 10);
  EXPECT_THAT(find_flight_recorder(21, proc.root()).error().message, HasSubstr("recorded whole, by process 20"));
  EXPECT_THAT(find_flight_recorder(30, proc.root()).error().message, HasSubstr("no flight recorder"));
  EXPECT_THAT(find_flight_recorder(99, proc.root()).error().message, HasSubstr("no flight recorder"));
}

}  // namespace
}  // namespace tidemark::tui
