#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "analyze/usage/summary.h"
#include "analyze/usage/table.h"
#include "query/results/results.h"
#include "query/words/printable.h"
#include "report/common/csv.h"
#include "report/common/text.h"
#include "unit/store/store_scenario.h"

namespace tidemark {
namespace {

using ::testing::HasSubstr;
using testing::kCpu;
using testing::Scenario;

// Names as a hostile recording would have them.
Scenario hostile() {
  Scenario scenario;
  scenario.definitions.process.command_line = "python \x1b]0;title\x07 \xFF\xFE";
  scenario.allocate(1, "a", 100, kCpu, scenario.stack({scenario.python("f\x1b[2J\n,\"", "/tmp/\xC3\x28.py", 3)}),
                    scenario.thread(5, "t\r\x1b[A"));
  return scenario;
}

template <typename Analysis, typename Options>
auto analyzed(const Scenario& scenario, const Analysis& analysis, const Options& options) {
  const Store store = scenario.store("run\x1b.tide");
  Symbols symbols(store.definitions);
  return std::vector{*analysis(store, symbols, options)};
}

bool has_control_characters(const std::string& text) {
  return std::any_of(text.begin(), text.end(), [](char letter) {
    return (static_cast<unsigned char>(letter) < 0x20 && letter != '\n') || letter == 0x7f;
  });
}

TEST(Text, ShowsNoControlCharactersOfARecording) {
  const auto summary = analyzed(hostile(), analyze_summary, SummaryOptions{});
  const std::string text = to_text(summary[0], Terminal());
  EXPECT_FALSE(has_control_characters(text)) << text;
  EXPECT_THAT(text, HasSubstr("f\\x1b[2J\\x0a"));
  for (const GroupBy by : {GroupBy::stack, GroupBy::thread}) {
    const auto table = analyzed(hostile(), analyze_table, TableOptions{by, {}, std::nullopt, 0});
    EXPECT_FALSE(has_control_characters(to_text(table[0], Terminal())));
  }
}

TEST(Json, IsValidWhateverTheNames) {
  const auto summary = analyzed(hostile(), analyze_summary, SummaryOptions{});
  const auto document = nlohmann::json::parse(to_json(summary));
  EXPECT_EQ(document["file"], "run\x1b.tide");
  EXPECT_EQ(document["devices"][0]["call_sites_at_peak"][0]["stack"]["frames"][0]["function"], "f\x1b[2J\n,\"");
}

TEST(Json, WritesUnknownAsNull) {
  const auto summary = analyzed(hostile(), analyze_summary, SummaryOptions{});
  const auto document = nlohmann::json::parse(to_json(summary));
  EXPECT_TRUE(document["devices"][0]["peak_reserved_bytes"].is_null());
  EXPECT_TRUE(document["process"]["rank"].is_null());
  EXPECT_TRUE(document["process"]["torch_version"].is_null());
  EXPECT_EQ(document["devices"][0]["peak_allocated_bytes"], 100);
}

TEST(Json, WrapsSeveralRecordings) {
  auto summaries = analyzed(hostile(), analyze_summary, SummaryOptions{});
  summaries.push_back(summaries[0]);
  const auto document = nlohmann::json::parse(to_json(summaries));
  ASSERT_EQ(document["recordings"].size(), 2U);
  EXPECT_EQ(document["recordings"][1]["event_count"], 1);
}

TEST(Csv, QuotesWhatWouldBreakARow) {
  const auto table = analyzed(hostile(), analyze_table, TableOptions{});
  const std::string csv = to_csv(table);
  EXPECT_FALSE(has_control_characters(csv));
  EXPECT_EQ(std::count(csv.begin(), csv.end(), '\n'), 2);
  EXPECT_THAT(csv, HasSubstr("\"f\\x1b[2J\\x0a,\"\" ("));
}

// Names that a spreadsheet would run: https://owasp.org/www-community/attacks/CSV_Injection
TEST(Csv, NoNameIsAFormula) {
  for (const std::string name : {"=1+2", "+1", "-1", "@SUM(A1)", "=HYPERLINK(\"x\",\"y\")"}) {
    Scenario scenario;
    scenario.allocate(1, "a", 100, kCpu, scenario.stack({scenario.python(name, "t.py", 3)}), scenario.thread(5, name));
    for (const GroupBy by : {GroupBy::stack, GroupBy::thread}) {
      const std::string csv = to_csv(analyzed(scenario, analyze_table, TableOptions{by, {}, std::nullopt, 0}));
      const auto at = csv.find(name.substr(0, 2));
      ASSERT_NE(at, std::string::npos) << csv;
      EXPECT_EQ(csv[at - 1], '\'') << csv;
    }
  }
  EXPECT_EQ(csv_field("\t=1"), "\\x09=1") << "spreadsheets skip a tab or CR at the start";
  EXPECT_EQ(csv_field("\r=1"), "\\x0d=1");
  EXPECT_EQ(csv_field("a=b-c"), "a=b-c");
  EXPECT_EQ(csv_field("=a,b"), "\"'=a,b\"");
}

// Names without end are cut in text, and whole in JSON.
TEST(Text, LongNamesLeaveRoomForTheRest) {
  const std::string name(100'000, 'n');
  Scenario scenario;
  scenario.definitions.process.command_line = name;
  scenario.allocate(1, "a", 100, kCpu, scenario.stack({scenario.python(name, "/" + name + "/" + name, 3)}),
                    scenario.thread(5, name));
  const auto summary = analyzed(scenario, analyze_summary, SummaryOptions{});
  std::vector<std::string> texts = {to_text(summary[0], Terminal())};
  for (const GroupBy by : {GroupBy::stack, GroupBy::thread}) {
    const auto table = analyzed(scenario, analyze_table, TableOptions{by, {}, std::nullopt, 0});
    texts.push_back(to_text(table[0], Terminal()));
  }
  for (const std::string& text : texts) {
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);) EXPECT_LE(display_width(line), 300U) << line;
  }
  const auto document = nlohmann::json::parse(to_json(summary));
  EXPECT_EQ(document["devices"][0]["call_sites_at_peak"][0]["stack"]["frames"][0]["function"], name);
}

TEST(Text, SaysSoWhenNothingWasRecorded) {
  const auto summary = analyzed(Scenario(), analyze_summary, SummaryOptions{});
  EXPECT_THAT(to_text(summary[0], Terminal()), HasSubstr("No events recorded"));
}

}  // namespace
}  // namespace tidemark
