#include "analyze/sweep/sweep.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "query/results/results.h"
#include "report/chart/chart.h"
#include "report/common/csv.h"
#include "report/common/text.h"

namespace tidemark {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr std::uint64_t kMB = 1'000'000;

// 100 MB, 2 MB for each batch and 1 MB for each batch and 100 of seq; eager attention takes 50 MB more.
std::uint64_t bytes_of(const SweepRow& row) {
  const std::uint64_t batch = std::stoull(row.values[0]);
  const std::uint64_t seq = std::stoull(row.values[1]);
  return (100 + 2 * batch + batch * seq / 100 + (row.values[2] == "eager" ? 50 : 0)) * kMB;
}

void run_row(const Sweep& sweep, SweepRow& row) {
  TrialResult& result = row.result.emplace();
  const std::uint64_t bytes = bytes_of(row);
  result.out_of_memory = bytes > *sweep.gpus[row.gpu].memory_bytes;
  result.fits = !result.out_of_memory;
  result.peak_allocated_bytes = std::min(bytes, *sweep.gpus[row.gpu].memory_bytes);
  result.peak_reserved_bytes = result.peak_allocated_bytes;
  row.folder = "trials/0001";
}

Sweep make_sweep() {
  Sweep sweep;
  sweep.program = {"python", "train.py"};
  sweep.arguments = {{"batch", "--batch-size", {"1", "2", "4", "8"}},
                     {"seq", "--seq", {"100", "200", "400"}},
                     {"attention", "--attention", {"sdpa", "eager"}}};
  sweep.gpus = {{"A", "A", 1000 * kMB, 0}, {"B", "B", 160 * kMB, 0}};
  add_combinations(sweep);
  return sweep;
}

TEST(Sweep, HasAllCombinationsAndGroups) {
  const Sweep sweep = make_sweep();
  ASSERT_EQ(sweep.rows.size(), 2U * 4 * 3 * 2);
  EXPECT_THAT(sweep.rows[0].values, ElementsAre("1", "100", "sdpa"));
  EXPECT_THAT(sweep.rows[1].values, ElementsAre("1", "100", "eager"));
  EXPECT_THAT(sweep.rows[23].values, ElementsAre("8", "400", "eager"));
  EXPECT_EQ(sweep.rows[24].gpu, 1U);
  EXPECT_THAT(sweep.numeric(), ElementsAre(0, 1));
  EXPECT_THAT(sweep.groups(),
              ElementsAre("A, attention=sdpa", "A, attention=eager", "B, attention=sdpa", "B, attention=eager"));
  EXPECT_EQ(sweep.group_of(sweep.rows[25]), 3U);
  EXPECT_THAT(sweep.numbers_of(sweep.rows[23]), ElementsAre(8, 400));
}

TEST(Sweep, PredictsMissingAndFailedRows) {
  Sweep sweep = make_sweep();
  for (SweepRow& row : sweep.rows) {
    if (row.gpu == 1 || row.values[0] != "8") run_row(sweep, row);
  }
  predict(sweep);
  ASSERT_TRUE(sweep.allocated);
  EXPECT_LT(sweep.allocated->largest_error_share(), 1e-6);
  for (const SweepRow& row : sweep.rows) {
    EXPECT_NE(row.measured(), row.prediction.has_value());
    if (!row.prediction) continue;
    EXPECT_NEAR(static_cast<double>(row.prediction->peak_allocated_bytes.value_or(0)),
                static_cast<double>(bytes_of(row)), 10);
    EXPECT_EQ(row.fits(), bytes_of(row) <= *sweep.gpus[row.gpu].memory_bytes);
  }
  const std::string text = to_text(sweep, {});
  EXPECT_THAT(text, HasSubstr("42 of 48 configurations were tried"));
  EXPECT_THAT(text, HasSubstr("~ predicted by the law"));
  EXPECT_THAT(text, HasSubstr("9.8 KiB * batch * seq"));  // 10,000 bytes
}

TEST(Sweep, ChoosesInformativeTrials) {
  Sweep sweep = make_sweep();
  sweep.gpus.pop_back();
  sweep.rows.resize(24);
  sweep.gpus[0].memory_bytes = 140 * kMB;
  std::vector<bool> taken(24);
  std::vector<std::size_t> chosen;
  for (int trial = 0; trial < 12; ++trial) {
    predict(sweep);
    const auto row = next_row(sweep, taken);
    ASSERT_TRUE(row);
    ASSERT_FALSE(taken[*row]);
    taken[*row] = true;
    run_row(sweep, sweep.rows[*row]);
    chosen.push_back(*row);
  }
  EXPECT_EQ(chosen.front(), 0U);  // without any data: the first
  EXPECT_EQ(chosen[1], 23U);      // farthest from it
  predict(sweep);
  for (const SweepRow& row : sweep.rows) EXPECT_EQ(row.fits(), bytes_of(row) <= 140 * kMB);
  std::fill(taken.begin(), taken.end(), true);
  EXPECT_EQ(next_row(sweep, taken), std::nullopt);
}

Sweep small_sweep() {
  Sweep sweep;
  sweep.program = {"python", "train.py"};
  sweep.arguments = {{"batch", "--batch-size", {"1", "2", "3"}}};
  sweep.gpus = {{"=A", "=A", 3 * kMB, std::nullopt}};
  add_combinations(sweep);
  TrialResult& first = sweep.rows[0].result.emplace();
  first.fits = true;
  first.peak_allocated_bytes = 1000;
  first.peak_reserved_bytes = 2048;
  first.duration_ns = 7;
  first.host_bytes = 9;
  sweep.rows[0].folder = "trials/0001";
  sweep.rows[1].result.emplace().failure = "failed, \"badly\"";
  sweep.rows[1].folder = "trials/0002";
  return sweep;
}

TEST(Sweep, AsCsv) {
  EXPECT_EQ(to_csv(small_sweep()),
            "gpu,batch,fits,peak_allocated_bytes,peak_reserved_bytes,device_used_bytes,out_of_memory,predicted_fits,"
            "predicted_peak_allocated_bytes,predicted_peak_reserved_bytes,failure,duration_ns,host_bytes,folder\n"
            "'=A,1,true,1000,2048,,false,,,,,7,9,trials/0001\n"
            "'=A,2,,,,,false,,,,\"failed, \"\"badly\"\"\",0,0,trials/0002\n"
            "'=A,3,,,,,,,,,,,,\n");
}

TEST(Sweep, AsJsonAndText) {
  const std::string json = to_json(small_sweep());
  EXPECT_THAT(json, HasSubstr("\"values\": {\n        \"batch\": \"1\"\n      }"));
  EXPECT_THAT(
      json,
      HasSubstr("\"result\": null,\n      \"categories\": null,\n      \"prediction\": null,\n      \"folder\": null"));
  EXPECT_THAT(json, HasSubstr("\"by_category\": null"));
  const std::string text = to_text(small_sweep(), {});
  EXPECT_THAT(text, HasSubstr("2 of 3 configurations were tried, 1 failed"));
  EXPECT_THAT(text, HasSubstr("peak allocated  n/a: too few trials that fit"));
}

// Parameters are 1,000 bytes for any batch, activations 300 and 500 for each of it; gradients are not always alive.
TEST(Sweep, LawsByCategory) {
  Sweep sweep;
  sweep.arguments = {{"batch", "--batch", {"1", "2", "3", "4", "6", "8", "100"}}};
  sweep.gpus = {{"A", "A", std::nullopt, std::nullopt}};
  add_combinations(sweep);
  for (SweepRow& row : sweep.rows) {
    const auto batch = static_cast<std::uint64_t>(sweep.numbers_of(row).front());
    if (batch == 100) continue;
    TrialResult& result = row.result.emplace();
    result.peak_allocated_bytes = 1300 + 500 * batch;
    result.categories = {{Category::parameter, 1000}, {Category::activation, 300 + 500 * batch}};
    if (batch > 2) result.categories.push_back({Category::gradient, 70});
  }
  predict(sweep);
  ASSERT_EQ(sweep.by_category.size(), 2U);
  EXPECT_EQ(sweep.by_category[0].category, Category::parameter);
  EXPECT_NEAR(sweep.by_category[0].law.at({100}, 0).value_or(0), 1000, 1e-3);
  EXPECT_EQ(sweep.by_category[1].category, Category::activation);
  EXPECT_NEAR(sweep.by_category[1].law.at({100}, 0).value_or(0), 50'300, 1e-3);
  EXPECT_NEAR(sweep.by_category[1].law.largest_error_share(), 0, 1e-9);
  const std::string json = to_json(sweep);
  EXPECT_THAT(json,
              HasSubstr("\"category\": \"activation\",\n        \"text\": [\n          \"300 B + 500 B * batch\""));
  EXPECT_THAT(json, HasSubstr("\"categories\": {\n        \"parameter\": 1000,\n        \"activation\": 800\n      }"));
  EXPECT_THAT(to_text(sweep, {}),
              HasSubstr("activation      300 B + 500 B * batch\n                  error: median 0.0%"));
  const std::string csv = to_csv(sweep);
  EXPECT_THAT(csv, HasSubstr(",folder,parameter_bytes,gradient_bytes,activation_bytes\n"));
  EXPECT_THAT(csv, HasSubstr(",1000,0,800\n"));
  EXPECT_THAT(csv, HasSubstr(",1000,70,1800\n"));
}

TEST(Sweep, AsPictures) {
  Sweep sweep = make_sweep();
  for (SweepRow& row : sweep.rows) {
    if (row.values[0] != "4") run_row(sweep, row);
  }
  predict(sweep);
  for (const auto draw : {draw_sweep_curves, draw_sweep_fits}) {
    for (const Sweep& drawn : {sweep, small_sweep()}) {
      const auto picture = draw(drawn, ChartFormat::png);
      ASSERT_TRUE(picture) << picture.error().message;
      EXPECT_EQ(picture->compare(1, 3, "PNG"), 0);
    }
  }
}

}  // namespace
}  // namespace tidemark
