// Real failures on GPUs, made for known causes by scripts/record_snapshots.py, compared with PyTorch's own messages.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <string>

#include "analyze/oom/explain.h"
#include "analyze/usage/table.h"
#include "import/open.h"
#include "unit/import/recorded_snapshots.h"

namespace tidemark {
namespace {

using pytorch::testing::truth_of;

const std::string kFolder = TIDEMARK_SNAPSHOTS "/";

Store load(const std::string& path) {
  auto store = open_store(path);
  EXPECT_TRUE(store.ok());
  return std::move(*store);
}

Explanation explain(const Store& store, const ExplainOptions& options) {
  Symbols symbols(store.definitions);
  auto result = analyze_explain(store, symbols, options);
  EXPECT_TRUE(result.ok());
  return *result;
}

bool advises(const OomFailure& failure, OomFixKind kind) {
  return std::any_of(failure.fixes.begin(), failure.fixes.end(), [&](const OomFix& fix) { return fix.kind == kind; });
}

struct Case {
  const char* name;
  OomCause cause;
  const char* holder;  // the stack that holds most
  OomFixKind change;   // the first one
};

void PrintTo(const Case& real, std::ostream* out) {
  *out << real.name;
}

constexpr Case kCases[] = {
    {"oom_demand", OomCause::demand, "load_weights", OomFixKind::smaller_request},
    {"oom_fragmentation", OomCause::fragmentation, "leave_holes", OomFixKind::free_blocks},
    {"oom_fragmentation_expandable", OomCause::fragmentation, "leave_holes", OomFixKind::free_blocks},
    {"oom_other_stream", OomCause::fragmentation, "leave_holes", OomFixKind::free_blocks},
    {"oom_private_pool", OomCause::fragmentation, "load_weights", OomFixKind::smaller_request},
    {"oom_capture", OomCause::fragmentation, "", OomFixKind::smaller_request},
    {"oom_limit", OomCause::limit, "load_weights", OomFixKind::free_blocks},
    {"oom_leak", OomCause::leak, "load_weights", OomFixKind::stop_leak},
    {"oom_other_process", OomCause::other_process, "load_weights", OomFixKind::free_device},
    {"oom_retried", OomCause::demand, "load_weights", OomFixKind::smaller_request},
};

class RealFailure : public ::testing::TestWithParam<Case> {};

TEST_P(RealFailure, MatchesPyTorchsMessage) {
  const std::string path = kFolder + GetParam().name;
  const Store store = load(path + ".pickle.xz");
  const nlohmann::json truth = truth_of(path).at("failures");
  const auto total = truth.back().at("total_bytes").get<std::uint64_t>();
  ExplainOptions options;
  options.capacity = total;
  const Explanation explanation = explain(store, options);
  ASSERT_FALSE(explanation.failures.empty());
  EXPECT_EQ(explanation.failed_requests, truth.size());
  const OomFailure& failure = explanation.failures[0];
  const nlohmann::json& last = truth.back();
  const auto value = [&](const char* name) { return last.at(name).get<std::uint64_t>(); };
  EXPECT_EQ(failure.request.segment, value("segment_bytes")) << "\"Tried to allocate\"";
  EXPECT_EQ(failure.device_free, value("device_free_bytes"));
  EXPECT_EQ(failure.allocated, value("allocated_bytes"));
  EXPECT_EQ(failure.reserved, value("reserved_bytes"));
  EXPECT_EQ(failure.cached.value(), value("reserved_bytes") - value("active_bytes"));
  EXPECT_EQ(failure.outside, total - value("reserved_bytes") - value("device_free_bytes"));
  if (value("allowed_bytes") < total) {
    ASSERT_TRUE(failure.limit);
    EXPECT_LE(failure.limit->at_least, value("allowed_bytes"));
    EXPECT_GT(failure.limit->below, value("allowed_bytes"));
  } else {
    EXPECT_FALSE(failure.limit);
  }
}

TEST_P(RealFailure, HasItsCauseAndHolder) {
  const Store store = load(kFolder + GetParam().name + ".pickle.xz");
  const OomFailure failure = explain(store, {}).failures.at(0);
  EXPECT_EQ(failure.cause, GetParam().cause);
  ASSERT_FALSE(failure.fixes.empty());
  EXPECT_EQ(failure.fixes[0].kind, GetParam().change);
  const auto calls = [](const NamedStack& stack, const std::string& function) {
    for (const FrameName& frame : stack.frames) {
      if (frame.function == function) return true;
    }
    return function.empty();
  };
  ASSERT_FALSE(failure.top_allocations.empty());
  EXPECT_TRUE(calls(failure.top_allocations[0].stack, GetParam().holder));
}

INSTANTIATE_TEST_SUITE_P(Causes, RealFailure, ::testing::ValuesIn(kCases),
                         [](const auto& param) { return param.param.name; });

TEST(RealFailures, EqualFailuresAreMerged) {
  const Explanation explanation = explain(load(kFolder + "oom_retried.pickle.xz"), {});
  EXPECT_EQ(explanation.failed_requests, 4U);
  ASSERT_EQ(explanation.failures.size(), 3U);
  EXPECT_EQ(explanation.failures[0].count, 2U);
  EXPECT_EQ(explanation.failures[0].request.bytes, std::uint64_t{16} << 30);
  EXPECT_EQ(explanation.failures[2].request.bytes, std::uint64_t{32} << 30);
}

// PyTorch's message: 38 GiB were reserved by an unused private pool.
TEST(RealFailures, PrivatePool) {
  const OomFailure failure = explain(load(kFolder + "oom_private_pool.pickle.xz"), {}).failures.at(0);
  EXPECT_EQ(failure.cache->whole_in_private_pools, std::uint64_t{38} << 30);
  EXPECT_TRUE(advises(failure, OomFixKind::empty_private_pool));
}

// Half of the device was free but kept, in one segment, while the graph was captured.
TEST(RealFailures, Capture) {
  const OomFailure failure = explain(load(kFolder + "oom_capture.pickle.xz"), {}).failures.at(0);
  EXPECT_EQ(failure.cache->whole_in_default_pool, std::uint64_t{39} << 30);
  EXPECT_FALSE(failure.pool) << "it was private, and this version of PyTorch does not say so";
  EXPECT_TRUE(advises(failure, OomFixKind::empty_cache_before));
}

// Each step kept 1200 MiB (record_snapshots.py, remember_loss).
TEST(RealFailures, Leak) {
  const OomFailure failure = explain(load(kFolder + "oom_leak.pickle.xz"), {}).failures.at(0);
  ASSERT_EQ(failure.leaks.size(), 1U);
  EXPECT_NEAR(failure.leaks[0].growth.bytes_per_step.value, 1200 << 20, 1);
}

// Made with a limit of 1 GiB, without stacks; two failures each.
TEST(RealFailures, LimitOfOneGibibyte) {
  for (const char* name : {"out_of_memory", "out_of_memory_expandable", "out_of_memory_max_split"}) {
    const Explanation explanation = explain(load(kFolder + name + ".pickle.xz"), {});
    EXPECT_EQ(explanation.failed_requests, 2U) << name;
    for (const OomFailure& failure : explanation.failures) {
      EXPECT_EQ(failure.findings.front().cause, OomCause::limit) << name;
      EXPECT_LE(failure.limit->at_least, std::uint64_t{1} << 30) << name;
      EXPECT_GT(failure.limit->below, std::uint64_t{1} << 30) << name;
      EXPECT_FALSE(failure.fitting_block) << name;
    }
  }
}

// The message: 876.00 MiB requested, 135.66 GiB free, 4.19 GiB allowed, 3.04 GiB allocated, 363.11 MiB cached.
TEST(RealFailures, SharedSnapshotOfAGrowingBatch) {
  const std::string path = pytorch::testing::shared_snapshots({"oom"})[0] + ".pickle.xz";
  if (!std::filesystem::exists(path)) GTEST_SKIP() << path << " is absent";
  const Store store = load(path);
  ExplainOptions options;
  options.top = 0;
  const OomFailure failure = explain(store, options).failures.at(0);
  const auto gib = [](double value) { return static_cast<std::uint64_t>(value * (1 << 30)); };
  EXPECT_EQ(failure.request.segment, std::uint64_t{876} << 20);
  EXPECT_EQ(failure.request.bytes, 917'504'000U) << "as the file has it";
  EXPECT_GE(*failure.device_free, gib(135.655));
  EXPECT_LT(*failure.device_free, gib(135.665));
  EXPECT_GE(failure.allocated, gib(3.035));
  EXPECT_LT(failure.allocated, gib(3.045));
  EXPECT_NEAR(static_cast<double>(*failure.cached) / (1 << 20), 363.11, 0.005);
  EXPECT_EQ(failure.cause, OomCause::limit);
  EXPECT_LE(failure.limit->at_least, gib(4.195));
  EXPECT_GT(failure.limit->below, gib(4.185));

  // The largest holders, as the table has them.
  std::uint64_t held = 0;
  for (const TopAllocation& allocation : failure.top_allocations) held += allocation.bytes;
  EXPECT_EQ(held, failure.allocated);
  Symbols symbols(store.definitions);
  TableOptions at;
  at.at = {Moment::Kind::time, failure.last_ns, 0};
  const auto table = analyze_table(store, symbols, at);
  ASSERT_TRUE(table.ok());
  for (std::size_t row = 0; row < 5; ++row) {
    EXPECT_EQ(failure.top_allocations.at(row).bytes, table->sections.at(0).rows.at(row).bytes);
    EXPECT_EQ(failure.top_allocations.at(row).blocks, table->sections.at(0).rows.at(row).blocks);
  }
}

}  // namespace
}  // namespace tidemark
