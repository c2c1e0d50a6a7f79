#include "analyze/common/stack_matching.h"

#include <gtest/gtest.h>

#include "unit/store/store_scenario.h"

namespace tidemark {
namespace {

using testing::Scenario;

std::vector<std::uint32_t> numbers(StackMatcher& matcher, const Scenario& scenario) {
  Symbols symbols(scenario.definitions);
  return matcher.numbers(scenario.definitions, symbols);
}

TEST(StackMatching, IdsAndFoldersDoNotMatter) {
  Scenario a;
  const StackId one = a.stack({a.python("main", "/a/train.py", 1), a.python("f", "/a/f.py", 2)});
  const StackId two = a.stack({a.python("main", "/a/train.py", 1), a.python("g", "/a/f.py", 2)});
  Scenario b;
  const StackId second = b.stack({b.python("main", "/b/train.py", 1), b.python("g", "f.py", 2)});
  const StackId first = b.stack({b.python("main", "/b/train.py", 1), b.python("f", "f.py", 2)});
  StackMatcher matcher(StackMatching{});
  const auto in_a = numbers(matcher, a);
  const auto in_b = numbers(matcher, b);
  EXPECT_EQ(in_a[one.value], in_b[first.value]);
  EXPECT_EQ(in_a[two.value], in_b[second.value]);
  EXPECT_NE(in_a[one.value], in_a[two.value]);
}

TEST(StackMatching, CallersLinesFilesAndFunctionsMatter) {
  Scenario scenario;
  const LocationId main = scenario.python("main", "train.py", 1);
  const StackId stacks[] = {scenario.stack({main, scenario.python("f", "f.py", 2)}),
                            scenario.stack({scenario.python("f", "f.py", 2)}),
                            scenario.stack({main, main, scenario.python("f", "f.py", 2)}),
                            scenario.stack({main, scenario.python("f", "g.py", 2)}),
                            scenario.stack({main, scenario.python("g", "f.py", 2)}),
                            scenario.stack({main, scenario.python("f", "f.py", 3)})};
  StackMatcher matcher(StackMatching{});
  const auto found = numbers(matcher, scenario);
  for (const StackId& left : stacks) {
    for (const StackId& right : stacks) {
      EXPECT_EQ(found[left.value] == found[right.value], left == right);
    }
  }
  StackMatching without_lines;
  without_lines.lines = false;
  StackMatcher loose(without_lines);
  const auto loosely = numbers(loose, scenario);
  EXPECT_EQ(loosely[stacks[0].value], loosely[stacks[5].value]);
  EXPECT_NE(loosely[stacks[0].value], loosely[stacks[3].value]);
}

TEST(StackMatching, FramesOfOneKindAreLeftOut) {
  Scenario both;
  const LocationId python = both.python("main", "train.py", 1);
  const LocationId native = both.native("/nonexistent/libtorch.so", 0x10);
  const StackId mixed = both.stack({native, python, native});
  const StackId native_only = both.stack({native});
  Scenario plain;
  const StackId main = plain.stack({plain.python("main", "train.py", 1)});
  StackMatcher matcher(choose_matching(both.overview(), plain.overview(), false));
  const auto in_both = numbers(matcher, both);
  EXPECT_EQ(in_both[mixed.value], numbers(matcher, plain)[main.value]);
  EXPECT_EQ(in_both[native_only.value], StackMatcher::kNoStack);
}

TEST(StackMatching, GeneratedFilesAreLeftOutAndGraphsMatter) {
  const auto line = [](Scenario& scenario, CompiledGraph graph) {
    const LocationId location = scenario.python("forward", "model.py", 7);
    scenario.definitions.locations[location.value].graph = graph;
    return location;
  };
  Scenario a;
  const StackId forward_a =
      a.stack({a.python("call", "/a/l3/cl3czezrfhlxlkyqa7lcsczlodotrwm7xakshby5unruyedmyxoa.py", 1),
               line(a, CompiledGraph::forward)});
  Scenario b;
  const StackId forward_b =
      b.stack({b.python("call", "/b/l4/cl4czezrfhlxlkyqa7lcsczlodotrwm7xakshby5unruyedmyxoa.py", 2),
               line(b, CompiledGraph::forward)});
  Scenario c;
  const StackId backward = c.stack({line(c, CompiledGraph::backward)});
  StackMatcher matcher(StackMatching{});
  const std::uint32_t found = numbers(matcher, a)[forward_a.value];
  EXPECT_EQ(numbers(matcher, b)[forward_b.value], found);
  EXPECT_NE(numbers(matcher, c)[backward.value], found);
}

TEST(StackMatching, CountsTheFramesThatBothHave) {
  Scenario python;
  python.python("main", "train.py", 1);
  Scenario both = python;
  both.native("/nonexistent/libtorch.so", 0x10);
  const Scenario none;
  EXPECT_TRUE(choose_matching(both.overview(), both.overview(), false).native_frames);
  EXPECT_FALSE(choose_matching(python.overview(), both.overview(), false).native_frames);
  EXPECT_TRUE(choose_matching(python.overview(), both.overview(), false).python_frames);
  EXPECT_FALSE(choose_matching(python.overview(), none.overview(), false).python_frames);
  EXPECT_FALSE(choose_matching(python.overview(), python.overview(), true).lines);
  Overview snapshot = both.overview();
  snapshot.source.kind = SourceKind::pytorch_snapshot;
  EXPECT_FALSE(choose_matching(both.overview(), snapshot, false).native_frames);
  EXPECT_TRUE(choose_matching(snapshot, snapshot, false).native_frames);
}

TEST(StackMatching, ClassesCountWhenBothPythonsNameThem) {
  Scenario with;
  with.definitions.process.python_version = "3.11.7";
  const StackId qualified = with.stack({with.python("make.<locals>.Net.forward", "model.py", 31)});
  Scenario without;
  without.definitions.process.python_version = "3.9.18";
  const StackId plain = without.stack({without.python("forward", "model.py", 31)});
  EXPECT_TRUE(choose_matching(with.overview(), with.overview(), false).qualified_names);
  EXPECT_FALSE(choose_matching(without.overview(), with.overview(), false).qualified_names);
  StackMatcher matcher(choose_matching(with.overview(), without.overview(), false));
  EXPECT_EQ(numbers(matcher, with)[qualified.value], numbers(matcher, without)[plain.value]);
}

}  // namespace
}  // namespace tidemark
