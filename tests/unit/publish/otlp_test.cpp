// Metrics over OTLP: the JSON by the protocol's rules, and how it reaches a collector.
#include "publish/metrics/otlp.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "http/curl_api.h"
#include "unit/http/http_peer.h"

namespace tidemark {
namespace {

using nlohmann::json;
using testing::HttpReceiver;
using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr MetricFamily kUsage{"hw.gpu.memory.usage", "By", Instrument::up_down_counter, "GPU memory used."};
constexpr MetricFamily kKills{"x.kills", "{kill}", Instrument::counter, "Kills."};
constexpr MetricFamily kShare{"x.share", "1", Instrument::gauge, "Share."};

std::shared_ptr<const MetricSet> some_metrics() {
  return std::make_shared<MetricSet>(MetricSet{1'000'000'000'000'000'001U,
                                               1'700'000'000'123'456'789U,
                                               {{&kUsage, {{{{"hw.id", "GPU-\xff"}}, std::int64_t{1} << 40}}},
                                                {&kKills, {{{}, std::int64_t{3}}}},
                                                {&kShare, {{{}, 0.25}}}}});
}

// opentelemetry/proto/metrics/v1/metrics.proto, in the JSON of the protocol: 64-bit integers are strings.
TEST(Otlp, JsonFollowsTheProtocol) {
  const json request = json::parse(otlp_json(*some_metrics(), {{{"service.name", "tidemark"}}, "1.2"}));
  const json& from = request["resourceMetrics"][0];
  EXPECT_EQ(from["resource"]["attributes"],
            json::parse(R"([{"key": "service.name", "value": {"stringValue": "tidemark"}}])"));
  const json& scope = from["scopeMetrics"][0];
  EXPECT_EQ(scope["scope"], json::parse(R"({"name": "tidemark", "version": "1.2"})"));
  const json& metrics = scope["metrics"];
  ASSERT_EQ(metrics.size(), 3U);
  EXPECT_EQ(metrics[0], json::parse(R"({"name": "hw.gpu.memory.usage", "description": "GPU memory used.", "unit": "By",
    "sum": {"aggregationTemporality": 2, "isMonotonic": false, "dataPoints": [
      {"attributes": [{"key": "hw.id", "value": {"stringValue": "GPU-\ufffd"}}], "asInt": "1099511627776",
       "startTimeUnixNano": "1000000000000000001", "timeUnixNano": "1700000000123456789"}]}})"));
  EXPECT_TRUE(metrics[1]["sum"]["isMonotonic"]);
  EXPECT_EQ(metrics[2]["gauge"], json::parse(R"({"dataPoints": [
    {"attributes": [], "asDouble": 0.25, "timeUnixNano": "1700000000123456789"}]})"));
}

TEST(Otlp, ResourceHasItsSource) {
  const OtlpResource resource = otlp_resource("9");
  EXPECT_EQ(resource.attributes[0].second, "tidemark");
  EXPECT_FALSE(resource.attributes[3].second.empty());
}

TEST(Otlp, UrlsAndHeaders) {
  EXPECT_EQ(otlp_url("http://h:4318"), "http://h:4318/v1/metrics");
  EXPECT_EQ(otlp_url("http://h:4318/"), "http://h:4318/v1/metrics");
  EXPECT_EQ(otlp_url("http://h/x/v1/metrics"), "http://h/x/v1/metrics");
  EXPECT_THAT(otlp_headers("api-key=a%20b, x = y,nothing,bad=%0aX: 1"), ElementsAre("api-key: a b", "x: y"));
  EXPECT_EQ(shown_url("https://me:secret@host:1/path?token=1"), "https://host:1/path");
  EXPECT_FALSE(check_url("host:4318").ok());
  EXPECT_FALSE(check_url("ftp://host").ok());
  EXPECT_TRUE(check_url("http://host:4318").ok());
}

// From the protocol's table: 429, 502, 503 and 504 may be retried.
TEST(Otlp, OutcomesAndPauses) {
  EXPECT_EQ(outcome_of(200), PushOutcome::taken);
  for (const int status : {429, 502, 503, 504}) EXPECT_EQ(outcome_of(status), PushOutcome::retry) << status;
  for (const int status : {302, 400, 401, 404, 500, 501}) EXPECT_EQ(outcome_of(status), PushOutcome::refused) << status;
  EXPECT_EQ(retry_pause(1), 1s);
  EXPECT_EQ(retry_pause(2), 2s);
  EXPECT_EQ(retry_pause(4), 8s);
  EXPECT_EQ(retry_pause(60), 60s);
}

class OtlpPushTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!curl::load()) GTEST_SKIP() << "libcurl is not installed";
  }
  std::function<void(const std::string&)> keep() {
    return [this](const std::string& text) { problems_.push_back(text); };
  }
  std::vector<std::string> problems_;  // read after the push has ended
};

TEST_F(OtlpPushTest, ReachesACollector) {
  HttpReceiver receiver([](std::size_t) { return "200 OK"; });
  {
    OtlpPush push(receiver.url(), otlp_resource("1"), keep());
    push.push(some_metrics());
    const auto request = receiver.requests(1).front();
    EXPECT_THAT(request.head, HasSubstr("POST /v1/metrics HTTP/1.1\r\n"));
    EXPECT_THAT(request.head, HasSubstr("Content-Type: application/json\r\n"));
    EXPECT_EQ(json::parse(request.body)["resourceMetrics"].size(), 1U);
  }
  EXPECT_TRUE(problems_.empty());
}

TEST_F(OtlpPushTest, TemporaryFailuresAreRetried) {
  HttpReceiver receiver([](std::size_t number) { return number == 0 ? "503 Busy\r\nRetry-After: 0" : "200 OK"; });
  std::uint64_t dropped = 1;
  {
    OtlpPush push(receiver.url(), otlp_resource("1"), keep());
    push.push(some_metrics());
    const auto requests = receiver.requests(2);
    EXPECT_EQ(requests[0].body, requests[1].body);
    dropped = push.dropped();
  }
  EXPECT_EQ(dropped, 0U);
  ASSERT_EQ(problems_.size(), 2U);
  EXPECT_THAT(problems_[0], HasSubstr("answers with status 503 (trying again)")) << problems_[0];
  EXPECT_THAT(problems_[1], HasSubstr("takes metrics again"));
}

TEST_F(OtlpPushTest, PermanentFailuresAreDroppedAndCounted) {
  HttpReceiver receiver([](std::size_t) { return "400 Bad Request"; });
  OtlpPush push(receiver.url(), otlp_resource("1"), keep());
  push.push(some_metrics());
  push.push(some_metrics());
  receiver.requests(2);
  for (int turn = 0; turn < 2000 && push.dropped() < 2; ++turn) std::this_thread::sleep_for(1ms);
  EXPECT_EQ(push.dropped(), 2U);
}

TEST_F(OtlpPushTest, WithoutCollectorNothingBlocks) {
  OtlpPush push("http://127.0.0.1:1", otlp_resource("1"), keep());
  for (int count = 0; count < 40; ++count) push.push(some_metrics());
  EXPECT_GE(push.dropped(), 7U);  // one in progress, 32 waiting
}

}  // namespace
}  // namespace tidemark
