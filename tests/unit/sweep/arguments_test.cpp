#include "sweep/arguments.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tidemark {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Words = std::vector<std::string>;

Words values_of(const char* text) {
  const auto argument = parse_varied(text);
  return argument ? argument->values : Words{"error: " + argument.error().message};
}

TEST(Arguments, ListsAndRanges) {
  EXPECT_THAT(values_of("seq=128,512,2048"), ElementsAre("128", "512", "2048"));
  EXPECT_THAT(values_of("attention=eager,sdpa,eager"), ElementsAre("eager", "sdpa"));
  EXPECT_THAT(values_of("batch=1..64"), ElementsAre("1", "2", "4", "8", "16", "32", "64"));
  EXPECT_THAT(values_of("batch=3..20"), ElementsAre("3", "6", "12", "20"));  // with the end of the range
  EXPECT_THAT(values_of("batch=8..32:8"), ElementsAre("8", "16", "24", "32"));
  EXPECT_THAT(values_of("batch=0..5:2"), ElementsAre("0", "2", "4"));
  EXPECT_THAT(values_of("batch=7..7"), ElementsAre("7"));
  EXPECT_THAT(values_of("offset=-1,2"), ElementsAre("-1", "2"));  // no option
}

TEST(Arguments, TheOptionIsTheNameWhereNoneIsGiven) {
  EXPECT_EQ(parse_varied("seq=1")->option, "--seq");
  const auto batch = parse_varied("batch=--batch-size=1..4");
  EXPECT_EQ(batch->name, "batch");
  EXPECT_EQ(batch->option, "--batch-size");
  EXPECT_THAT(batch->values, ElementsAre("1", "2", "4"));
  EXPECT_EQ(parse_varied("batch=-b=1,2")->option, "-b");
}

TEST(Arguments, MistakesAreNamed) {
  for (const auto& [text, problem] : std::vector<std::pair<const char*, const char*>>{
           {"seq", "has no values"},
           {"seq=", "has no values"},
           {"batch=--batch-size", "has no values"},
           {"=1,2", "expected NAME"},
           {"2x=1,2", "expected NAME"},
           {"seq=1,,2", "a value is empty"},
           {"seq=1,2,", "a value is empty"},
           {"seq=64..1", "an empty range"},
           {"seq=0..8", "begins with 1 or more"},
           {"seq=1..8:0", "the step has to be 1 or more"},
           {"seq=1..8:-2", "the step has to be 1 or more"},
           {"seq=-4..8:2", "expected a range"},
           {"seq=1..", "expected a range"},
           {"seq=1..x", "expected a range"},
           {"seq=1..1000000:1", "more than 4096 values"},
           {"seq=1..99999999999999999", "beyond 2^48"},
       }) {
    const auto argument = parse_varied(text);
    ASSERT_FALSE(argument) << text;
    EXPECT_THAT(argument.error().message, HasSubstr(problem)) << text;
  }
}

TEST(Arguments, WhatToFitMayHaveARange) {
  EXPECT_EQ(parse_fitted("batch=--batch-size")->argument.option, "--batch-size");
  EXPECT_EQ(parse_fitted("batch")->range.high, std::uint64_t{1} << 20);
  const auto fitted = parse_fitted("batch=--batch-size=8..100:8");
  EXPECT_EQ(fitted->range.low, 8U);
  EXPECT_EQ(fitted->range.high, 96U);  // the last that steps of 8 reach
  EXPECT_EQ(fitted->range.step, 8U);
  EXPECT_FALSE(parse_fitted("batch=1,2,4"));
  EXPECT_FALSE(parse_fitted("batch=8..1"));
}

Words filled(const Words& command, const Words& specs, const Words& values) {
  std::vector<VariedArgument> arguments;
  for (const std::string& spec : specs) arguments.push_back(*parse_varied(spec));
  const auto program = VariedProgram::create(command, std::move(arguments));
  return program ? program->with(values) : Words{"error: " + program.error().message};
}

TEST(Arguments, ReplaceWhatTheProgramHas) {
  EXPECT_THAT(filled({"python", "t.py", "--seq", "1", "--steps", "3"}, {"seq=1"}, {"512"}),
              ElementsAre("python", "t.py", "--seq", "512", "--steps", "3"));
  EXPECT_THAT(filled({"python", "t.py", "--seq=1"}, {"seq=1"}, {"512"}), ElementsAre("python", "t.py", "--seq=512"));
  EXPECT_THAT(filled({"python", "t.py", "--seq"}, {"seq=1"}, {"512"}), ElementsAre("python", "t.py", "--seq", "512"));
  EXPECT_THAT(filled({"python", "t.py", "--sequence", "9"}, {"seq=1"}, {"512"}),
              ElementsAre("python", "t.py", "--sequence", "9", "--seq", "512"));
  EXPECT_THAT(filled({"python", "t.py"}, {"batch=-b=1", "seq=1"}, {"4", "512"}),
              ElementsAre("python", "t.py", "-b", "4", "--seq", "512"));
}

TEST(Arguments, FillPlaceholders) {
  EXPECT_THAT(filled({"python", "t.py", "--shape={batch}x{seq}", "{batch}"}, {"seq=1", "batch=1"}, {"512", "4"}),
              ElementsAre("python", "t.py", "--shape=4x512", "4"));
  // An option of the same name stays as it is, and so do other braces.
  EXPECT_THAT(filled({"t.py", "--seq", "7", "{seq}", "{\"a\": 1}", "{{seq}}", "{}"}, {"seq=1"}, {"512"}),
              ElementsAre("t.py", "--seq", "7", "512", "{\"a\": 1}", "{seq}", "{}"));
}

TEST(Arguments, PlaceholdersAreKnownAndNamesDiffer) {
  EXPECT_THAT(filled({"t.py", "{width}"}, {"seq=1"}, {"1"}).front(), HasSubstr("{width} in the program's arguments"));
  EXPECT_THAT(filled({"t.py"}, {"seq=1", "seq=2"}, {"1", "2"}).front(), HasSubstr("seq is given twice"));
}

}  // namespace
}  // namespace tidemark
