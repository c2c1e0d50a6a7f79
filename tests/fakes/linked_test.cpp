// A program that links PyTorch's libraries and records itself: c10's functions come before those of the recording
// library, which is loaded later.
#include <gtest/gtest.h>
#include <tidemark/profiler.h>
#include <tidemark/recording.h>

#include "c10.h"
#include "temporary_folder.h"

namespace {

TEST(LinkedWithPyTorch, RecordsItself) {
  const tidemark::testing::TemporaryFolder folder;
  tidemark::Profiler profiler(folder.at("run.tide"));
  profiler.start();
  void* const first = fakes_cpu_allocate(1000);
  void* const second = fakes_cpu_allocate(500);
  fakes_cpu_free(first);
  fakes_cpu_free(second);
  const auto files = profiler.stop();
  ASSERT_EQ(files.size(), 1U);
  EXPECT_EQ(files.front().events, 4U);
  const auto devices = tidemark::Recording(files.front().path).devices();
  ASSERT_EQ(devices.size(), 1U);
  EXPECT_EQ(devices.front().device, "cpu");
  EXPECT_EQ(devices.front().peak_allocated_bytes, 1500U);
  EXPECT_EQ(devices.front().end_allocated_bytes, 0U);
}

}  // namespace
