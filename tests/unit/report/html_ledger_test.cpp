// The ledger's section of the page; html_page_test.py reads whole pages.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "report/html/page_contents.h"
#include "unit/store/store_scenario.h"

namespace tidemark {
namespace {

using ::testing::HasSubstr;
using testing::kDriver;
using testing::kGpu;
using ::testing::Not;
using testing::Scenario;

// 200 of 400 bytes are reserved, 150 of them allocated; a library with an evil name has 40, another process 100; the
// context is 290 - 200 - 40 = 50, and 400 - 200 - 40 - 50 - 100 = 10 are not explained.
Scenario shared_gpu() {
  Scenario scenario;
  const SampledDeviceId gpu = scenario.sampled_gpu(0, 1000);
  const StackId evil = scenario.stack({scenario.native("/x/</title><script>.so", 1)});
  scenario.totals(kGpu, 0, 200);
  scenario.allocate(10, "a", 150, kGpu);
  scenario.allocate(11, "b", 40, kDriver, evil);
  scenario.processes(20, gpu,
                     {{123, ProcessKind::recorded, 290, "python"}, {9, ProcessKind::other, 100, "<img src=x>"}});
  scenario.used(20, gpu, 400);
  scenario.allocate(30, "c", 1);
  return scenario;
}

std::string page_of(const Scenario& scenario) {
  const Store store = scenario.store();
  Symbols symbols(store.definitions);
  auto contents = html::collect_page_contents(store, symbols, {});
  EXPECT_TRUE(contents.ok());
  std::vector<html::PageContents> pages;
  pages.push_back(std::move(*contents));
  auto page = to_html(std::move(pages));
  EXPECT_TRUE(page.ok());
  return page.ok() ? *page : std::string();
}

TEST(HtmlLedger, DrawsTheSumToScale) {
  const std::string page = page_of(shared_gpu());
  EXPECT_THAT(page, HasSubstr("<section id=\"r0-ledger\">"));
  EXPECT_THAT(page, HasSubstr("cuda:0  NVIDIA H100  400 B used of 1000 B at 20 ns"));
  for (const char* piece :
       {"<rect class=\"allocated\" x=\"0%\" width=\"37.5%\"", "<rect class=\"cached\" x=\"37.5%\" width=\"12.5%\"",
        "<rect class=\"library1\" x=\"50%\" width=\"10%\"", "<rect class=\"context\" x=\"60%\" width=\"12.5%\"",
        "<rect class=\"processes\" x=\"72.5%\" width=\"25%\"",
        "<rect class=\"unexplained dashed\" x=\"97.5%\" width=\"2.5%\""}) {
    EXPECT_THAT(page, HasSubstr(piece));
  }
  EXPECT_THAT(page,
              HasSubstr("<td class=\"number\">10 B</td><td class=\"number\">2.5%</td><td class=\"stack\">unexplained"));
}

TEST(HtmlLedger, NamesCannotLeaveTheirPlace) {
  const std::string page = page_of(shared_gpu());
  EXPECT_THAT(page, HasSubstr("&lt;img src=x&gt; (pid 9)"));
  EXPECT_THAT(page, HasSubstr("&lt;script&gt;"));
  EXPECT_THAT(page, Not(HasSubstr("<img src=x>")));
  EXPECT_THAT(page, Not(HasSubstr("</title><script>.so")));
}

TEST(HtmlLedger, IsLeftOutWithoutSamples) {
  Scenario scenario;
  scenario.totals(kGpu, 0, 200);
  scenario.allocate(10, "a", 150, kGpu);
  const std::string page = page_of(scenario);
  EXPECT_THAT(page, Not(HasSubstr("r0-ledger")));
  EXPECT_THAT(page, HasSubstr("\"no_samples\"")) << "the data say why";
}

}  // namespace
}  // namespace tidemark
