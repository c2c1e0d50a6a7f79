// Actions on a risk: their rate, their input, and misbehaving commands.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <mutex>
#include <string>
#include <thread>

#include "base/scoped_fd.h"
#include "http/curl_api.h"
#include "monitor/risk_notifier.h"
#include "publish/actions/risk_actions.h"
#include "temporary_folder.h"
#include "unit/http/http_peer.h"

namespace tidemark {
namespace {

using testing::TemporaryFolder;
using namespace std::chrono_literals;
using ::testing::HasSubstr;
using ::testing::Not;

const std::atomic<bool> kNever = false;

std::string content_of(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

RiskChange change(RiskLevel before, RiskLevel now, const std::string& device = "0") {
  RiskChange made;
  made.device = device;
  made.before = before;
  made.now.level = now;
  return made;
}

TEST(RateLimit, LetsTheSameThroughOnceAnInterval) {
  RateLimit limit(60s);
  const RateLimit::Clock::time_point start{};
  EXPECT_TRUE(limit.allow("0 critical", start));
  EXPECT_FALSE(limit.allow("0 critical", start + 59s));
  EXPECT_TRUE(limit.allow("1 critical", start + 59s));
  EXPECT_TRUE(limit.allow("0 critical", start + 60s));
  EXPECT_FALSE(limit.allow("0 critical", start + 119s));
}

TEST(OnRisk, IsCalledForRisesFromItsLevelOn) {
  std::vector<RiskLevel> told;
  const RiskListener listener = on_risk(RiskLevel::high, [&](const RiskChange& one) { told.push_back(one.now.level); });
  listener(change(RiskLevel::low, RiskLevel::medium));
  listener(change(RiskLevel::medium, RiskLevel::high));
  listener(change(RiskLevel::high, RiskLevel::critical));
  listener(change(RiskLevel::critical, RiskLevel::high));
  EXPECT_THAT(told, ::testing::ElementsAre(RiskLevel::high, RiskLevel::critical));
}

TEST(Command, GetsTheTextOnStdinAndItsOutputGoesNowhere) {
  const TemporaryFolder folder;
  const std::string text(300'000, 'x');  // more than a pipe holds
  ::testing::internal::CaptureStdout();
  ::testing::internal::CaptureStderr();
  const auto ran = run_command("cat > " + folder.at("got") + "; echo out; echo err >&2", text, 10s, kNever);
  EXPECT_EQ(::testing::internal::GetCapturedStdout() + ::testing::internal::GetCapturedStderr(), "");
  EXPECT_TRUE(ran.ok());
  EXPECT_EQ(content_of(folder.at("got")), text);
  EXPECT_TRUE(run_command("exit 0", text, 10s, kNever).ok());  // it reads nothing
}

// Libraries open some that would be inherited: libcurl's connections.
TEST(Command, GetsNoDescriptorsOfThisProcess) {
  const TemporaryFolder folder;
  const ScopedFd open(::open(folder.at("open").c_str(), O_WRONLY | O_CREAT, 0600));  // NOLINT: without O_CLOEXEC
  ASSERT_TRUE(open);
  ASSERT_TRUE(run_command("ls -l /proc/$$/fd > " + folder.at("got"), "", 10s, kNever).ok());
  const std::string got = content_of(folder.at("got"));
  EXPECT_THAT(got, HasSubstr("tidemark-assessment"));
  EXPECT_THAT(got, Not(HasSubstr(folder.at("open"))));
}

TEST(Command, FailuresAreSaid) {
  EXPECT_THAT(run_command("exit 3", "", 10s, kNever).error().message, HasSubstr("exit code 3"));
  EXPECT_THAT(run_command("kill -TERM $$", "", 10s, kNever).error().message, HasSubstr("signal 15"));
  EXPECT_THAT(run_command("sleep 100", "", 50ms, kNever).error().message, HasSubstr("after 0.05 s"));
  const TemporaryFolder folder;
  std::atomic<bool> stop = false;
  std::thread stopping([&] {
    while (!std::filesystem::exists(folder.at("runs"))) std::this_thread::sleep_for(1ms);
    stop = true;
  });
  const std::string command = "touch " + folder.at("runs") + "; sleep 100";
  EXPECT_THAT(run_command(command, "", 100s, stop).error().message, HasSubstr("with this program"));
  stopping.join();
  EXPECT_THAT(run_command("sleep 100", "", 100s, stop).error().message, HasSubstr("not run"));
  EXPECT_EQ(::waitpid(-1, nullptr, WNOHANG), -1);  // no child is left, not even a zombie
}

class RiskActionsTest : public ::testing::Test {
 protected:
  RiskActionOptions options(std::vector<RiskAction> actions) {
    RiskActionOptions made;
    made.actions = std::move(actions);
    made.problem = [this](const std::string& text) {
      const std::lock_guard lock(mutex_);
      problems_.push_back(text);
    };
    return made;
  }
  const TemporaryFolder folder_;
  std::mutex mutex_;
  std::vector<std::string> problems_;
};

TEST_F(RiskActionsTest, RunOnceForADeviceAndLevel) {
  const std::string high = folder_.at("high");
  const std::string critical = folder_.at("critical");
  {
    RiskActions actions(
        options({{RiskLevel::critical, "cat >> " + critical, ""}, {RiskLevel::high, "cat >> " + high, ""}}));
    const auto json = [](const char* text) { return [text] { return std::string(text); }; };
    actions.act_on(change(RiskLevel::low, RiskLevel::high), json("1"));
    actions.act_on(change(RiskLevel::high, RiskLevel::critical), json("2"));
    actions.act_on(change(RiskLevel::high, RiskLevel::critical), json("3"));      // within the interval
    actions.act_on(change(RiskLevel::critical, RiskLevel::high), json("4"));      // no rise
    actions.act_on(change(RiskLevel::low, RiskLevel::critical, "1"), json("5"));  // another device
  }
  EXPECT_EQ(content_of(critical), "25");
  EXPECT_EQ(content_of(high), "125");
  EXPECT_TRUE(problems_.empty());
}

TEST_F(RiskActionsTest, HangingActionDelaysNoOther) {
  const std::string file = folder_.at("file");
  {
    RiskActions actions(options({{RiskLevel::high, "until [ -e " + file + " ]; do sleep 0.01; done", ""},
                                 {RiskLevel::high, "touch " + file, ""}}));
    actions.act_on(change(RiskLevel::low, RiskLevel::high), [] { return std::string("{}"); });
  }
  EXPECT_TRUE(problems_.empty());
  EXPECT_TRUE(std::filesystem::exists(file));
}

TEST_F(RiskActionsTest, FailuresAreSaid) {
  {
    RiskActions(options({{RiskLevel::low, "exit 7", ""}})).act_on(change(RiskLevel::low, RiskLevel::high), [] {
      return "{}";
    });
  }
  ASSERT_EQ(problems_.size(), 1U);
  EXPECT_EQ(problems_[0], "exit 7: the command failed: exit code 7");
}

TEST_F(RiskActionsTest, WebhooksGetTheAssessment) {
  if (!curl::load()) GTEST_SKIP() << "libcurl is not installed";
  testing::HttpReceiver receiver([](std::size_t number) { return number == 0 ? "204 No Content" : "404 Not Found"; });
  {
    RiskActions actions(options({{RiskLevel::high, "", receiver.url() + "/hook?key=secret"}}));
    actions.act_on(change(RiskLevel::low, RiskLevel::high), [] { return R"({"device": "0"})"; });
    actions.act_on(change(RiskLevel::low, RiskLevel::high, "1"), [] { return R"({"device": "1"})"; });
    const auto requests = receiver.requests(2);
    EXPECT_THAT(requests[0].head, HasSubstr("POST /hook?key=secret HTTP/1.1\r\n"));
    EXPECT_EQ(requests[0].body, R"({"device": "0"})");
    EXPECT_EQ(requests[1].body, R"({"device": "1"})");
  }
  ASSERT_EQ(problems_.size(), 1U);
  EXPECT_EQ(problems_[0], receiver.url() + "/hook answers with status 404");
}

}  // namespace
}  // namespace tidemark
