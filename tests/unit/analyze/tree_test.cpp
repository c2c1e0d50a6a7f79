#include "analyze/usage/tree.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "unit/store/store_scenario.h"

namespace tidemark {
namespace {

using ::testing::ElementsAre;
using testing::kCpu;
using testing::Scenario;

// "depth function bytes/blocks", in the order of the list.
std::vector<std::string> lines(const TreeSection& section) {
  std::vector<std::string> text;
  for (const TreeNode& node : section.nodes) {
    text.push_back(std::to_string(node.depth) + " " + node.frame.function + " " + std::to_string(node.bytes) + "/" +
                   std::to_string(node.blocks));
  }
  return text;
}

class TreeTest : public ::testing::Test {
 protected:
  TreeTest() {
    const LocationId main = scenario_.python("main", "t.py", 1);
    const LocationId load = scenario_.python("load", "t.py", 2);
    const LocationId train = scenario_.python("train", "t.py", 3);
    const LocationId forward = scenario_.python("forward", "t.py", 4);
    const StackId root = scenario_.push({}, main);
    const StackId training = scenario_.push(root, train);
    scenario_.allocate(1, "a", 100, kCpu, scenario_.push(root, load));
    scenario_.allocate(2, "b", 500, kCpu, scenario_.push(training, forward));
    scenario_.allocate(3, "c", 200, kCpu, scenario_.push(training, forward));  // the same frames as another node
    scenario_.allocate(4, "d", 50, kCpu, training);
    scenario_.allocate(5, "e", 10, kCpu, root);
    scenario_.allocate(6, "f", 140);
  }
  TreeSection section(const TreeOptions& options) {
    const Store store = scenario_.store();
    Symbols symbols(store.definitions);
    return analyze_tree(store, symbols, options)->sections.at(0);
  }

