#include "report/chart/chart.h"

#include <cairo.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <vector>

#include "base/units.h"
#include "report/plot/layers.h"

namespace tidemark {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

// 8 MiB from 0 to 5 s, 1 MiB from then on; 9 MiB reserved.
Timeline sample() {
  Timeline timeline;
  timeline.recording.duration_ns = 10'000'000'000;
  TimelineSeries series;
  series.device = {DeviceType::cuda, 0};
  series.points = {
      {0, 8 * kMiB, 9 * kMiB, {}}, {5'000'000'000, kMiB, 9 * kMiB, {}}, {10'000'000'000, kMiB, 9 * kMiB, {}}};
  series.peak_allocated_bytes = 8 * kMiB;
  series.peak_allocated_at_ns = 0;
  series.peak_reserved_bytes = 9 * kMiB;
  timeline.series.push_back(series);
  return timeline;
}

class Picture {
 public:
  explicit Picture(const std::string& png) : png_(png), surface_(read(), &cairo_surface_destroy) {}
  [[nodiscard]] int width() const { return cairo_image_surface_get_width(surface_.get()); }
  [[nodiscard]] int height() const { return cairo_image_surface_get_height(surface_.get()); }
  // 0xRRGGBB of the middle of the pixel at `x` and `y`, from 0 to 1.
  [[nodiscard]] std::uint32_t colour(double x, double y) const {
    const unsigned char* row =
        cairo_image_surface_get_data(surface_.get()) +
        static_cast<std::ptrdiff_t>(y * height()) * cairo_image_surface_get_stride(surface_.get());
    std::uint32_t pixel = 0;
    std::memcpy(&pixel, row + static_cast<std::ptrdiff_t>(x * width()) * 4, sizeof pixel);
    return pixel & 0xFFFFFFU;
  }

 private:
  cairo_surface_t* read() {
    return cairo_image_surface_create_from_png_stream(
        [](void* closure, unsigned char* data, unsigned int length) {
          auto* self = static_cast<Picture*>(closure);
          if (self->at_ + length > self->png_.size()) return CAIRO_STATUS_READ_ERROR;
          std::memcpy(data, self->png_.data() + self->at_, length);
          self->at_ += length;
          return CAIRO_STATUS_SUCCESS;
        },
        this);
  }

