// Runs a scene of the test program with the stand-ins for libcuda and CUPTI under `tidemark run`.
#pragma once

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "recorded.h"
#include "temporary_folder.h"

namespace tidemark::testing {

inline constexpr std::int64_t kMiB = 1 << 20;

struct RunOptions {
  nlohmann::json script = nlohmann::json::object();  ///< for the driver and CUPTI: script.h
  std::string run = "--no-samples --driver on --stacks native";
  std::string environment = {};
  std::string program = {};  ///< instead of the scene: its command
  bool is_old_driver = false;
  bool has_cupti = true;
};

struct DriverRun {
  int code = -1;
  std::string output;
  std::string messages;  ///< on stderr
  std::vector<Change> said;
  std::vector<nlohmann::json> log;  ///< all lines of the driver and of CUPTI
  std::vector<DriverRecording> recordings;
};

class DriverTest : public ::testing::Test {
 protected:
  DriverRun run(const std::string& scene, const RunOptions& options = {});

  TemporaryFolder folder_;
};

/// Callbacks that CUPTI delivered.
std::uint64_t delivered(const DriverRun& run);

/// Expects the same changes in the same order; prints the first difference.
void expect_changes(const std::vector<Change>& found, const std::vector<Change>& wanted);

/// All changes of one process are recorded, in order, with their owners, and no loss is recorded.
void expect_recorded(const DriverRun& run);

std::string text_of(const std::string& path);

}  // namespace tidemark::testing
