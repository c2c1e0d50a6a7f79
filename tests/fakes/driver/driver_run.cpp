#include "driver_run.h"

#include <gmock/gmock.h>
#include <sys/wait.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>

namespace tidemark::testing {

using nlohmann::json;

std::string text_of(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

DriverRun DriverTest::run(const std::string& scene, const RunOptions& options) {
  const std::string folder = folder_.path();
  const std::string script = folder_.write("script.json", options.script.dump());
  const std::string libraries = (options.is_old_driver ? std::string(FAKES_DRIVER_OLD) : std::string(FAKES_DRIVER)) +
                                (options.has_cupti ? ":" FAKES_CUPTI : "");
  const std::string program =
      options.program.empty() ? FAKES_DRIVER_PROGRAM " " + scene + " " FAKES_LIBRARIES : options.program;
  const std::string command = options.environment + " LD_LIBRARY_PATH=" FAKES_NVML_FOLDER ":" + libraries +
                              " FAKES_CUDA=" + script + " FAKES_CUDA_LOG=" + folder +
                              "/log timeout -k 5 60 " TIDEMARK_PROGRAM " run " + options.run + " -o " + folder +
                              "/run.tide -- " + program + " >" + folder + "/out 2>" + folder + "/err";
  DriverRun result;
  result.code = WEXITSTATUS(std::system(command.c_str()));
  result.output = text_of(folder + "/out");
  result.messages = text_of(folder + "/err");
  result.said = said_changes(folder + "/log");
  std::istringstream lines(text_of(folder + "/log"));
  for (std::string line; std::getline(lines, line);) result.log.push_back(json::parse(line));
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() == ".tide") result.recordings.push_back(driver_recording(entry.path()));
  }
  return result;
}

std::uint64_t delivered(const DriverRun& result) {
  std::uint64_t count = 0;
  for (const json& line : result.log) count += line.value("delivered", std::uint64_t{0});
  return count;
}

void expect_changes(const std::vector<Change>& found, const std::vector<Change>& wanted) {
  const auto [at, other] = std::mismatch(found.begin(), found.end(), wanted.begin(), wanted.end());
  if (at == found.end() && other == wanted.end()) return;
  ADD_FAILURE() << "change " << at - found.begin() << " of " << found.size() << " and " << wanted.size()
                << "\n  recorded " << (at == found.end() ? "the end" : ::testing::PrintToString(*at)) << "\n  said     "
                << (other == wanted.end() ? "the end" : ::testing::PrintToString(*other));
}

void expect_recorded(const DriverRun& result) {
  EXPECT_EQ(result.code, 0) << result.messages;
  ASSERT_EQ(result.recordings.size(), 1U) << result.messages;
  const DriverRecording& recording = result.recordings[0];
  expect_changes(recording.changes, result.said);
  EXPECT_THAT(recording.missing, ::testing::IsEmpty());
  EXPECT_EQ(recording.unsized_frees, 0U);
  EXPECT_TRUE(recording.in_time_order);
}

}  // namespace tidemark::testing
