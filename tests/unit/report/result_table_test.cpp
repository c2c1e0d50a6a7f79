// Tables of any analysis: kept rows, and the format of each kind of value.
#include "analyze/common/result_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "query/analyses/analysis.h"
#include "query/results/results.h"
#include "report/common/csv.h"
#include "report/formats.h"
#include "report/html/page_contents.h"
#include "unit/store/store_scenario.h"

namespace tidemark {
namespace {

using ::testing::HasSubstr;
using testing::kGpu;
using testing::Scenario;

// Three rows, two of them kept: 2048 + 1024 bytes listed, 512 in 7 blocks added up.
ResultTable sample_table() {
  Scenario scenario;
  const StackId forward = scenario.stack({scenario.python("forward", "model.py", 3)});
  scenario.allocate(1, "a", 64, kGpu, forward);
  const Store store = scenario.store();
  Symbols symbols(store.definitions);
  ResultTable table;
  table.facts = {{"steps", ResultKind::count, ResultValue(std::uint64_t{1234})}};
  table.columns = {
      {"held_bytes", ResultKind::bytes, true}, {"blocks", ResultKind::count, true}, {"share", ResultKind::share},
      {"lifetime_ns", ResultKind::time_ns},    {"name", ResultKind::text},          {"stack", ResultKind::stack}};
  ResultSection& section = table.sections.emplace_back();
  section.device = kGpu;
  section.facts = {{"peak_allocated_bytes", ResultKind::bytes, ResultValue(std::uint64_t{64})}};
  section.rows = {
      {std::uint64_t{2048}, std::uint64_t{2}, 0.5, std::uint64_t{3'200'000}, std::string("a,\x1b"), forward},
      {std::uint64_t{1024}, std::uint64_t{1}, {}, {}, std::string("b"), StackId{}},
      {std::uint64_t{512}, std::uint64_t{7}, {}, {}, std::string("c"), StackId{}}};
  return finish_table(std::move(table), store, symbols, 2);
}

TEST(ResultTable, KeepsTheFirstRowsAndAddsUpTheOthers) {
  ResultTable table = sample_table();
  ResultSection& section = table.sections[0];
  ASSERT_EQ(section.rows.size(), 2U);
  EXPECT_EQ(section.other_rows, 1U);
  EXPECT_EQ(section.other_sum, (std::vector<std::uint64_t>{512, 7, 0, 0, 0, 0}));
  keep_rows(section, table.columns, 0);
  EXPECT_EQ(section.other_rows, 3U);
  EXPECT_EQ(section.other_sum, (std::vector<std::uint64_t>{3584, 10, 0, 0, 0, 0}));
}

TEST(ResultTable, AsText) {
  EXPECT_EQ(to_text(sample_table(), Terminal()),
            "  steps           1,234\n"
            "\n"
            "cuda:0\n"
            "  peak allocated  64 B\n"
            "\n"
            "     held  blocks  share  lifetime    name  stack\n"
            "  2.0 KiB       2  50.0%    3.2 ms  a,\\x1b  forward (model.py:3)\n"
            "  1.0 KiB       1    n/a       n/a       b  (no stack)\n"
            "    512 B       7                           (1 more; --top 0 lists all)\n");
}

TEST(ResultTable, AsJson) {
  const auto json = nlohmann::json::parse(to_json(std::vector{sample_table()}));
  EXPECT_EQ(json["steps"], 1234);
  const auto& device = json["devices"][0];
  EXPECT_EQ(device["device"], "cuda:0");
  EXPECT_EQ(device["peak_allocated_bytes"], 64);
  EXPECT_EQ(device["rows"][0]["held_bytes"], 2048);
  EXPECT_EQ(device["rows"][0]["share"], 0.5);
  EXPECT_EQ(device["rows"][0]["stack"]["frames"][0]["function"], "forward");
  EXPECT_EQ(device["rows"][1]["share"], nullptr);
  EXPECT_EQ(device["rows"][1]["lifetime_ns"], nullptr);
  EXPECT_EQ(device["rows"][1]["stack"], nullptr);
  EXPECT_EQ(device["other_row_count"], 1);
  EXPECT_EQ(device["other_held_bytes"], 512);
  EXPECT_EQ(device["other_blocks"], 7);
  EXPECT_FALSE(device.contains("other_lifetime_ns"));
}

TEST(ResultTable, AsCsv) {
  const std::string csv = to_csv(std::vector{sample_table()});
  EXPECT_THAT(csv, HasSubstr("file,rank,device,held_bytes,blocks,share,lifetime_ns,name,stack,frames\n"));
  EXPECT_THAT(csv,
              HasSubstr(",cuda:0,2048,2,0.500000,3200000,\"a,\\x1b\",forward (model.py:3),forward (model.py:3)\n"));
  EXPECT_THAT(csv, HasSubstr(",cuda:0,1024,1,,,b,(no stack),\n"));
}

TableAnalysis sample_analysis() {
  TableAnalysis analysis;
  analysis.name = "sample";
  analysis.help = "A table for this test";
  analysis.about = "A row is <one> of three.";
  analysis.top = 7;
  analysis.analyze = [](const Store&, Symbols&, const AnalysisOptions& options) -> Result<ResultTable> {
    if (options.device == "cuda:9") return Error{"no such device"};
    return sample_table();
  };
  return analysis;
}

TEST(ResultTable, IsAllThatAnAnalysisNeedsForItsCommand) {
  const Analysis analysis = make_analysis(sample_analysis());
  EXPECT_EQ(formats_of(analysis), (std::vector<std::string>{"text", "json", "csv"}));
  AnalysisOptions options(analysis.options);
  EXPECT_EQ(options.count("top"), 7U);
  const Store store = Scenario().store();
  Symbols symbols(store.definitions);
  const auto run = analysis.start();
  ASSERT_TRUE(run->add(store, symbols, options).ok());
  EXPECT_EQ(*write_results(analysis, *run, "text", Terminal()), to_text(sample_table(), Terminal()));
  EXPECT_EQ(*write_results(analysis, *run, "json", Terminal()), to_json(std::vector{sample_table()}));
  EXPECT_EQ(*write_results(analysis, *run, "csv", Terminal()), to_csv(std::vector{sample_table()}));
  EXPECT_FALSE(run->check_failed(options));
  options.device = "cuda:9";
  EXPECT_FALSE(run->add(store, symbols, options).ok());
}

TEST(ResultTable, IsASectionOfThePage) {
  const Analysis analysis = make_analysis(sample_analysis());
  const Store store = Scenario().store();
  Symbols symbols(store.definitions);
  auto contents = html::collect_page_contents(store, symbols, {});
  ASSERT_TRUE(contents.ok());
  contents->tables.push_back({&analysis, sample_table()});
  const auto page = to_html({*contents});
  ASSERT_TRUE(page.ok());
  for (const char* part :
       {"<section id=\"r0-sample\">\n<h3>Sample</h3>\n<p class=\"lead\">A row is &lt;one&gt; of three.</p>",
        "<dt>steps</dt><dd>1,234</dd>", "<dt>peak allocated</dt><dd>64 B</dd>", "<td class=\"number\">2.0 KiB</td>",
        "forward (model.py:3)", "And 1 more: <code>tidemark sample --top 0</code>.", "\"sample\":{\"steps\":1234,"}) {
    EXPECT_THAT(*page, HasSubstr(part));
  }
  ASSERT_TRUE(html::halve(*contents));
  EXPECT_EQ(contents->tables.back().table.sections[0].rows.size(), 1U);
}

TEST(AnalysisOption, AllowsWhatItsKindSays) {
  using Kind = AnalysisOption::Kind;
  const AnalysisOption count{"depth", Kind::count, "N", "", "5", 1, 500};
  EXPECT_TRUE(count.allows("500"));
  for (const char* wrong : {"0", "501", "-1", "1.5", "", "x"}) EXPECT_FALSE(count.allows(wrong)) << wrong;
  const AnalysisOption share{"min-share", Kind::share, "SHARE", "", "1%"};
  for (const char* right : {"0", "1%", "0.01", "100%"}) EXPECT_TRUE(share.allows(right)) << right;
  for (const char* wrong : {"lots", "101%", "-1%", "1%%"}) EXPECT_FALSE(share.allows(wrong)) << wrong;
  const AnalysisOption size{"capacity", Kind::size, "BYTES", "", ""};
  for (const char* right : {"1", "80GiB"}) EXPECT_TRUE(size.allows(right)) << right;
  for (const char* wrong : {"0", "5%", "many"}) EXPECT_FALSE(size.allows(wrong)) << wrong;
  const AnalysisOption word{"by", Kind::word, "peak|traffic", "", "peak"};
  EXPECT_TRUE(word.allows("traffic"));
  EXPECT_FALSE(word.allows("peak|traffic"));

  AnalysisOptions chosen({count, share, size, word});
  EXPECT_EQ(chosen.count("depth"), 5U);
  EXPECT_DOUBLE_EQ(chosen.share("min-share"), 0.01);
  EXPECT_EQ(chosen.given_size("capacity"), std::nullopt);
  chosen.set("capacity", "2KiB");
  EXPECT_EQ(chosen.given_size("capacity"), 2048U);
  EXPECT_EQ(chosen.word("by"), "peak");
}

TEST(Analyses, HaveNamesOfTheirOwnAndOptionsWithinTheirOwnRange) {
  std::vector<std::string> names;
  for (const Analysis& analysis : analyses()) {
    names.push_back(analysis.name);
    EXPECT_FALSE(analysis.help.empty()) << analysis.name;
    EXPECT_FALSE(analysis.examples.empty()) << analysis.name;
    for (const AnalysisOption& option : analysis.options) {
      EXPECT_TRUE(option.initial.empty() || option.allows(option.initial)) << analysis.name << " --" << option.name;
    }
  }
  std::sort(names.begin(), names.end());
  EXPECT_EQ(std::adjacent_find(names.begin(), names.end()), names.end());
}

}  // namespace
}  // namespace tidemark
