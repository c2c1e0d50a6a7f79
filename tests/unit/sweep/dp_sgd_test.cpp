#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "dp_sgd/results.h"
#include "query/results/results.h"
#include "temporary_folder.h"

namespace tidemark {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::TemporaryFolder;

constexpr std::uint64_t kOneGB = std::uint64_t{1} << 30;

constexpr char kLine[] =
    "DP_SGD {\"peak_allocated_bytes\": 900, \"phases\": {\"model loading\": {\"end_bytes\": 100, \"peak_bytes\": 120}, "
    "\"backward\": {\"end_bytes\": 300, \"peak_bytes\": 900}}, \"components\": {\"parameters\": {\"lora\": 8, "
    "\"attention\": 90}, \"per_sample_gradients\": {\"lora\": 16}}, \"torch\": \"2.11.0\", \"opacus\": \"1.6.0\"}\n";

TEST(DpSgd, ReadsTheLastLine) {
  const auto report = parse_dp_sgd("loss\nDP_SGD {\"phases\": 1}\n10%\r" + std::string(kLine) + "goodbye\n");
  ASSERT_TRUE(report) << report.error().message;
  ASSERT_EQ(report->phases.size(), 2U);
  EXPECT_EQ(report->phases[0].name, "model loading");
  ASSERT_NE(report->phase("backward"), nullptr);
  EXPECT_EQ(report->phase("backward")->peak_bytes, 900U);
  EXPECT_EQ(report->phase("forward"), nullptr);
  EXPECT_EQ(report->bytes_of("parameters"), 98U);
  EXPECT_EQ(report->bytes_of(kPerSampleGradients), 16U);
  EXPECT_EQ(report->bytes_of("gradients"), std::nullopt);
  EXPECT_EQ(report->torch_version, "2.11.0");
  EXPECT_EQ(report->opacus_version, "1.6.0");
}

TEST(DpSgd, RejectsOtherLinesWithTheReason) {
  const auto none = parse_dp_sgd("an output\nDP_SGD\n");
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().message, "its output has no line DP_SGD");
  std::string many;
  for (int phase = 0; phase < 65; ++phase) {
    many += (phase == 0 ? "" : ", ") + ("\"" + std::to_string(phase)) + "\": {\"end_bytes\": 1, \"peak_bytes\": 1}";
  }
  for (const std::string& json : {
           std::string("{"),
           std::string("{\"phases\": {}}"),
           std::string("{\"phases\": [], \"components\": {}}"),
           std::string("{\"phases\": {\"forward\": {\"end_bytes\": 1}}, \"components\": {}}"),
           std::string("{\"phases\": {\"forward\": {\"end_bytes\": 1, \"peak_bytes\": -1}}, \"components\": {}}"),
           std::string("{\"phases\": {}, \"components\": {\"parameters\": 5}}"),
           std::string("{\"phases\": {}, \"components\": {\"parameters\": {\"lora\": \"5\"}}}"),
           "{\"phases\": {" + many + "}, \"components\": {}}",
           "{\"phases\": {}, \"components\": {}, \"torch\": \"" + std::string(70'000, '2') + "\"}",
       }) {
    const auto report = parse_dp_sgd("DP_SGD " + json + "\n");
    ASSERT_FALSE(report) << json.substr(0, 100);
    EXPECT_THAT(report.error().message, HasSubstr("is not as dp_sgd.py writes it"));
  }
}

TEST(DpSgd, IsInTheMessagesOfAPlanAndInTheOutputOfARecordedProgram) {
  for (const char* name : {"output.log", "result.json"}) {
    const TemporaryFolder folder;
    EXPECT_FALSE(read_dp_sgd(folder.path()));
    folder.write("result.json", "{}\n");
    folder.write("output.log", "a warning\n");
    folder.write(name, std::string("a warning\n") + kLine);
    EXPECT_TRUE(read_dp_sgd(folder.path())) << name;
  }
}

TEST(Sweep, LeavesOutCombinations) {
  Sweep sweep;
  sweep.arguments = {{"batch", "--batch", {"1", "2"}}, {"physical", "--physical", {"1", "2", "4"}}};
  sweep.gpus.resize(2);
  add_combinations(sweep, [](const std::vector<std::string>& values) { return values[1] <= values[0]; });
  ASSERT_EQ(sweep.rows.size(), 6U);
  EXPECT_THAT(sweep.rows[0].values, ElementsAre("1", "1"));
  EXPECT_THAT(sweep.rows[1].values, ElementsAre("2", "1"));
  EXPECT_THAT(sweep.rows[2].values, ElementsAre("2", "2"));
  EXPECT_EQ(sweep.rows[2].gpu, 0U);
  EXPECT_EQ(sweep.rows[3].gpu, 1U);
}

// Two configurations that ran, with 1/4 of the peak in per-sample gradients and none, and one that did not.
DpSgdSweep made_up() {
  DpSgdSweep result;
  result.model = "model.json";
  Sweep& sweep = result.sweep;
  sweep.program = {"python", "dp_sgd.py"};
  sweep.arguments = {{"batch_size", "--batch_size", {"8"}}, {"clipping", "--clipping", {"hooks", "ghost", "none"}}};
  sweep.gpus.resize(1);
  sweep.gpus[0].name = "H200";
  add_combinations(sweep);
  const std::uint64_t peaks[] = {4 * kOneGB, 2 * kOneGB};
  for (std::size_t row = 0; row < 2; ++row) {
    TrialResult& trial = sweep.rows[row].result.emplace();
    trial.fits = true;
    trial.peak_allocated_bytes = peaks[row];
    trial.peak_reserved_bytes = 5 * kOneGB;
    sweep.rows[row].folder = "trials/0001";
    DpSgdReport& report = result.reports.emplace_back().emplace();
    report.phases = {{"model loading", kOneGB, kOneGB}, {"backward", kOneGB, peaks[row]}};
    report.kinds = {{"parameters", {{"attention", kOneGB}, {"lora", kOneGB / 8}}},
                    {"per_sample_gradients", {{"lora", row == 0 ? kOneGB : 0}}}};
    report.torch_version = "2.11.0";
    report.opacus_version = "1.6.0";
  }
  result.reports.emplace_back();
  sweep.rows[2].result.emplace().failure = "no such way";
  return result;
}

TEST(DpSgd, AsCsv) {
  EXPECT_EQ(to_csv(made_up()),
            "config,gpu,batch_size,clipping,fits,peak_allocated_bytes,peak_reserved_bytes,device_used_bytes,"
            "per_sample_gradient_share,parameters_bytes,per_sample_gradients_bytes,model_loading_peak_bytes,"
            "backward_peak_bytes,failure\n"
            "1,H200,8,hooks,true,4294967296,5368709120,,0.250000,1207959552,1073741824,1073741824,4294967296,\n"
            "2,H200,8,ghost,true,2147483648,5368709120,,0.000000,1207959552,0,1073741824,2147483648,\n"
            "3,H200,8,none,,,,,,,,,,no such way\n");
}

TEST(DpSgd, AsText) {
  const std::string text = to_text(made_up(), {});
  EXPECT_THAT(text, HasSubstr("\nComponent breakdown:\n"
                              "  GB of 2^30 bytes, in config 1, which takes the most (batch_size=8 clipping=hooks)\n"));
  EXPECT_THAT(text, HasSubstr("  component  parameters  per-sample gradients\n"
                              "  attention       1.000                 0.000\n"
                              "       lora       0.125                 1.000\n"
                              "        all       1.125                 1.000\n"));
  EXPECT_THAT(text, HasSubstr("  config  batch_size  clipping  peak allocated  per-sample gradients  share\n"
                              "       1           8     hooks           4.000                 1.000  25.0%\n"
                              "       2           8     ghost           2.000                 0.000   0.0%\n"));
  EXPECT_EQ(to_text(DpSgdSweep(), {}), "");
}

TEST(DpSgd, AsJson) {
  const DpSgdSweep sweep = made_up();
  const std::string json = to_json(sweep);
  EXPECT_THAT(json, HasSubstr("\"model\": \"model.json\""));
  EXPECT_THAT(json, HasSubstr("\"per_sample_gradient_bytes\": 1073741824,\n      \"per_sample_gradient_share\": 0.25"));
  EXPECT_THAT(json, HasSubstr("\"model loading\": {\n          \"end_bytes\": 1073741824"));
  EXPECT_THAT(json, HasSubstr("\"phases\": null,\n      \"torch\": null"));
  EXPECT_THAT(to_json(DpSgdComponents{&sweep}),
              HasSubstr("\"per_sample_gradients\": {\n          \"lora\": 1073741824"));
}

TEST(DpSgd, AsPictures) {
  for (const auto draw : {draw_dp_sgd_components, draw_dp_sgd_phases}) {
    const auto picture = draw(made_up(), ChartFormat::svg);
    ASSERT_TRUE(picture) << picture.error().message;
    EXPECT_THAT(*picture, HasSubstr("<svg"));
    EXPECT_TRUE(draw(DpSgdSweep(), ChartFormat::png));
  }
}

}  // namespace
}  // namespace tidemark