  Scenario scenario_;
};

TEST_F(TreeTest, AddsUpFromTheLeaves) {
  const TreeSection tree = section({});
  EXPECT_THAT(lines(tree), ElementsAre("0 main 860/5", "1 train 750/3", "2 forward 700/2", "1 load 100/1"));
  EXPECT_EQ(tree.allocated_bytes, 1000U);
  EXPECT_EQ(tree.blocks, 6U);
  EXPECT_EQ(tree.no_stack_bytes, 140U);
  EXPECT_EQ(tree.no_stack_blocks, 1U);
  EXPECT_EQ(tree.nodes[0].own_bytes, 10U);
  EXPECT_EQ(tree.nodes[1].own_bytes, 50U);
  EXPECT_EQ(tree.nodes[1].own_blocks, 1U);
  EXPECT_DOUBLE_EQ(tree.nodes[0].share, 0.86);
}

TEST_F(TreeTest, LeavesOutSmallShares) {
  TreeOptions options;
  options.min_share = 0.2;
  const TreeSection tree = section(options);
  EXPECT_THAT(lines(tree), ElementsAre("0 main 860/5", "1 train 750/3", "2 forward 700/2"));
  EXPECT_EQ(tree.nodes[0].hidden.count, 1U);
  EXPECT_EQ(tree.nodes[0].hidden.bytes, 100U);
}

TEST_F(TreeTest, StopsAtTheDepth) {
  TreeOptions options;
  options.depth = 1;
  const TreeSection tree = section(options);
  EXPECT_THAT(lines(tree), ElementsAre("0 main 860/5"));
  EXPECT_EQ(tree.nodes[0].hidden.count, 2U);
  EXPECT_EQ(tree.nodes[0].hidden.blocks, 4U);
}

TEST_F(TreeTest, OrdersByCount) {
  const LocationId many = scenario_.python("many", "t.py", 9);
  const StackId stack = scenario_.stack({many});
  for (int index = 0; index < 10; ++index) scenario_.allocate(7, "m" + std::to_string(index), 1, kCpu, stack);
  TreeOptions options;
  options.by_count = true;
  options.depth = 1;
  const TreeSection tree = section(options);
  EXPECT_THAT(lines(tree), ElementsAre("0 many 10/10", "0 main 860/5"));
  EXPECT_DOUBLE_EQ(tree.nodes[0].share, 10.0 / 16);
}

TEST_F(TreeTest, SurvivesAStackOfAMillionFrames) {
  StackId node;
  const LocationId frame = scenario_.python("recurse", "t.py", 5);
  for (int depth = 0; depth < 1'000'000; ++depth) node = scenario_.push(node, frame);
  scenario_.allocate(7, "deep", 1'000'000, kCpu, node);
  const TreeSection tree = section({});
  EXPECT_EQ(tree.nodes.size(), TreeOptions::kMaxDepth);  // the fixture's own blocks are below 1% now
  EXPECT_EQ(tree.hidden.bytes, 860U);
  EXPECT_EQ(tree.nodes.back().hidden.bytes, 1'000'000U);
}

TEST(Tree, LeavesOutFramesThatOnlyRunPython) {
  Scenario scenario;
  const LocationId start = scenario.native("/no/python3", 0x10);
  const LocationId evaluate = scenario.native("/no/libpython.so", 0x20);
  const LocationId empty = scenario.native("/no/libtorch.so", 0x30);
  const StackId main = scenario.stack({start, scenario.python("main", "t.py", 1)});
  const StackId running = scenario.push(main, evaluate);
  scenario.allocate(1, "a", 100, kCpu, scenario.push(scenario.push(running, scenario.python("f", "t.py", 2)), empty));
  scenario.allocate(2, "b", 30, kCpu, scenario.push(main, empty));  // native code that main calls itself
  const Store store = scenario.store();
  Symbols symbols(store.definitions);
  TreeOptions options;
  options.skip_interpreter = true;
  EXPECT_THAT(lines(analyze_tree(store, symbols, options)->sections.at(0)),
              ElementsAre("0 main 130/2", "1 f 100/1", "2 libtorch.so+0x30 100/1", "1 libtorch.so+0x30 30/1"));
  // A frame that allocates itself stays, whatever it runs.
  scenario.allocate(3, "c", 7, kCpu, running);
  const Store with_own = scenario.store();
  Symbols names(with_own.definitions);
  const TreeSection tree = analyze_tree(with_own, names, options)->sections.at(0);
  EXPECT_THAT(lines(tree), ElementsAre("0 main 137/3", "1 libpython.so+0x20 107/2", "2 f 100/1",
                                       "3 libtorch.so+0x30 100/1", "1 libtorch.so+0x30 30/1"));
}

TEST(Tree, FramesOfLibrariesAreMergedIntoTheirCallers) {
  constexpr const char* kModule = "/venv/lib/python3.11/site-packages/torch/nn/modules/module.py";
  Scenario scenario;
  const LocationId main = scenario.python("main", "t.py", 1);
  const LocationId call = scenario.python("_call_impl", kModule, 2);
  const LocationId copy = scenario.python("deepcopy", "/usr/lib/python3.11/copy.py", 3);
  const LocationId forward = scenario.python("forward", "model.py", 4);
  const LocationId native = scenario.native("libtorch.so", 16);
  const auto stack = [&](const std::vector<LocationId>& frames) { return scenario.stack(frames); };
  scenario.allocate(1, "a", 500, kCpu, stack({native, main, call, call, forward, native}));
  scenario.allocate(2, "b", 200, kCpu, stack({native, main, copy, forward, call}));
  scenario.allocate(3, "c", 60, kCpu, stack({native, main, copy}));
  scenario.allocate(4, "d", 30, kCpu, stack({native, call}));
  scenario.allocate(5, "e", 10);
  TreeOptions options;
  options.project_only = true;
  options.min_share = 0;
  const Store store = scenario.store();
  Symbols symbols(store.definitions);
  const TreeSection tree = analyze_tree(store, symbols, options)->sections.at(0);
  EXPECT_THAT(lines(tree), ElementsAre("0 main 760/3", "1 forward 700/2"));
  EXPECT_EQ(tree.nodes[0].own_bytes, 60U);
  EXPECT_EQ(tree.nodes[0].own_blocks, 1U);
  EXPECT_EQ(tree.nodes[1].own_bytes, 700U);
  EXPECT_EQ(tree.outside_bytes, 30U);
  EXPECT_EQ(tree.outside_blocks, 1U);
  EXPECT_EQ(tree.no_stack_bytes, 10U);
  EXPECT_EQ(tree.allocated_bytes, 800U);
}

}  // namespace
}  // namespace tidemark
