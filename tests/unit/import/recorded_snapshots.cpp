#include "unit/import/recorded_snapshots.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace tidemark::pytorch::testing {
namespace {

constexpr std::string_view kTruth = ".truth.json";

std::vector<std::string> in_folder(const char* folder) {
  std::vector<std::string> found;
  if (folder == nullptr) return found;
  for (const auto& file : std::filesystem::directory_iterator(folder)) {
    const std::string path = file.path().string();
    if (path.ends_with(kTruth)) found.push_back(path.substr(0, path.size() - kTruth.size()));
  }
  std::sort(found.begin(), found.end());
  return found;
}

}  // namespace

std::vector<std::string> snapshots_of_settings() {
  return in_folder(TIDEMARK_SNAPSHOTS);
}

std::vector<std::string> shared_snapshots(std::initializer_list<const char*> names) {
  std::vector<std::string> paths;
  for (const char* name : names) paths.push_back(std::string(TIDEMARK_SHARED_SNAPSHOTS "/") + name);
  return paths;
}

std::vector<std::string> more_snapshots() {
  return in_folder(std::getenv("TIDEMARK_MORE_SNAPSHOTS"));
}

void RecordedSnapshot::SetUp() {
  const std::string path = GetParam() + ".pickle.xz";
  if (!std::filesystem::exists(path)) GTEST_SKIP() << path << " is absent";
}

std::string test_name(const ::testing::TestParamInfo<std::string>& info) {
  return std::filesystem::path(info.param).filename().string();
}

nlohmann::json truth_of(const std::string& path) {
  return nlohmann::json::parse(std::ifstream(path + std::string(kTruth)));
}

bool agree(const MemoryTotals& actual, const MemoryTotals& expected, std::uint64_t uncertain) {
  const auto near = [&](std::uint64_t a, std::uint64_t b) { return (a > b ? a - b : b - a) <= uncertain; };
  return actual.reserved == expected.reserved && actual.requested == expected.requested &&
         near(actual.allocated, expected.allocated) && near(actual.active, expected.active) &&
         near(actual.inactive_split, expected.inactive_split);
}

}  // namespace tidemark::pytorch::testing
