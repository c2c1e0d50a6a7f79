// Work on a separate thread, and the results if no thread can be started.
#include "base/worker.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "http/endpoint.h"
#include "publish/actions/risk_actions.h"
#include "publish/history/history_writer.h"
#include "temporary_folder.h"
#include "unit/publish/no_threads.h"

namespace tidemark {
namespace {

using testing::NoThreads;
using testing::TemporaryFolder;
using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

class WorkerTest : public ::testing::Test {
 protected:
  Worker::Problem problem() {
    return [this](const std::string& text) { problems_.push_back(text); };
  }
  std::vector<std::string> problems_;
  std::vector<int> done_;
};

TEST_F(WorkerTest, DoesAllInOrder) {
  Worker worker(8, problem());
  for (int n = 0; n < 5; ++n) worker.add([this, n] { done_.push_back(n); });
  worker.finish(100s);
  EXPECT_THAT(done_, ElementsAre(0, 1, 2, 3, 4));
  worker.add([this] { done_.push_back(5); });
  EXPECT_EQ(worker.dropped(), 1U);
  EXPECT_TRUE(problems_.empty());
}

TEST_F(WorkerTest, WaitsForAThread) {
  Worker worker(2, problem());
  {
    const NoThreads none;
    for (int n = 0; n < 3; ++n) worker.add([this, n] { done_.push_back(n); });
    EXPECT_TRUE(done_.empty());
    EXPECT_EQ(worker.dropped(), 1U) << "no more is kept than otherwise";
  }
  worker.add([this] { done_.push_back(3); });
  worker.finish(100s);
  EXPECT_EQ(worker.dropped(), 2U);
  EXPECT_THAT(done_, ElementsAre(2, 3));
  ASSERT_EQ(problems_.size(), 1U);
  EXPECT_THAT(problems_[0], StartsWith("no thread can be started ("));
}

TEST_F(WorkerTest, WithoutAnyThreadWorkIsDoneAtTheEnd) {
  const NoThreads none;
  Worker worker(8, problem());
  std::optional<bool> stopping;
  worker.add([&] { stopping = worker.stopping().load(); });
  worker.finish(100s);
  EXPECT_EQ(stopping, true) << "it must not take long";
  EXPECT_EQ(worker.dropped(), 0U);
}

TEST_F(WorkerTest, HistoryIsWrittenWithoutAThread) {
  const NoThreads none;
  const TemporaryFolder folder;
  const std::string path = folder.at("history.db");
  {
    HistoryWriter writer({path, 24h, problem()});
    MachineState state;
    state.now_wall_ns = 1'700'000'000'000'000'000;
    state.host.used.add(0, 5);
    writer.add(state);
  }
  const auto history = read_history(path, {{}, 1'800'000'000'000});
  ASSERT_TRUE(history.ok()) << history.error().message;
  ASSERT_EQ(history->devices.size(), 1U);
  EXPECT_EQ(history->devices[0].peak_bytes, 5U);
  ASSERT_EQ(problems_.size(), 1U);
  EXPECT_THAT(problems_[0], StartsWith(path + ": no thread can be started ("));
}

TEST_F(WorkerTest, NoCommandIsStartedOnlyToBeEnded) {
  const NoThreads none;
  const TemporaryFolder folder;
  {
    RiskActions actions({.actions = {{RiskLevel::high, "touch " + folder.at("ran"), ""}}, .problem = problem()});
    RiskChange change;
    change.now.level = RiskLevel::critical;
    actions.act_on(change, [] { return "{}"; });
  }
  EXPECT_FALSE(std::filesystem::exists(folder.at("ran")));
  ASSERT_EQ(problems_.size(), 2U);
  EXPECT_THAT(problems_[0], StartsWith("commands and webhooks: no thread can be started ("));
  EXPECT_THAT(problems_[1], HasSubstr("the command was not run"));
}

TEST_F(WorkerTest, AnEndpointWithoutAThreadIsAnError) {
  const NoThreads none;
  const auto endpoint = Endpoint::start({"127.0.0.1", 0, ""}, "text/plain", [] { return std::string(); });
  ASSERT_FALSE(endpoint.ok());
  EXPECT_THAT(endpoint.error().message, StartsWith("cannot listen: no thread can be started ("));
}

}  // namespace
}  // namespace tidemark
