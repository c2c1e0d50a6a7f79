// Real training without a leak: 2-layer and 12-layer models, fixed and random shapes, with stacks and without.
#include <gtest/gtest.h>

#include <filesystem>
#include <tuple>

#include "analyze/leaks.h"
#include "import/open.h"

namespace tidemark {
namespace {

struct Run {
  const char* name;
  std::size_t steps;  // that the program made
  LeakVerdict verdict;
  std::size_t more = 0;  // steps found beyond these, by chance repetition of sizes
};

void PrintTo(const Run& run, std::ostream* out) {
  *out << run.name;
}

class LeaksOfSnapshot : public ::testing::TestWithParam<Run> {};

TEST_P(LeaksOfSnapshot, HasStepsAndNoLeak) {
  const std::string path = std::string(TIDEMARK_SHARED_SNAPSHOTS "/") + GetParam().name + ".pickle.xz";
  if (!std::filesystem::exists(path)) GTEST_SKIP() << path << " is not there";
  const auto store = open_store(path);
  ASSERT_TRUE(store.ok()) << store.error().message;
  Symbols symbols(store->definitions);
  const auto leaks = analyze_leaks(*store, symbols, {});
  ASSERT_TRUE(leaks.ok());
  EXPECT_EQ(leaks->verdict, GetParam().verdict);
  EXPECT_GE(leaks->steps.starts.size(), GetParam().steps);
  EXPECT_LE(leaks->steps.starts.size(), GetParam().steps + GetParam().more);
  EXPECT_TRUE(leaks->leaks.empty());
}

INSTANTIATE_TEST_SUITE_P(Shared, LeaksOfSnapshot,
                         ::testing::Values(Run{"healthy", 60, LeakVerdict::no_leak},
                                           Run{"lora_python_stacks", 40, LeakVerdict::no_leak},
                                           Run{"lora_native_stacks", 40, LeakVerdict::no_leak},
                                           Run{"varlen", 60, LeakVerdict::no_leak},
                                           Run{"varlen_expandable", 60, LeakVerdict::no_leak, 3},
                                           Run{"varlen_max_split_64", 60, LeakVerdict::no_leak, 3},
                                           Run{"oom", 6, LeakVerdict::insufficient_data}),
                         [](const auto& run) { return std::string(run.param.name); });

}  // namespace
}  // namespace tidemark
