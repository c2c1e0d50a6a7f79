// The views as text, at the sizes of a plain terminal, a large one, and one that is too small.
// TIDEMARK_UPDATE_GOLDEN=1 rewrites the files in expected/.
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <sstream>

#include "tui/frame.h"
#include "unit/tui/scene.h"

namespace tidemark::tui {
namespace {

using tidemark::testing::busy_machine;
using tidemark::testing::host_only;
using tidemark::testing::kSecondNs;
using tidemark::testing::recorded_job;

constexpr std::uint64_t kPinned = 80ULL << 20;

std::string frame(const MachineState& machine, const std::vector<ProcessResults>& recorded, const State& state,
                  std::size_t width = 80, std::size_t height = 24, bool unicode = true) {
  const std::vector<Mark> marks = {{.time_ns = 150 * kSecondNs, .name = "1"}};
  Canvas canvas(width, height, unicode);
  const std::optional<std::uint64_t> pinned = recorded.empty() ? std::nullopt : std::optional(kPinned);
  draw_frame(canvas, {.machine = machine, .recorded = recorded, .marks = marks, .cuda_pinned_bytes = pinned}, state);
  return canvas.text();
}

State at_view(std::size_t view) {
  State state;
  state.view = view;
  return state;
}

void expect_golden(const std::string& name, const std::string& text) {
  const std::string path = std::string(SCREEN_EXPECTED) + "/" + name + ".txt";
  if (std::getenv("TIDEMARK_UPDATE_GOLDEN") != nullptr) std::ofstream(path) << text;
  std::stringstream expected;
  expected << std::ifstream(path).rdbuf();
  EXPECT_EQ(text, expected.str()) << path;
}

TEST(Views, At80x24) {
  for (std::size_t view = 0; view < kViews; ++view) {
    expect_golden(std::string(views()[view].name) + "-80x24", frame(busy_machine(), recorded_job(), at_view(view)));
  }
}

TEST(Views, At120x40) {
  for (std::size_t view = 0; view < kViews; ++view) {
    expect_golden(std::string(views()[view].name) + "-120x40",
                  frame(busy_machine(), recorded_job(), at_view(view), 120, 40));
  }
}

// Between two samples no driver is silent.
TEST(Views, SilenceIsLongerThanTwoIntervals) {
  MachineState machine = busy_machine();
  machine.devices_known = true;
  machine.now_ns = machine.latest_reading_ns + 9 * kSecondNs;
  const auto says = [&](std::uint64_t interval_ns) {
    Canvas canvas(80, 24, true);
    draw_frame(canvas, {.machine = machine, .recorded = {}, .marks = {}, .interval_ns = interval_ns}, {});
    return canvas.text().find("no answer from the driver for 9 s") != std::string::npos;
  };
  EXPECT_TRUE(says(kSecondNs));
  EXPECT_FALSE(says(5 * kSecondNs));
}

TEST(Views, TooSmall) {
  expect_golden("too-small-40x10", frame(busy_machine(), {}, {}, 40, 10));
  Canvas none(0, 0);
  const MachineState machine;
  draw_frame(none, {.machine = machine, .recorded = {}, .marks = {}}, {});
}

TEST(Views, EverySizeIsDrawn) {
  const MachineState machine = busy_machine();
  const auto recorded = recorded_job();
  for (std::size_t view = 0; view < kViews; ++view) {
    for (const std::size_t height : {1U, 17U, 18U, 19U, 100U}) {
      for (const std::size_t width : {1U, 71U, 72U, 73U, 300U}) frame(machine, recorded, at_view(view), width, height);
    }
  }
}

TEST(Views, WithoutAnything) {
  const MachineState nothing;
  for (std::size_t view = 0; view < kViews; ++view) frame(nothing, {}, at_view(view));
  expect_golden("waiting-80x24", frame(nothing, {}, {}));
  expect_golden("holders-none-80x24", frame(busy_machine(), {}, at_view(3)));
}

TEST(Views, HostOnly) {
  expect_golden("devices-host-80x24", frame(host_only(), {}, {}));
}

TEST(Views, Ascii) {
  const std::string charts = frame(busy_machine(), recorded_job(), at_view(2), 80, 24, false);
  expect_golden("charts-ascii-80x24", charts);
  for (std::size_t view = 0; view < kViews; ++view) {
    for (const char character : frame(busy_machine(), recorded_job(), at_view(view), 80, 24, false)) {
      ASSERT_GE(character, '\n');
    }
  }
}

TEST(Views, HelpAndTheNameOfAFile) {
  State state;
  state.help = true;
  state.file_name = "report.json";
  expect_golden("help-80x24", frame(busy_machine(), {}, state));
}

TEST(Views, LostDeviceSilentDriverAndPause) {
  MachineState machine = busy_machine();
  WatchedDevice& lost = machine.devices[1];
  lost.lost = "GPU 1 (GPU-2222) does not answer any more (NVML: GPU is lost (15))";
  lost.latest = {};
  lost.risk = {};
  lost.assessed_at_ns.reset();
  machine.now_ns += 12 * kSecondNs;
  State state;
  state.paused = true;
  state.views[0].selected = 1;
  expect_golden("devices-lost-80x24", frame(machine, {}, state));
}

}  // namespace
}  // namespace tidemark::tui
