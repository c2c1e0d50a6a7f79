// Data kept by a followed recording: totals, or its blocks once they are known to have owners.
#include "follow/followed_recording.h"

#include <gtest/gtest.h>

#include "base/locked_file.h"
#include "temporary_folder.h"
#include "trace/sink.h"
#include "unit/trace/trace_test_support.h"

namespace tidemark::testing {
namespace {

std::unique_ptr<TraceWriter> write_file(const std::string& path) {
  return TraceWriter::create(make_file_sink(create_locked_file(path, false).value(), path), {}).value();
}
void read(FollowedRecording& followed) {
  const auto done = followed.read([] { return true; });
  EXPECT_TRUE(done.ok());
}

TEST(FollowedRecording, KeepsBlocksOnceTheyHaveOwners) {
  const TemporaryFolder folder;
  const auto writer = write_file(folder.at("run.tide"));
  ASSERT_TRUE(writer->event(allocate(10, 1, 100)).ok());
  ASSERT_TRUE(writer->flush().ok());
  const auto followed = FollowedRecording::open(folder.at("run.tide"), false).value();
  read(*followed);
  EXPECT_EQ(followed->event_count(), 1U);
  EXPECT_FALSE(followed->keeps_blocks());
  EXPECT_TRUE(followed->overview().source.growing);
  EXPECT_EQ(followed->overview().devices.at(0).live_allocated_bytes, 100U);

  ModelTensor tensor;
  tensor.time_ns = 15;
  tensor.address = 1;
  writer->tensor(tensor);
  ASSERT_TRUE(writer->event(allocate(20, 2, 200)).ok());
  ASSERT_TRUE(writer->flush().ok());
  read(*followed);
  ASSERT_TRUE(followed->keeps_blocks());
  EXPECT_EQ(followed->event_count(), 2U) << "each once, though it was read from the beginning again";
  EXPECT_EQ(followed->store().blocks.count(), 2U);
  EXPECT_EQ(followed->store().devices.at(0).live_allocated_bytes, 300U);

  ASSERT_TRUE(writer->event(free_at(30, 1)).ok());
  ASSERT_TRUE(writer->finish({40, true}).ok());
  read(*followed);
  EXPECT_EQ(followed->state(), FollowState::ended);
  EXPECT_EQ(followed->now_ns(), 40U);
  EXPECT_FALSE(followed->store().source.growing);
  EXPECT_EQ(followed->store().devices.at(0).live_allocated_bytes, 200U);
  EXPECT_EQ(followed->behind(), 0U);
}

TEST(FollowedRecording, ReadsAFileThatChangedAgain) {
  const TemporaryFolder folder;
  Bytes before;
  const auto first = write_to(&before);
  ASSERT_TRUE(first->event(allocate(10, 1, 100)).ok());
  ASSERT_TRUE(first->flush().ok());
  Bytes after;  // as left by a recorder with a full disk: the last frames are replaced by an end
  const auto second = write_to(&after);
  ASSERT_TRUE(second->finish({5, true}).ok());
  ASSERT_LT(after.size(), before.size());

  const ScopedFd file = create_locked_file(folder.at("run.tide"), false).value();
  ASSERT_EQ(::write(file.get(), before.data(), before.size()), static_cast<::ssize_t>(before.size()));
  const auto followed = FollowedRecording::open(folder.at("run.tide"), false).value();
  read(*followed);
  EXPECT_EQ(followed->event_count(), 1U);
  ASSERT_EQ(::ftruncate(file.get(), 0), 0);
  ASSERT_EQ(::pwrite(file.get(), after.data(), after.size(), 0), static_cast<::ssize_t>(after.size()));
  read(*followed);
  EXPECT_EQ(followed->state(), FollowState::ended);
  EXPECT_EQ(followed->event_count(), 0U);
}

TEST(FollowedRecording, StopsWhenToldTo) {
  const TemporaryFolder folder;
  const auto writer = write_file(folder.at("run.tide"));
  ASSERT_TRUE(writer->event(allocate(10, 1, 100)).ok());
  ASSERT_TRUE(writer->flush().ok());
  const auto followed = FollowedRecording::open(folder.at("run.tide"), true).value();
  EXPECT_TRUE(followed->read([] { return false; }).ok());
  EXPECT_EQ(followed->event_count(), 0U);
  EXPECT_GT(followed->behind(), 0U);
}

}  // namespace
}  // namespace tidemark::testing
