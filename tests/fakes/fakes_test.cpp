// All events of the fakes of PyTorch's libraries are recorded, and reach c10 unchanged.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <algorithm>
#include <filesystem>
#include <set>
#include <sstream>

#include "scene.h"

namespace tidemark::testing {
namespace {

using ::testing::IsEmpty;

/// The parameter is PyTorch's version: 2, or 1 for 1.13.
class FakesTest : public ::testing::TestWithParam<int> {
 protected:
  FakesTest() : folder_(::testing::TempDir() + "tidemark-fakes-XXXXXX") {
    if (::mkdtemp(folder_.data()) == nullptr) std::abort();
  }
  ~FakesTest() override {
    if (!HasFailure()) std::filesystem::remove_all(folder_);
  }

  Scene run(const std::string& name, const std::string& options = "--stacks none") {
    Scene scene = run_scene(folder_, options, name, GetParam() == 2 ? FAKES_TORCH_2 : FAKES_TORCH_1);
    EXPECT_FALSE(scene.said.empty()) << scene.messages;
    return scene;
  }

  std::string folder_;
};

/// The reports reached c10's own functions unchanged, thread by thread.
void expect_heard(const Scene& scene) {
  std::map<std::int64_t, std::vector<Said>> said;
  std::map<std::int64_t, std::vector<Said>> heard;
  for (const Said& entry : scene.said) {
    if (entry.kind != fakes::Kind::mark) said[entry.tid].push_back(entry);
  }
  for (Said entry : scene.heard) {
    if (entry.kind == fakes::Kind::free) entry.size = -entry.size;  // frees are reported to c10 with negative sizes
    if (entry.kind != fakes::Kind::profiler) heard[entry.tid].push_back(entry);
  }
  EXPECT_TRUE(said == heard);
}

/// The first difference of two lists of lines: lists of thousands are not readable.
void expect_lines(const std::vector<std::string>& found, const std::vector<std::string>& wanted) {
  const auto [at, other] = std::mismatch(found.begin(), found.end(), wanted.begin(), wanted.end());
  if (at == found.end() && other == wanted.end()) return;
  ADD_FAILURE() << "line " << at - found.begin() << " of " << found.size() << " and " << wanted.size() << "\n  found  "
                << (at == found.end() ? "the end" : *at) << "\n  wanted "
                << (other == wanted.end() ? "the end" : *other);
}

/// Each thread's events are recorded in order, and nothing else is.
void expect_recorded(const std::vector<Line>& expected, const Dumped& recording) {
  const auto wanted = by_thread(expected);
  const auto found = by_thread(recording.events);
  ASSERT_EQ(found.size(), wanted.size());
  for (const auto& [tid, lines] : wanted) {
    ASSERT_TRUE(found.contains(tid)) << "thread " << tid;
    expect_lines(found.at(tid), lines);
  }
  EXPECT_TRUE(recording.in_time_order);
  EXPECT_THAT(recording.missing, IsEmpty());
}

std::vector<Line> of_process(const std::vector<Line>& lines, std::int64_t pid) {
  std::vector<Line> out;
  std::copy_if(lines.begin(), lines.end(), std::back_inserter(out),
               [pid](const Line& line) { return line.pid == pid; });
  return out;
}

/// Events of devices other than the CPU: their allocator holds a lock, so all of them have one order.
std::vector<Line> of_devices(const std::vector<Line>& lines) {
  std::vector<Line> out;
  std::copy_if(lines.begin(), lines.end(), std::back_inserter(out),
               [](const Line& line) { return line.text.find(" cpu") == std::string::npos; });
  return out;
}

TEST_P(FakesTest, EveryEventOfEveryThreadAndDevice) {
  const Scene scene = run("threads");
  EXPECT_EQ(scene.status, 0);
  EXPECT_EQ(scene.messages, "");
  expect_heard(scene);
  ASSERT_EQ(scene.recordings.size(), 1U);
  const std::vector<Line> expected = expected_lines(scene.said);
  EXPECT_GT(expected.size(), 8000U);
  expect_recorded(expected, scene.recordings[0]);
  EXPECT_TRUE(of_devices(expected) == of_devices(scene.recordings[0].events)) << "across threads too";
  EXPECT_TRUE(scene.recordings[0].process_exited);
  EXPECT_EQ(scene.recordings[0].threads, 4U);
  const auto profiled = std::count_if(scene.heard.begin(), scene.heard.end(),
                                      [](const Said& entry) { return entry.kind == fakes::Kind::profiler; });
  EXPECT_GT(profiled, 50) << "the profiler was told of CPU memory, and the recording has it once";
}

TEST_P(FakesTest, SummaryAgreesWithTheAllocatorsOwnCounters) {
  const Scene scene = run("threads");
  ASSERT_EQ(scene.recordings.size(), 1U);
  const nlohmann::json summary = tidemark_json("summary --format json " + scene.recordings[0].path);
  std::map<std::string, nlohmann::json> devices;
  for (const auto& device : summary["devices"]) devices[device["device"]] = device;
  std::istringstream counters(scene.output);
  std::size_t compared = 0;
  int type = 0;
  int index = 0;
  std::uint64_t allocated = 0, peak_allocated = 0, peak_reserved = 0, allocations = 0, frees = 0;
  while (counters >> type >> index >> allocated >> peak_allocated >> peak_reserved >> allocations >> frees) {
    const std::string name = device_name(type, index);
    ASSERT_TRUE(devices.contains(name)) << name;
    const nlohmann::json& device = devices[name];
    EXPECT_EQ(device["peak_allocated_bytes"], peak_allocated) << name;
    EXPECT_EQ(device["peak_reserved_bytes"], peak_reserved) << name;
    EXPECT_EQ(device["end_allocated_bytes"], allocated) << name;
    EXPECT_EQ(device["allocation_count"], allocations) << name;
    EXPECT_EQ(device["free_count"], frees) << name;
    ++compared;
  }
  EXPECT_EQ(compared, 5U);
  EXPECT_EQ(devices.size(), 6U) << "and the CPU";
  EXPECT_TRUE(summary["data_quality"]["complete"]);

  // The CPU's allocator keeps no counters: its events are summed.
  std::map<std::uint64_t, std::uint64_t> live;
  for (const Said& entry : scene.said) {
    if (entry.kind == fakes::Kind::cpu_new) live[entry.address] = static_cast<std::uint64_t>(entry.size);
    if (entry.kind == fakes::Kind::cpu_delete) live.erase(entry.address);
  }
  std::uint64_t bytes = 0;
  for (const auto& [address, size] : live) bytes += size;
  EXPECT_EQ(devices["cpu"]["end_allocated_bytes"], bytes);
}

TEST_P(FakesTest, AKilledProgramLosesNothing) {
  const Scene scene = run("killed");
  EXPECT_TRUE(WIFSIGNALED(scene.status) || WEXITSTATUS(scene.status) == 128 + SIGKILL);
  ASSERT_EQ(scene.recordings.size(), 1U);
  expect_recorded(expected_lines(scene.said), scene.recordings[0]);
}

TEST_P(FakesTest, AForkedChildHasARecordingOfItsOwn) {
  const Scene scene = run("forks");
  EXPECT_EQ(scene.status, 0);
  expect_heard(scene);
  ASSERT_EQ(scene.recordings.size(), 2U);
  const std::vector<Line> expected = expected_lines(scene.said);
  for (const Dumped& recording : scene.recordings) {
    expect_recorded(of_process(expected, recording.pid), recording);
    EXPECT_TRUE(recording.process_exited);
  }
  EXPECT_EQ(scene.recordings[0].pid, scene.said[0].pid) << "the parent's is the one with the plain name";
}

TEST_P(FakesTest, LanesPassFromThreadToThread) {
  const Scene scene = run("succession");
  ASSERT_EQ(scene.recordings.size(), 1U);
  expect_recorded(expected_lines(scene.said), scene.recordings[0]);
  EXPECT_GT(scene.recordings[0].threads, 512U) << "more than there are lanes";
}

TEST_P(FakesTest, ThreadsBeyondTheLimitAreCounted) {
  const Scene scene = run("crowd");
  EXPECT_EQ(scene.status, 0);
  expect_heard(scene);
  ASSERT_EQ(scene.recordings.size(), 1U);
  const Dumped& recording = scene.recordings[0];
  const std::vector<Line> expected = expected_lines(scene.said);
  ASSERT_EQ(expected.size(), 1200U);
  const std::uint64_t lost = recording.missing.contains("thread_limit") ? recording.missing.at("thread_limit") : 0;
  EXPECT_GE(lost, 600U - 512U);
  EXPECT_EQ(recording.events.size() + lost, expected.size());
  EXPECT_EQ(recording.missing.size(), 1U);
  std::set<std::pair<std::int64_t, std::string>> known;
  for (const Line& line : expected) known.insert({line.tid, line.text});
  for (const Line& line : recording.events) {
    // The block of a thread that came too late is freed by one that has a lane.
    if (line.text.find(" - ") != std::string::npos) continue;
    EXPECT_TRUE(known.contains({line.tid, line.text})) << line.text;
  }
}

TEST_P(FakesTest, TheCollectorMayComeLater) {
  const Scene scene = run("late", "--stacks none --manual");
  EXPECT_EQ(scene.status, 0) << scene.messages;
  expect_heard(scene);
  ASSERT_EQ(scene.recordings.size(), 1U);
  const auto mark = std::find_if(scene.said.begin(), scene.said.end(),
                                 [](const Said& entry) { return entry.kind == fakes::Kind::mark; });
  ASSERT_NE(mark, scene.said.end());
  const std::vector<Line> expected = expected_lines(scene.said, static_cast<std::size_t>(mark - scene.said.begin()));
  expect_recorded(expected, scene.recordings[0]);
  const auto unknown = std::count_if(expected.begin(), expected.end(),
                                     [](const Line& line) { return line.text.find(" -") != std::string::npos; });
  EXPECT_GE(unknown, 2) << "frees of what was allocated before";
  std::istringstream output(scene.output);
  std::size_t slots = 0;
  std::size_t more = 0;
  output >> slots >> more;
  EXPECT_EQ(more, slots + 1) << "the one of the library that came later still";
}

TEST_P(FakesTest, LibrariesMayBeUnloaded) {
  const Scene scene = run("unloads");
  EXPECT_EQ(scene.status, 0) << scene.messages;
  expect_heard(scene);
  ASSERT_EQ(scene.recordings.size(), 1U);
  expect_recorded(expected_lines(scene.said), scene.recordings[0]);
}

TEST_P(FakesTest, ASignalBetweenAnyTwoInstructions) {
  const Scene scene = run("interruptions");
  if (WEXITSTATUS(scene.status) == 77) GTEST_SKIP() << "no single steps on this processor";
  EXPECT_EQ(scene.status, 0) << scene.messages;
  ASSERT_EQ(scene.recordings.size(), 9U);
  const std::vector<Line> expected = expected_lines(scene.said);
  for (const Dumped& recording : scene.recordings) {
    const std::vector<Line> said = of_process(expected, recording.pid);
    const std::uint64_t lost = recording.missing.contains("reentrant") ? recording.missing.at("reentrant") : 0;
    EXPECT_GT(said.size(), 50U);
    EXPECT_GT(lost, 10U);
    EXPECT_EQ(recording.events.size() + lost, said.size());
    // No two have the same address. All interrupted events are recorded.
    std::set<std::pair<std::int64_t, std::string>> known;
    std::size_t interrupted = 0;
    for (const Line& line : said) {
      known.insert({line.tid, line.text});
      if (line.text.find("cuda:4") != std::string::npos) ++interrupted;
    }
    for (const Line& line : recording.events) {
      EXPECT_TRUE(known.contains({line.tid, line.text})) << line.text;
      if (line.text.find("cuda:4") != std::string::npos) --interrupted;
    }
    EXPECT_EQ(interrupted, 0U);
    EXPECT_EQ(recording.missing.size(), 1U);
    EXPECT_EQ(recording.threads, by_thread(said).size()) << "no thread takes a second lane";
  }
}

INSTANTIATE_TEST_SUITE_P(Torch, FakesTest, ::testing::Values(2, 1));

}  // namespace
}  // namespace tidemark::testing
