#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>
#include <vector>

#include "unit/export/export_support.h"

namespace tidemark {
namespace {

using testing::exported;
using testing::kGpu;
using testing::Scenario;
using testing::small_run;

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

// Addresses are the scenario's: 4096 * (number of the block + 1).
std::string csv_of(const Store& store, ExportOptions options = {}) {
  options.whole_stacks = true;
  return exported(store, "csv", options);
}

TEST(CsvExport, HasWholeStacksOnRequest) {
  const auto lines = lines_of(exported(small_run().store(), "csv"));
  EXPECT_THAT(lines.at(0), ::testing::EndsWith(",call_site"));
  EXPECT_THAT(lines_of(csv_of(small_run().store())).at(0), ::testing::EndsWith(",call_site,stack"));
}

TEST(CsvExport, HasALineForEachBlockInOrderOfBirth) {
  EXPECT_THAT(
      lines_of(csv_of(small_run().store())),
      ::testing::ElementsAre(
          "allocated_at_ns,freed_at_ns,device,address,size_bytes,requested_bytes,stream,pool,tid,"
          "thread_name,annotation,call_site,stack",
          "5,8,cuda:0,0x1000,100,,,,77,python,,step (w/train.py:5),main (/w/train.py:9);step (/w/train.py:5)",
          "10,40,cuda:0,0x2000,300,,,,77,python,,forward (w/model.py:3),main (/w/train.py:9);forward (/w/model.py:3)",
          "20,,cpu,0x3000,64,,,,,,,,",
          "30,,cuda:0,0x4000,500,,,,77,python,,step (w/train.py:5),main (/w/train.py:9);step (/w/train.py:5)"));
}

TEST(CsvExport, WritesOneDevice) {
  EXPECT_THAT(lines_of(csv_of(small_run().store(), {"cpu", {}})),
              ::testing::ElementsAre(::testing::_, "20,,cpu,0x3000,64,,,,,,,,"));
}

TEST(CsvExport, WritesWhatOnlySnapshotsKnow) {
  Store store = small_run().store();
  store.streams = {0, 0x55};
  store.pools = {{0, 0}, {1, 7}};
  store.blocks.requested = {90, 300, 60, 500};
  store.blocks.stream = {1, 0, 0, 0};
  store.blocks.pool = {0, 1, 0, 0};
  store.definitions.strings.emplace_back("packed, saved");
  store.blocks.metadata = {{BlockId{1}, StringId{static_cast<std::uint32_t>(store.definitions.strings.size() - 1)}}};
  const auto lines = lines_of(csv_of(store));
  EXPECT_EQ(lines[1],
            "5,8,cuda:0,0x1000,100,90,85,0:0,77,python,,step (w/train.py:5),main (/w/train.py:9);step (/w/train.py:5)");
  EXPECT_EQ(lines[2],
            "10,40,cuda:0,0x2000,300,300,0,1:7,77,python,\"packed, saved\",forward (w/model.py:3),main "
            "(/w/train.py:9);forward (/w/model.py:3)");
}

TEST(CsvExport, HasOwnerColumns) {
  const Attribution attribution = testing::small_attribution();
  ExportOptions options;
  options.attribution = &attribution;
  options.filter = BlockFilter({false, true, true, false});
  const auto lines = lines_of(csv_of(small_run().store(), options));
  ASSERT_EQ(lines.size(), 3U);
  EXPECT_THAT(lines[0], ::testing::EndsWith(",stack,category,category_confidence,phase,component,module"));
  EXPECT_THAT(lines[1], ::testing::EndsWith(",activation,estimated,forward,mlp,layers.0"));
  EXPECT_THAT(lines[2], ::testing::EndsWith(",unknown,unknown,other,other,"));
}

TEST(CsvExport, NoNameIsAFormula) {
  Scenario scenario;
  scenario.allocate(1, "a", 8, kGpu, scenario.stack({scenario.python("=f", "", 0)}), scenario.thread(-1, "@x"));
  EXPECT_EQ(lines_of(csv_of(scenario.store()))[1], "1,,cuda:0,0x1000,8,,,,-1,'@x,,'=f,'=f");
}

TEST(CsvExport, QuotesHostileNames) {
  Scenario scenario;
  scenario.allocate(1, "a", 8, kGpu, scenario.stack({scenario.python("f,\"\n", "", 0)}), scenario.thread(1, "x\x1b,"));
  const auto lines = lines_of(csv_of(scenario.store()));
  ASSERT_EQ(lines.size(), 2U);
  EXPECT_EQ(lines[1], R"(1,,cuda:0,0x1000,8,,,,1,"x\x1b,",,"f,""\x0a","f,""\x0a")");
}

// Written in pieces: nothing is lost or repeated at their ends.
TEST(CsvExport, WritesManyBlocksOnce) {
  constexpr std::uint64_t kCount = 20'000;
  Scenario scenario;
  for (std::uint64_t number = 0; number < kCount; ++number) {
    scenario.allocate(number, std::to_string(number), 512 + number, kGpu);
  }
  const auto lines = lines_of(csv_of(scenario.store()));
  ASSERT_EQ(lines.size(), kCount + 1);
  for (std::uint64_t number = 0; number < kCount; ++number) {
    const std::string start = std::to_string(number) + ",,cuda:0,";
    ASSERT_TRUE(lines[number + 1].starts_with(start)) << lines[number + 1];
  }
}

TEST(CsvExport, StopsWhenTheOutputFails) {
  const Store store = small_run().store();
  Symbols symbols(store.definitions);
  for (const ExportFormat& format : export_formats()) {
    const auto written =
        format.write(store, symbols, {}, [](std::string_view) { return Result<void>(Error{"disk full"}); }, {});
    ASSERT_FALSE(written.ok()) << format.name;
    EXPECT_EQ(written.error().message, "disk full") << format.name;
  }
}

}  // namespace
}  // namespace tidemark
