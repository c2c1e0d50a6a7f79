// The table of data-quality issues: complete, free of duplicates, worded well, and the same in the documentation.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <set>

#include "query/words/data_quality.h"

namespace tidemark {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

/// The value of each name that a template mentions, unless it is left out.
QualityIssue example(QualityId id, std::uint64_t count) {
  QualityIssue issue{id, count};
  issue.params = {{"limit", 128U},
                  {"limit_bytes", QualityBytes{4096}},
                  {"bytes", QualityBytes{2048}},
                  {"blocks", 7U},
                  {"duration_ns", QualityDuration{3200}},
                  {"began_ns", QualityDuration{4'000'000}},
                  {"detail", "detail"},
                  {"reason", "reason"},
                  {"file", "file"},
                  {"number", "200"},
                  {"names", QualityNames{{"name", 2}}}};
  if (quality_template(id).text.find("{device}") != std::string_view::npos)
    issue.params.push_back({"device", "cuda:1"});
  return issue;
}

std::string read_page(const char* name) {
  std::ifstream page(std::string(TIDEMARK_DOCS) + "/" + name);
  EXPECT_TRUE(page.is_open()) << name;
  return {std::istreambuf_iterator<char>(page), {}};
}

TEST(DataQualityText, EveryIdHasANameOfItsOwnAndText) {
  std::set<std::string_view> names;
  for (const QualityFacts& facts : kQualityTable) {
    EXPECT_TRUE(names.insert(facts.name).second) << facts.name << " is there twice";
    EXPECT_EQ(facts.name.find_first_not_of("abcdefghijklmnopqrstuvwxyz_"), std::string_view::npos) << facts.name;
    const QualityTemplate& entry = quality_template(facts.id);
    EXPECT_EQ(entry.id, facts.id);
    EXPECT_FALSE(entry.text.empty()) << facts.name;
  }
}

TEST(DataQualityText, AllValuesOfATextAreFilledIn) {
  for (const QualityFacts& facts : kQualityTable) {
    for (const std::uint64_t count : {1U, 1234U}) {
      const std::string text = quality_text(example(facts.id, count));
      EXPECT_EQ(text.find_first_of("{}[]"), std::string::npos) << text;
      EXPECT_THAT(text, Not(HasSubstr("n/a")));
      EXPECT_NE(text.back(), '.') << text;
    }
  }
}

TEST(DataQualityText, NumberAgrees) {
  EXPECT_EQ(quality_text({QualityId::ring_full, 1234}), "1,234 events were dropped: the ring was full");
  EXPECT_EQ(quality_text({QualityId::ring_full, 1}), "1 event was dropped: the ring was full");
  // Versions before the table wrote a sentence into the file.
  EXPECT_EQ(quality_text({QualityId::ring_full, 2, {{"detail", "events came faster than they could be written"}}}),
            "2 events were dropped: the ring was full");
  for (const QualityFacts& facts : kQualityTable) {
    const QualityTemplate& entry = quality_template(facts.id);
    const bool counts_things = entry.text.starts_with("{count} ") && facts.unit != QualityUnit::bytes;
    EXPECT_EQ(counts_things && entry.text_for_one.empty(), false) << facts.name;
  }
}

TEST(DataQualityText, UnknownValuesAreLeftOut) {
  EXPECT_EQ(quality_text({QualityId::stack_truncated, 3}),
            "3 stacks were truncated: their outermost frames are missing");
  EXPECT_EQ(quality_text({QualityId::stack_truncated, 3, {{"limit", 128U}}}),
            "3 stacks were truncated: their outermost frames are missing (limit: 128 frames)");
  EXPECT_EQ(quality_text({QualityId::size_limit, 1, {{"limit_bytes", QualityBytes{2U << 30U}}}}),
            "recording stopped: the file reached --max-size (2.0 GiB)");
  EXPECT_EQ(quality_text({QualityId::torn_tail, 2048}),
            "the last 2.0 KiB of the file were skipped: damaged or incomplete");
}

TEST(DataQualityText, CodesBecomeWordsAndOtherTextStays) {
  EXPECT_EQ(
      quality_text({QualityId::driver_off, 1, {{"detail", "cupti_in_use"}}}),
      "memory of the CUDA driver was not recorded, or only in part: another tool uses CUPTI; run without that tool");
  EXPECT_EQ(quality_text({QualityId::driver_off, 1, {{"detail", "CUptiResult 39"}}}),
            "memory of the CUDA driver was not recorded, or only in part: CUptiResult 39");
}

TEST(DataQualityText, NamesTheDeviceWhereThereAreSeveral) {
  EXPECT_EQ(quality_text({QualityId::double_frees, 2, {{"device", "cuda:1"}}}), "cuda:1: 2 blocks were freed twice");
  EXPECT_EQ(quality_text({QualityId::baseline, 2048, {{"device", "cuda:1"}}}),
            "2.0 KiB on cuda:1 were allocated before the first recorded event");
}

TEST(DataQualityText, ListsTheFirstEightNames) {
  QualityNames names;
  for (char name = 'a'; name <= 'j'; ++name) names[std::string(1, name)] = 1;
  EXPECT_EQ(quality_text({QualityId::unknown_keys, 10, {{"names", names}}}),
            "10 fields are unknown to this version of tidemark: a (1), b (1), c (1), d (1), e (1), f (1), g (1), h (1) "
            "and 2 more");
}

TEST(DataQualityDocs, PageListsTheTable) {
  std::string table = "| id | severity | unit | incomplete | text |\n|---|---|---|---|---|\n";
  for (const QualityFacts& facts : kQualityTable) {
    table += fmt::format("| `{}` | {} | {} | {} | {} |\n", facts.name, name_of(facts.severity), name_of(facts.unit),
                         facts.incomplete ? "yes" : "no", quality_template(facts.id).text);
  }
  EXPECT_NE(read_page("commands/index.md").find(table + "\n"), std::string::npos) << "docs/commands/index.md needs\n"
                                                                                  << table;
}

TEST(DataQualityDocs, FormatListsTheCodes) {
  std::string table = "| code | name | severity | unit |\n|---|---|---|---|\n";
  for (std::uint8_t code = 0; code < kStoredLossCount; ++code) {
    const QualityFacts& facts = facts_of(static_cast<QualityId>(code));
    table += fmt::format("| {} | `{}` | {} | {} |\n", code, facts.name, name_of(facts.severity), name_of(facts.unit));
  }
  EXPECT_NE(read_page("format.md").find(table + "\n"), std::string::npos) << "docs/format.md needs\n" << table;
}

}  // namespace
}  // namespace tidemark
