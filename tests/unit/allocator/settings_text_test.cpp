#include "allocator/settings_text.h"

#include <gtest/gtest.h>

namespace tidemark {
namespace {

TEST(SettingsText, ListsKeepTheirCommas) {
  const auto settings = parse_settings("max_split_size_mb:64, roundup_power2_divisions:[256:1,>:4]");
  ASSERT_TRUE(settings.ok());
  EXPECT_EQ(*settings, (SettingList{{"max_split_size_mb", "64"}, {"roundup_power2_divisions", "[256:1,>:4]"}}));
  EXPECT_EQ(settings_text(*settings), "max_split_size_mb:64,roundup_power2_divisions:[256:1,>:4]");
}

TEST(SettingsText, ChangesReplaceValues) {
  const SettingList base = {{"max_split_size_mb", "64"}, {"expandable_segments", "True"}};
  EXPECT_EQ(settings_text(with_changes(base, {{"max_split_size_mb", "128"}, {"garbage_collection_threshold", "0.8"}})),
            "max_split_size_mb:128,expandable_segments:True,garbage_collection_threshold:0.8");
}

TEST(SettingsText, RejectsInvalidSettings) {
  for (const char* text : {"expandable_segments", ":True", "expandable_segments:", "a:[1", "a:1],b:2", "a:]1["}) {
    EXPECT_FALSE(parse_settings(text).ok()) << text;
  }
}

TEST(SettingsText, OfAnEnvironmentTheRulesTakeWhatTheyKnow) {
  const std::string text = "backend:native,max_split_size_mb:64,expandable_segments:maybe,pinned_num_threads:8";
  const pytorch::AllocatorSettings settings = known_settings(text);
  EXPECT_EQ(settings.max_split_size, std::int64_t{64} << 20);
  EXPECT_FALSE(settings.expandable_segments.has_value()) << "PyTorch would refuse this value";
  EXPECT_EQ(settings.text, text);
  EXPECT_EQ(known_settings("a:[1").text, "a:[1");
  EXPECT_FALSE(known_settings("").max_split_size.has_value());
}

TEST(SettingsText, FilesSetNothingElse) {
  EXPECT_EQ(placement_settings({{"backend", "cudaMallocAsync"}, {"max_split_size_mb", "64"}}),
            (SettingList{{"max_split_size_mb", "64"}}));
}

// As torch 2.11 reports "[1:2,4:4,16:8,>:16]" in allocator_settings of a snapshot.
TEST(SettingsText, DivisionsBySizeAreThoseOfPyTorch) {
  const auto settings = allocator_settings({{"roundup_power2_divisions", "[1:2,4:4,16:8,>:16]"}});
  ASSERT_TRUE(settings.ok());
  const auto divisions = [&](std::uint64_t mebibytes) {
    const auto found = settings->roundup_power2_divisions.find(mebibytes);
    return found == settings->roundup_power2_divisions.end() ? 0 : found->second;
  };
  EXPECT_EQ(divisions(1), 2U);
  EXPECT_EQ(divisions(2), 0U);
  EXPECT_EQ(divisions(4), 4U);
  EXPECT_EQ(divisions(8), 0U);
  EXPECT_EQ(divisions(16), 8U);
  for (std::uint64_t mebibytes = 32; mebibytes <= 32768; mebibytes *= 2) EXPECT_EQ(divisions(mebibytes), 16U);
}

TEST(SettingsText, ValuesThatPyTorchRefusesAreErrors) {
  EXPECT_FALSE(allocator_settings({{"max_split_size_mb", "20"}}).ok());  // has to be more than a large buffer
  EXPECT_FALSE(allocator_settings({{"expandable_segments", "yes"}}).ok());
  EXPECT_FALSE(allocator_settings({{"garbage_collection_threshold", "1.5"}}).ok());
  EXPECT_FALSE(allocator_settings({{"roundup_power2_divisions", "[1:2"}}).ok());
  EXPECT_FALSE(allocator_settings({{"no_such_setting", "1"}}).ok());
}

}  // namespace
}  // namespace tidemark