  std::string png_;
  std::size_t at_ = 0;
  std::unique_ptr<cairo_surface_t, decltype(&cairo_surface_destroy)> surface_;
};

TEST(Chart, FillsTheAreaBelowTheCurve) {
  const std::vector<Timeline> timelines = {sample()};
  const auto png = draw_chart(timelines, ChartFormat::png);
  ASSERT_TRUE(png.ok());
  ASSERT_THAT(*png, StartsWith("\x89PNG\r\n"));
  const Picture picture(*png);
  EXPECT_EQ(picture.width(), 2400);
  const std::uint32_t filled = picture.colour(0.30, 0.62);  // 2.5 s, at less than 4 MiB
  const std::uint32_t empty = picture.colour(0.80, 0.62);   // 8 s, same height
  EXPECT_NE(filled, empty);
  EXPECT_EQ(empty, 0xFFFFFFU);
  EXPECT_GT(filled & 0xFFU, filled >> 16);  // blue
}

// Below the GPU's panel; but 64 ranks with a GPU each have no room for their hosts.
TEST(Chart, HasAPanelForTheHostWhereThereIsRoom) {
  std::vector<Timeline> timelines(1, sample());
  const int without = Picture(*draw_chart(timelines, ChartFormat::png)).height();
  timelines[0].host = HostTimeline{SampledOverTime{{kGiB, 0, kGiB}, {{0, kGiB}, {12'000'000'000, kGiB}}}, {}};
  const auto png = draw_chart(timelines, ChartFormat::png);
  ASSERT_TRUE(png.ok()) << png.error().message;
  EXPECT_GT(Picture(*png).height(), without);
  timelines.resize(kMaxPanels, timelines[0]);
  EXPECT_TRUE(draw_chart(timelines, ChartFormat::svg).ok());
}

// 4 GiB allocated, 2 cached, 1 of NCCL and 3 of others for 10 s; 12 used, so 2 are not explained.
Ledger layered() {
  LedgerDevice device;
  device.device = "cuda:0";
  device.libraries = {"NCCL"};
  for (const std::uint64_t seconds : {0U, 10U}) {
    LedgerPoint point;
    point.time_ns = seconds * 1'000'000'000;
    point.used_bytes = 12 * kGiB;
    point.allocated_bytes = 4 * kGiB;
    point.cached_bytes = 2 * kGiB;
    point.library_bytes = {kGiB};
    point.process_bytes = 3 * kGiB;
    device.points.push_back(point);
  }
  Ledger ledger;
  ledger.recording.duration_ns = 10'000'000'000;
  ledger.devices.push_back(device);
  return ledger;
}

TEST(LedgerChart, StacksTheLayersThatAreNotEmpty) {
  const Ledger ledger = layered();
  const std::vector<PlotLayer> layers = ledger_layers(ledger.devices[0]);
  ASSERT_EQ(layers.size(), 4U);
  EXPECT_THAT(layers[0].top, ::testing::Each(4 * kGiB));
  EXPECT_THAT(layers[1].top, ::testing::Each(6 * kGiB));
  EXPECT_EQ(layers[2].words, "NCCL");
  EXPECT_EQ(layers[2].role, Role::library1);
  EXPECT_THAT(layers[2].top, ::testing::Each(7 * kGiB));
  EXPECT_EQ(layers[3].words, "other processes");
  EXPECT_THAT(layers[3].top, ::testing::Each(10 * kGiB));
  EXPECT_EQ(highest_bytes(layers), 10 * kGiB);
}

TEST(LedgerChart, DrawsThemFromTheBottomUp) {
  const std::vector<Ledger> ledgers = {layered()};
  const auto png = draw_ledger(ledgers, ChartFormat::png);
  ASSERT_TRUE(png.ok());
  const Picture picture(*png);
  // In the middle of the picture, from the time axis upwards: each colour once, then paper above the known memory.
  std::vector<std::uint32_t> colours;
  for (int thousandth = 900; thousandth > 300; --thousandth) {
    const double y = thousandth / 1000.0;
    const std::uint32_t colour = picture.colour(0.52, y);
    const bool steady = colour == picture.colour(0.52, y - 0.004);
    if (steady && (colours.empty() || colours.back() != colour)) colours.push_back(colour);
  }
  ASSERT_GE(colours.size(), 5U);
  const auto first = std::find(colours.begin(), colours.end(), 0x0073B3U);
  ASSERT_LE(first, colours.end() - 5) << "allocated, in its blue";
  EXPECT_EQ(first[1], 0x99C5E1U) << "cached";
  EXPECT_EQ(first[2], 0x009E73U) << "NCCL";
  EXPECT_EQ(first[3], 0xCCD1D9U) << "other processes";
  EXPECT_EQ(first[4], 0xFFFFFFU) << "unexplained";
}

TEST(LedgerChart, SaysWhereNothingWasSampled) {
  const std::vector<Ledger> ledgers = {Ledger{}};
  const auto svg = draw_ledger(ledgers, ChartFormat::svg);
  ASSERT_TRUE(svg.ok());
  EXPECT_THAT(*svg, HasSubstr("<svg"));
  const std::vector<Ledger> many(65, layered());
  EXPECT_THAT(draw_ledger(many, ChartFormat::svg).error().message, HasSubstr("at most 64"));
}

TEST(Chart, GrowsWithItsPanels) {
  const std::vector<Timeline> one = {sample()};
  const std::vector<Timeline> three = {sample(), sample(), sample()};
  EXPECT_GT(Picture(*draw_chart(three, ChartFormat::png)).height(),
            Picture(*draw_chart(one, ChartFormat::png)).height());
}

TEST(Chart, DrawsSvg) {
  const std::vector<Timeline> timelines = {sample()};
  const auto svg = draw_chart(timelines, ChartFormat::svg);
  ASSERT_TRUE(svg.ok());
  EXPECT_THAT(*svg, HasSubstr("<svg"));
  EXPECT_THAT(*svg, HasSubstr("</svg>"));
}

TEST(Chart, DrawsRecordingsWithoutEvents) {
  const std::vector<Timeline> timelines(1);
  EXPECT_TRUE(draw_chart(timelines, ChartFormat::png).ok());
}

TEST(Chart, RefusesMorePanelsThanCanBeRead) {
  const std::vector<Timeline> timelines(kMaxPanels + 1, sample());
  const auto chart = draw_chart(timelines, ChartFormat::svg);
  ASSERT_FALSE(chart.ok());
  EXPECT_THAT(chart.error().message, HasSubstr("65 devices"));
}

// One segment of 8 MiB: used, pending, and from the middle on free.
Fragmentation half_free() {
  MapSegment segment;
  segment.size = 8 * kMiB;
  segment.blocks = {{0, 2 * kMiB, MapBlock::State::allocated, {}, {}},
                    {2 * kMiB, 2 * kMiB, MapBlock::State::pending_free, {}, {}},
                    {4 * kMiB, 4 * kMiB, MapBlock::State::free, {}, {}}};
  FragmentationDevice device;
  device.totals.device = {DeviceType::cuda, 0};
  device.knows_segments = true;
  device.map = {segment};
  Fragmentation fragmentation;
  fragmentation.devices.push_back(device);
  return fragmentation;
}

TEST(SegmentMapPicture, ColoursEachPieceByItsUse) {
  const std::vector<Fragmentation> results = {half_free()};
  const auto png = draw_segment_map(results, ChartFormat::png);
  ASSERT_TRUE(png.ok());
  const Picture picture(*png);
  // The row: from 84 + 34 units below the top, 13 high; 110 to 1164 units from the left of 1200.
  const double y = (84 + 34 + 6) * 2.0 / picture.height();
  EXPECT_EQ(picture.colour((110 + 1054 * 0.12) / 1200, y), 0x0073B3U);  // Role::allocated
  EXPECT_EQ(picture.colour((110 + 1054 * 0.37) / 1200, y), 0x009E73U);  // Role::pending_free
  EXPECT_EQ(picture.colour((110 + 1054 * 0.75) / 1200, y), 0xDEE3E8U);  // Role::free
}

TEST(SegmentMapPicture, SaysWhereThereIsNoMap) {
  std::vector<Fragmentation> results = {half_free()};
  results[0].devices[0].map.clear();
  results[0].devices[0].knows_segments = false;
  EXPECT_TRUE(draw_segment_map(results, ChartFormat::svg).ok());
  EXPECT_TRUE(draw_segment_map(std::vector<Fragmentation>(1), ChartFormat::svg).ok());
  results[0].devices.resize(kMaxPanels + 1);
  EXPECT_FALSE(draw_segment_map(results, ChartFormat::svg).ok());
}

}  // namespace
}  // namespace tidemark
