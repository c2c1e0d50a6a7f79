// Plots before a backend draws them; then as SVG. chart_test.cpp checks the pixels of pictures.
#include "report/plot/plot.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <string>

#include "base/units.h"
#include "report/html/markup.h"
#include "report/plot/plots.h"

namespace tidemark {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr std::uint64_t kSecond = 1'000'000'000;

// Reserved bytes are unknown from 2 s to 6 s; a request fails at 5 s.
Timeline gap() {
  Timeline timeline;
  timeline.recording.duration_ns = 10 * kSecond;
  TimelineSeries series;
  series.device = {DeviceType::cuda, 0};
  series.points = {{0, 8 * kMiB, 9 * kMiB, {}},
                   {2 * kSecond, 4 * kMiB, {}, {}},
                   {6 * kSecond, 4 * kMiB, 5 * kMiB, {}},
                   {10 * kSecond, 4 * kMiB, 5 * kMiB, {}}};
  series.peak_allocated_bytes = 8 * kMiB;
  series.peak_allocated_at_ns = 0;
  series.peak_reserved_bytes = 9 * kMiB;
  timeline.series.push_back(series);
  timeline.out_of_memory = {{5 * kSecond, 64 * kMiB, series.device}, {6 * kSecond, kMiB, {DeviceType::cuda, 1}}};
  return timeline;
}

Plot gap_plot() {
  const Timeline timeline = gap();
  return timeline_plot(timeline, timeline.series[0], {timeline.recording.duration_ns, 200, true});
}

// Of 10 s, the frame shows the last 8: what came before is left of it, and the state at its beginning is drawn.
TEST(TimelinePlot, BeginsWhereTheFrameDoes) {
  Timeline timeline = gap();
  timeline.bands.steps = {{0, kSecond}, {1, 6 * kSecond}};
  TimeFrame frame{timeline.recording.duration_ns, 200, true};
  frame.begin_ns = 2 * kSecond;
  const Plot plot = timeline_plot(timeline, timeline.series[0], frame);
  EXPECT_DOUBLE_EQ(plot.boxes.at(0).x, 0);
  EXPECT_DOUBLE_EQ(plot.boxes.at(0).width, 0.5);
  EXPECT_DOUBLE_EQ(plot.boxes.at(1).x, 0.5);
  EXPECT_DOUBLE_EQ(plot.curves.at(0).runs.at(0).front().x, 0);
  EXPECT_DOUBLE_EQ(plot.curves.at(0).runs.at(0).back().x, 1);
  EXPECT_EQ(plot.ticks.front().label, "2 s");
  EXPECT_DOUBLE_EQ(plot.ticks.front().at, 0);
}

TEST(TimelinePlot, HasALineAtTheCapacityThatIsNear) {
  Timeline timeline = gap();
  const auto labels = [&] {
    std::set<std::string> words;
    for (const PlotKey& key : timeline_plot(timeline, timeline.series[0], {timeline.recording.duration_ns, 200}).legend)
      words.insert(key.words);
    return words;
  };
  timeline.series[0].capacity_bytes = 16 * kMiB;
  EXPECT_TRUE(labels().contains("capacity 16.0 MiB"));
  timeline.series[0].capacity_bytes = 64 * kMiB;
  EXPECT_FALSE(labels().contains("capacity 64.0 MiB")) << "everything else would be at the bottom";
}

TEST(BreakdownPlot, LayersAreInTheModelsOrder) {
  BreakdownDevice device;
  device.categories.push_back({});
  device.categories.back().category = Category::parameter;
  BreakdownGroup& group = device.groups.emplace_back();
  group.kind = OwnerKind::layer;
  for (const std::uint32_t order : {2U, 0U, 1U}) {  // most bytes first
    BreakdownRow& row = group.rows.emplace_back();
    row.owner = {OwnerKind::layer, "layers." + std::to_string(order)};
    row.order = order;
  }
  std::vector<std::string> labels;
  const Plot plot = breakdown_plot(device);
  for (const PlotTick& tick : plot.margin) labels.push_back(tick.label);
  EXPECT_THAT(labels, ElementsAre("all", "layers.0", "layers.1", "layers.2"));
}

// Ratios computed by the formula of WCAG 2.1: ink on the blue of parameters 3.2, paper 5.1; on yellow 12.5 and 1.3.
TEST(Palette, TextHasTheColourWithMoreContrast) {
  EXPECT_EQ(text_role_on(Role::parameters), Role::paper);
  EXPECT_EQ(text_role_on(Role::backward_phase), Role::paper);
  EXPECT_EQ(text_role_on(Role::inputs), Role::ink);
  EXPECT_EQ(text_role_on(Role::even_step), Role::ink);
}

// Step 0 ends at 5 s, and the end of the last step is unknown: it is drawn up to the recording's.
TEST(TimelinePlot, ShowsStepsAndPhasesAboveTheFrame) {
  Timeline timeline = gap();
  const double without = gap_plot().frame_top;
  timeline.bands.steps = {{0, kSecond}, {1, 5 * kSecond}};
  timeline.bands.phases = {{Phase::forward, kSecond, 3 * kSecond}, {Phase::backward, 3 * kSecond, 4 * kSecond}};
  const Plot plot = timeline_plot(timeline, timeline.series[0], {timeline.recording.duration_ns, 200, true});
  ASSERT_EQ(plot.boxes.size(), 4U);
  EXPECT_EQ(plot.boxes[0].role, Role::even_step);
  EXPECT_DOUBLE_EQ(plot.boxes[0].x, 0.1);
  EXPECT_DOUBLE_EQ(plot.boxes[0].width, 0.4);
  EXPECT_THAT(plot.boxes[0].label, ElementsAre("0"));
  EXPECT_EQ(plot.boxes[1].role, Role::odd_step);
  EXPECT_DOUBLE_EQ(plot.boxes[1].width, 0.5);
  EXPECT_EQ(plot.boxes[2].role, Role::forward_phase);
  EXPECT_DOUBLE_EQ(plot.boxes[2].x, 0.1);
  EXPECT_NEAR(plot.boxes[2].width, 0.2, 1e-9);
  EXPECT_EQ(plot.boxes[3].role, Role::backward_phase);
  EXPECT_GT(plot.boxes[2].y, plot.boxes[0].y);
  EXPECT_LT(plot.boxes[2].y + plot.boxes[2].height, plot.frame_top);
  EXPECT_EQ(plot.frame_top - without, 40) << "two strips";
  EXPECT_THAT(plot.legend, ::testing::Contains(PlotKey{Role::forward_phase, PlotKey::Sample::box, "forward"}));
  timeline.bands.phases.reset();
  EXPECT_THAT(timeline_plot(timeline, timeline.series[0], {timeline.recording.duration_ns, 200, true}).remark,
              HasSubstr("change too often"));
}

// If categories are known, the area has their layers, below the line of reserved memory.
TEST(TimelinePlot, HasTheLayersOfASplit) {
  Timeline timeline = gap();
  TimelineLayers split;
  split.by = OwnerKind::category;
  split.layers = {{{}, {OwnerKind::category, "parameter"}, {2 * kMiB, 2 * kMiB, 2 * kMiB, 2 * kMiB}},
                  {{}, {OwnerKind::category, "activation"}, {6 * kMiB, 2 * kMiB, 2 * kMiB, 2 * kMiB}}};
  split.other.assign(4, 0);
  split.unrecorded.assign(4, 0);
  const Plot plot = timeline_plot(timeline, timeline.series[0], {timeline.recording.duration_ns, 200, true}, &split);
  std::set<Role> roles;
  for (const PlotCurve& curve : plot.curves) roles.insert(curve.role);
  EXPECT_EQ(roles, (std::set<Role>{Role::parameters, Role::activations, Role::ink, Role::reserved}));
  EXPECT_EQ(plot.marks.size(), 1U);
}

// PSS is read more rarely than RSS, and the last sample is after the last event.
TEST(HostPlot, DrawsRssAndPss) {
  HostTimeline host;
  host.rss = SampledOverTime{{6 * kGiB, 4 * kSecond, 5 * kGiB}, {{0, kGiB}, {4 * kSecond, 6 * kGiB}}};
  host.rss->points.push_back({20 * kSecond, 5 * kGiB});
  host.pss = SampledOverTime{{3 * kGiB, 4 * kSecond, 3 * kGiB}, {{4 * kSecond, 3 * kGiB}}};
  const Plot plot = host_plot(host, {10 * kSecond, 200, true});
  ASSERT_EQ(plot.curves.size(), 2U);
  EXPECT_EQ(plot.curves[0].role, Role::rss);
  EXPECT_GT(plot.curves[0].fill_opacity, 0);
  ASSERT_EQ(plot.curves[0].runs.at(0).size(), 3U);
  EXPECT_DOUBLE_EQ(plot.curves[0].runs[0][1].x, 0.2) << "4 s of 20 s";
  EXPECT_DOUBLE_EQ(plot.curves[0].runs[0][2].x, 1);
  EXPECT_EQ(plot.curves[1].role, Role::pss);
  EXPECT_EQ(plot.legend.size(), 2U);
  ASSERT_TRUE(plot.label);
  EXPECT_EQ(plot.label->words, "peak 6.0 GiB at 4.000 s");
  EXPECT_THAT(plot.hints.back().tooltip, ElementsAre("19.917 s", "RSS 6.0 GiB", "PSS 3.0 GiB"));
  EXPECT_THAT(plot.hints.front().tooltip, ElementsAre("83.3 ms", "RSS 1.0 GiB"));
  host.rss.reset();
  EXPECT_EQ(host_plot(host, {10 * kSecond, 200, true}).curves.at(0).role, Role::pss);
}

// Of a history: an event of an hour ago is found by the time of day.
TEST(UsagePlot, HasTimesOfDayWhereItBeganAtOne) {
  MachineState state;
  WatchedDevice& device = state.devices.emplace_back();
  device.key = "1";
  device.used.add(0, kGiB);
  device.used.add(3600 * kSecond, 2 * kGiB);
  device.used.add(7200 * kSecond, kGiB);
  TimeFrame frame{7200 * kSecond};
  EXPECT_EQ(usage_plot(device, frame).label->words, "peak 2.0 GiB at 3600.000 s");
  frame.begin_wall_ns = 1'795'453'920 * kSecond;  // 2026-11-23 17:12:00 UTC
  const Plot plot = usage_plot(device, frame);
  EXPECT_EQ(plot.label->words, "peak 2.0 GiB at 2026-11-23 18:12:00 UTC");
  EXPECT_EQ(plot.ticks.front().label, "2026-11-23 17:15");
  EXPECT_EQ(usage_heat_map(state, frame).ticks.front().label, "2026-11-23 17:15");
}

TEST(TimelinePlot, DrawsDriverMemoryWhereLibrariesHeldSome) {
  Timeline timeline = gap();
  TimelineSeries& series = timeline.series[0];
  for (TimelinePoint& point : series.points) point.driver_bytes = 0;
  series.peak_driver_bytes = 0;
  EXPECT_EQ(timeline_plot(timeline, series, {10 * kSecond, 200, true}).curves.size(), 2U);
  series.points[2].driver_bytes = 32 * kMiB;
  series.peak_driver_bytes = 32 * kMiB;
  series.peak_driver_at_ns = 6 * kSecond;
  const Plot plot = timeline_plot(timeline, series, {10 * kSecond, 200, true});
  ASSERT_EQ(plot.curves.size(), 3U);
  EXPECT_EQ(plot.curves[2].role, Role::driver);
  EXPECT_GE(plot.curves[2].runs.at(0).at(2).y, plot.frame_top) << "the axis reaches above all values";
  EXPECT_EQ(plot.legend.at(2).words, "driver memory of libraries, outside PyTorch's allocator");
}

TEST(TimelinePlot, BreaksACurveWhereNothingIsKnown) {
  const Plot plot = gap_plot();
  ASSERT_EQ(plot.curves.size(), 2U);
  EXPECT_EQ(plot.curves[0].role, Role::allocated);
  ASSERT_EQ(plot.curves[0].runs.size(), 1U);
  EXPECT_EQ(plot.curves[0].runs[0].size(), 4U);
  EXPECT_EQ(plot.curves[1].role, Role::reserved);
  ASSERT_EQ(plot.curves[1].runs.size(), 2U);
  const std::vector<PlotPoint>& first = plot.curves[1].runs[0];
  ASSERT_EQ(first.size(), 2U);  // holds until 2 s
  EXPECT_DOUBLE_EQ(first[1].x, 0.2);
  EXPECT_DOUBLE_EQ(first[1].y, first[0].y);
  EXPECT_DOUBLE_EQ(plot.curves[1].runs[1].front().x, 0.6);
}

TEST(TimelinePlot, IsToScale) {
  const Plot plot = gap_plot();
  ASSERT_EQ(plot.margin.size(), 6U);  // 0, 2, ..., 10 MiB
  EXPECT_EQ(plot.margin[5].label, "10 MiB");
  EXPECT_DOUBLE_EQ(plot.margin[5].at, plot.frame_top);
  EXPECT_DOUBLE_EQ(plot.margin[0].at, plot.frame_bottom());
  ASSERT_TRUE(plot.label);
  EXPECT_DOUBLE_EQ(plot.label->at.y, plot.frame_top + 200 * 0.2);  // 8 of 10 MiB
  EXPECT_EQ(plot.label->words, "peak 8.0 MiB at 0 ns");
  EXPECT_EQ(plot.label->align, PlotAlign::start);
}

TEST(TimelinePlot, MarksFailedRequestsOfItsDevice) {
  const Plot plot = gap_plot();
  ASSERT_EQ(plot.marks.size(), 1U);
  EXPECT_DOUBLE_EQ(plot.marks[0].x, 0.5);
  EXPECT_THAT(plot.marks[0].tooltip, ElementsAre("out of memory at 5.000 s: 64.0 MiB requested"));
  EXPECT_EQ(plot.legend.back().role, Role::alarm);
}

TEST(TimelinePlot, HintsContainTheValuesInEffect) {
  const Plot plot = gap_plot();
  ASSERT_EQ(plot.hints.size(), 120U);
  EXPECT_THAT(plot.hints.front().tooltip, ElementsAre("41.7 ms", "allocated 8.0 MiB", "reserved 9.0 MiB"));
  EXPECT_THAT(plot.hints[40].tooltip, ElementsAre("3.375 s", "allocated 4.0 MiB"));
}

TEST(CallSitePlot, StacksLayersBelowWhatIsAllocated) {
  Timeline timeline = gap();
  const TimelineSeries& series = timeline.series[0];
  const NamedStack stack = {{{Location::Kind::python, "forward", "model.py", 31}}, 0, {}, {}, {}, {}, {}};
  const TimelineLayers split = {
      {}, {{stack, {}, {5 * kMiB, 3 * kMiB, kMiB, 0}}}, {3 * kMiB, kMiB, 0, 0}, {0, 0, 3 * kMiB, 4 * kMiB}};
  const Plot plot = layers_plot(timeline, series, split, {timeline.recording.duration_ns, 200, true});
  ASSERT_EQ(plot.curves.size(), 4U);  // from the highest to the lowest, and a line
  EXPECT_EQ(plot.curves[0].role, Role::unrecorded);
  EXPECT_EQ(plot.curves[2].role, Role::site1);
  EXPECT_DOUBLE_EQ(plot.curves[0].runs[0][1].y, plot.frame_top + 100);  // 4 of 8 MiB: all that is allocated
  EXPECT_DOUBLE_EQ(plot.curves[2].runs[0][1].y, plot.frame_top + 125);  // 3 of 8 MiB
  EXPECT_EQ(plot.legend[0].words, "forward (model.py:31)");
  EXPECT_THAT(plot.hints.front().tooltip,
              ElementsAre("41.7 ms", "allocated 8.0 MiB", "forward (model.py:31) 5.0 MiB", "other call sites 3.0 MiB"));
  EXPECT_THAT(plot.hints.back().tooltip,
              ElementsAre("9.958 s", "allocated 4.0 MiB", "forward (model.py:31) 1.0 MiB", "not recorded 3.0 MiB"));
}

TEST(FlameGraph, BoxesSayTheirPlaceSizeAndShare) {
  TreeSection section;
  section.device = {DeviceType::cuda, 0};
  section.allocated_bytes = 8 * kMiB;
  section.outside_bytes = 2 * kMiB;
  TreeNode node;
  node.frame = {Location::Kind::python, "Block.forward", "/src/model.py", 31};
  node.bytes = 6 * kMiB;
  section.nodes.push_back(node);
  const Plot plot = flame_graph_plot(section);
  ASSERT_EQ(plot.boxes.size(), 3U);
  EXPECT_THAT(plot.boxes[1].label,
              ElementsAre("Block.forward", " (model.py:31)", " \xC2\xB7 6.0 MiB", " \xC2\xB7 75.0%"));
  EXPECT_DOUBLE_EQ(plot.boxes[2].x, 0.75);
  EXPECT_DOUBLE_EQ(plot.boxes[2].width, 0.25);
  EXPECT_THAT(plot.boxes[2].tooltip, ElementsAre("(no code of the project)", "2.0 MiB, 25.0%"));
}

TEST(LedgerBar, CoversAllKnownMemory) {
  LedgerDevice device;
  device.breakdown.used_bytes = 10;
  device.breakdown.allocated_bytes = 12;
  device.breakdown.unexplained_bytes = -2;
  device.breakdown.lines.push_back({LedgerPart::pytorch, 12, {}});
  const Plot plot = ledger_bar(device);
  ASSERT_EQ(plot.boxes.size(), 1U);
  EXPECT_DOUBLE_EQ(plot.boxes[0].width, 1);
}

TEST(Palette, NamesAreUnique) {
  std::set<std::string> names;
  for (std::size_t role = 0; role < kRoles; ++role) names.insert(name_of(static_cast<Role>(role)));
  EXPECT_EQ(names.size(), kRoles);
  EXPECT_THAT(palette_style(), HasSubstr(".reserved { --role: var(--reserved); }"));
}

TEST(SvgPlot, EscapesNamesAndKeepsLines) {
  Plot plot;
  plot.height = 20;
  plot.frame_height = 20;
  plot.description = "\"><script>";
  plot.boxes.push_back({Role::allocated, 0, 0.5, 0, 14, {"first", "<b>"}, {}});
  plot.boxes.push_back({Role::own, 0.5, 0.01, 0, 14, {}, {"<i>"}});
  plot.legend.push_back({Role::free, PlotKey::Sample::box, "a & b"});
  std::string page;
  html::add_plot(page, plot, "map");
  EXPECT_THAT(page, HasSubstr("<rect class=\"allocated\" x=\"0%\" width=\"50%\""));
  EXPECT_THAT(page, HasSubstr("<title>first\n&lt;b&gt;</title>"));
  EXPECT_THAT(page, HasSubstr("<svg class=\"own s\" x=\"50%\""));
  EXPECT_THAT(page, HasSubstr("<i class=\"free\"></i>a &amp; b"));
  EXPECT_THAT(page, Not(HasSubstr("<script>")));
  EXPECT_THAT(page, Not(HasSubstr("<i>")));
}

TEST(SvgPlot, FillsEachRunOfACurve) {
  Plot plot;
  plot.height = 120;
  plot.frame_top = 10;
  plot.frame_height = 100;
  plot.curves.push_back({Role::allocated, 1, 0.5, {{{0, 110}, {0.5, 60}}, {{0.75, 10}, {1, 10}}}});
  std::string page;
  html::add_plot(page, plot, "time");
  EXPECT_THAT(page, HasSubstr("<path class=\"area allocated\" fill-opacity=\"0.5\" d=\"M0 10000H5000V5000V10000H0Z"
                              "M7500 0H10000V0V10000H7500Z\"/>"));
  EXPECT_THAT(page,
              HasSubstr("<path class=\"allocated\" stroke-width=\"1\" d=\"M0 10000H5000V5000M7500 0H10000V0\"/>"));
}

}  // namespace
}  // namespace tidemark
