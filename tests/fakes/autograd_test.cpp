// The recorded autograd nodes of allocations are the nodes that the fake engine was evaluating.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <sstream>

#include "scene.h"

namespace tidemark::testing {
namespace {

using ::testing::IsEmpty;
using Json = nlohmann::json;

/// The parameter is PyTorch's version: 2, or 1 for 1.13.
class AutogradTest : public ::testing::TestWithParam<int> {
 protected:
  AutogradTest() : folder_(::testing::TempDir() + "tidemark-autograd-XXXXXX") {
    if (::mkdtemp(folder_.data()) == nullptr) std::abort();
  }
  ~AutogradTest() override {
    if (!HasFailure()) std::filesystem::remove_all(folder_);
  }

  Scene run(const std::string& options) {
    Scene scene = run_scene(folder_, options, "autograd", GetParam() == 2 ? FAKES_TORCH_2 : FAKES_TORCH_1);
    EXPECT_EQ(scene.status, 0) << scene.messages;
    EXPECT_EQ(scene.recordings.size(), 1U);
    return scene;
  }

  /// The lines of `tidemark dump` of one kind.
  [[nodiscard]] std::vector<Json> records(const Scene& scene, const std::string& kind) const {
    std::vector<Json> found;
    std::ifstream lines(scene.recordings.at(0).path + ".jsonl");
    for (std::string line; std::getline(lines, line);) {
      const Json record = Json::parse(line);
      if (record.contains(kind)) found.push_back(record[kind]);
    }
    return found;
  }

  /// The recorded values of each allocation, in the format of the program's output.
  [[nodiscard]] std::map<std::string, std::string> recorded(const Scene& scene) const {
    const std::vector<Json> strings = records(scene, "string");
    const std::vector<Json> threads = records(scene, "thread");
    const std::vector<Json> nodes = records(scene, "autograd_node");
    std::map<std::string, std::string> lines;
    for (const Json& event : records(scene, "event")) {
      if (event["kind"] != "allocate") continue;
      std::string line = event.value("sequence", Json(0)).dump();
      if (event.contains("autograd_node")) {
        const Json& node = nodes.at(event["autograd_node"]);
        const Json& thread = node["forward_thread"];
        line += " " + strings.at(node["class"])["text"].get<std::string>() + " " + event["node_sequence"].dump() + " " +
                (thread.is_null() ? "-" : threads.at(thread)["tid"].dump());
      } else {
        line += " - - -";
      }
      lines[event["size"].dump()] = line;
    }
    return lines;
  }

  std::string folder_;
};

std::map<std::string, std::string> known(const Scene& scene) {
  std::map<std::string, std::string> lines;
  std::istringstream output(scene.output);
  for (std::string size, rest; output >> size && std::getline(output >> std::ws, rest);) lines[size] = rest;
  return lines;
}

TEST_P(AutogradTest, NodesOfThreadsInsideOneAnotherAndWithExceptions) {
  const Scene scene = run("--stacks none");
  const auto expected = known(scene);
  const auto found = recorded(scene);
  ASSERT_GT(expected.size(), 2000U);
  ASSERT_EQ(found.size(), expected.size());
  std::set<std::string> classes;
  for (const auto& [size, line] : expected) {
    ASSERT_EQ(found.at(size), line) << "of the block of " << size << " bytes";
    classes.insert(line.substr(line.find(' ') + 1, line.find(' ', line.find(' ') + 1)));
  }
  EXPECT_GT(classes.size(), 6U);
  EXPECT_THAT(scene.recordings[0].missing, IsEmpty());
}

TEST_P(AutogradTest, TheHookIsInNoStack) {
  const Scene scene = run("--stacks native");
  EXPECT_EQ(recorded(scene), known(scene));
  const std::vector<Json> strings = records(scene, "string");
  const std::vector<Json> modules = records(scene, "module");
  std::set<std::string> files;
  for (const Json& location : records(scene, "location")) {
    if (location["module"].is_null()) continue;
    const std::string path = strings.at(modules.at(location["module"])["path"])["text"];
    files.insert(std::filesystem::path(path).filename());
  }
  EXPECT_TRUE(files.contains("libtorch_cpu.so"));
  EXPECT_FALSE(files.contains("libtidemark_preload.so"));
}

TEST_P(AutogradTest, AttributeOffRecordsNone) {
  const Scene scene = run("--stacks none --attribute off");
  const auto found = recorded(scene);
  EXPECT_EQ(found.size(), known(scene).size());
  for (const auto& [size, line] : found) EXPECT_EQ(line, "0 - - -");
  EXPECT_THAT(records(scene, "autograd_node"), IsEmpty());
}

INSTANTIATE_TEST_SUITE_P(Torch, AutogradTest, ::testing::Values(2, 1));

}  // namespace
}  // namespace tidemark::testing
