#include "tui/state.h"

#include <gtest/gtest.h>

#include "tui/process_rows.h"
#include "tui/table.h"
#include "unit/tui/scene.h"

namespace tidemark::tui {
namespace {

class StateTest : public ::testing::Test {
 protected:
  Request press(const Key& key) { return handle_key(state_, {machine_, {}, {}}, key); }
  Request type(const std::string& text) { return press({KeyCode::text, text}); }
  std::size_t selected() { return state_.views[state_.view].selected; }

  MachineState machine_ = tidemark::testing::busy_machine();
  State state_;
};

TEST_F(StateTest, DigitsAndTabSwitchViews) {
  type("6");
  EXPECT_EQ(state_.view, 5U);
  press({KeyCode::tab});
  EXPECT_EQ(state_.view, 0U);
  press({KeyCode::back_tab});
  EXPECT_EQ(state_.view, 5U);
  type("7");
  type("0");
  EXPECT_EQ(state_.view, 5U);
}

TEST_F(StateTest, ArrowsSelectWithinTheRows) {
  press({KeyCode::up});
  EXPECT_EQ(selected(), 0U);
  press({KeyCode::down});
  press({KeyCode::down});
  EXPECT_EQ(selected(), 1U);  // of two devices
  machine_.devices.pop_back();
  press({KeyCode::down});
  EXPECT_EQ(selected(), 0U);
  type("2");
  press({KeyCode::end});
  EXPECT_EQ(selected(), 4U);  // five rows: the job is on two devices
  press({KeyCode::home});
  press({KeyCode::page_down});
  EXPECT_EQ(selected(), 4U);
}

TEST_F(StateTest, LeftAndRightStopAtTheEnds) {
  type("3");
  press({KeyCode::left});
  EXPECT_EQ(state_.views[2].other, 0U);
  for (int n = 0; n < 9; ++n) press({KeyCode::right});
  EXPECT_EQ(state_.views[2].other, 4U);
}

TEST_F(StateTest, SortGoesThroughTheOrdersOfTheView) {
  type("s");
  EXPECT_EQ(state_.views[0].order, 0U);  // devices have one
  type("2");
  for (int n = 0; n < 6; ++n) type("s");
  EXPECT_EQ(state_.views[1].order, 1U);  // of five
}

TEST_F(StateTest, NameOfAFileIsTyped) {
  EXPECT_EQ(type("w"), Request::none);
  EXPECT_EQ(press({KeyCode::enter}), Request::none);  // no name
  EXPECT_FALSE(state_.file_name);
  type("w");
  for (const char* key : {"q", "1", "ä", "x"}) EXPECT_EQ(type(key), Request::none);
  press({KeyCode::backspace});
  press({KeyCode::backspace});  // both bytes of ä
  EXPECT_EQ(state_.file_name, "q1");
  EXPECT_EQ(state_.view, 0U);
  EXPECT_EQ(press({KeyCode::enter}), Request::save);
  press({KeyCode::escape});
  EXPECT_FALSE(state_.file_name);
}

TEST_F(StateTest, Requests) {
  EXPECT_EQ(type("q"), Request::quit);
  EXPECT_EQ(type("m"), Request::mark);
  EXPECT_EQ(type("r"), Request::record);
  EXPECT_EQ(press({KeyCode::redraw}), Request::redraw);
  EXPECT_EQ(type("p"), Request::pause);
  EXPECT_TRUE(state_.paused);
  type("?");
  EXPECT_TRUE(state_.help);
  type("h");
  EXPECT_FALSE(state_.help);
}

TEST(ProcessRows, Orders) {
  const MachineState machine = tidemark::testing::busy_machine();
  const auto pids = [&](ProcessOrder order) {
    std::vector<std::int64_t> found;
    for (const ProcessRow& row : process_rows(machine, order)) found.push_back(row.process->pid);
    return found;
  };
  using Pids = std::vector<std::int64_t>;
  EXPECT_EQ(pids(ProcessOrder::device), (Pids{4242, 77, 4242, 31337, 4250}));
  EXPECT_EQ(pids(ProcessOrder::device_bytes), (Pids{4242, 77, 4242, 31337, 4250}));
  EXPECT_EQ(pids(ProcessOrder::rss), (Pids{4242, 4242, 77, 4250, 31337}));
  EXPECT_EQ(pids(ProcessOrder::pid), (Pids{77, 4242, 4242, 4250, 31337}));
}

}  // namespace
}  // namespace tidemark::tui
