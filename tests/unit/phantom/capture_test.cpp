#include "phantom/gpu/capture.h"

#include <gtest/gtest.h>

#include "phantom/gpu/abi.h"

namespace tidemark::phantom {
namespace {

class Capture : public ::testing::Test {
 protected:
  Captures captures_;
  const Handle stream_ = new_handle();
  const Handle other_ = new_handle();
  const Handle event_ = new_handle();
};

TEST_F(Capture, CountsLaunchesInItsStream) {
  EXPECT_FALSE(captures_.launch(stream_));
  ASSERT_TRUE(captures_.begin(stream_, nullptr));
  EXPECT_FALSE(captures_.begin(stream_, nullptr)) << "the stream captures already";
  EXPECT_TRUE(captures_.launch(stream_));
  EXPECT_TRUE(captures_.launch(stream_));
  EXPECT_FALSE(captures_.launch(other_));
  const Graph* const graph = captures_.end(stream_);
  ASSERT_NE(graph, nullptr);
  EXPECT_EQ(graph->nodes, 2U);
  EXPECT_FALSE(captures_.launch(stream_));
  EXPECT_EQ(captures_.end(stream_), nullptr);
}

TEST_F(Capture, AStreamThatWaitsForAnEventOfItCapturesToo) {
  ASSERT_TRUE(captures_.begin(stream_, nullptr));
  captures_.record(event_, stream_);
  captures_.wait(other_, event_);
  EXPECT_EQ(captures_.of(other_), captures_.of(stream_));
  EXPECT_TRUE(captures_.launch(other_));
  EXPECT_EQ(captures_.end(stream_)->nodes, 1U);
  EXPECT_EQ(captures_.of(other_), nullptr);
}

TEST_F(Capture, AnEventOfAnotherStreamCapturesNothing) {
  ASSERT_TRUE(captures_.begin(stream_, nullptr));
  captures_.record(event_, stream_);
  captures_.record(event_, other_);  // the event's last record counts
  const Handle third = new_handle();
  captures_.wait(third, event_);
  EXPECT_EQ(captures_.of(third), nullptr);

  captures_.record(event_, stream_);
  captures_.forget(event_);
  captures_.wait(third, event_);
  EXPECT_EQ(captures_.of(third), nullptr);
  EXPECT_EQ(captures_.end(stream_)->nodes, 0U);
}

TEST_F(Capture, TwoAtOnceAreApart) {
  Graph* const given = captures_.create();
  ASSERT_TRUE(captures_.begin(stream_, given));
  ASSERT_TRUE(captures_.begin(other_, nullptr));
  EXPECT_NE(captures_.of(stream_)->id, captures_.of(other_)->id);
  EXPECT_EQ(captures_.end(stream_), given);
  EXPECT_NE(captures_.of(other_), nullptr);
  captures_.destroy(captures_.end(other_));
  captures_.destroy(given);
}

}  // namespace
}  // namespace tidemark::phantom
