// Two files read at once give the same as one after the other. ThreadSanitizer checks the readers' shared data.
#include <gtest/gtest.h>

#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "import/open.h"

namespace tidemark {
namespace {

const std::string kSnapshot = TIDEMARK_SNAPSHOTS "/late.pickle.xz";
const std::string kOther = TIDEMARK_SNAPSHOTS "/private_pools_expandable.pickle.xz";
const std::string kRecording = TIDEMARK_COMPAT "/v0.1.0-samples.tide";

struct Kept {
  std::string path;
  std::vector<std::uint64_t> numbers;
  std::thread::id thread;

  friend bool operator==(const Kept& left, const Kept& right) {
    return left.path == right.path && left.numbers == right.numbers;
  }
};

Result<Kept> keep(Store&& store) {
  Kept kept{store.path, {store.event_count, store.end_ns, store.blocks.count(), store.live_changes.size()}, {}};
  for (const DeviceSummary& device : store.devices) kept.numbers.push_back(device.peak_change_count);
  for (const std::uint64_t size : store.blocks.size) kept.numbers.push_back(size);
  kept.thread = std::this_thread::get_id();
  return kept;
}

TEST(OpenBoth, AsOneAfterTheOther) {
  for (const auto& [first, second] : {std::pair(kSnapshot, kOther), std::pair(kRecording, kSnapshot),
                                      std::pair(kRecording, kRecording), std::pair(kSnapshot, kSnapshot)}) {
    const auto [a, b] = open_both(first, second, keep);
    ASSERT_TRUE(a.ok()) << a.error().message;
    ASSERT_TRUE(b.ok()) << b.error().message;
    EXPECT_EQ(*a, *keep(open_store(first).value()));
    EXPECT_EQ(*b, *keep(open_store(second).value()));
    EXPECT_GT(a->numbers.front(), 0U);
    EXPECT_NE(a->thread, b->thread);
    EXPECT_EQ(b->thread, std::this_thread::get_id());
  }
}

TEST(OpenBoth, EachHasItsError) {
  const auto [a, b] = open_both(kSnapshot, "nowhere.tide", keep);
  EXPECT_TRUE(a.ok());
  ASSERT_FALSE(b.ok());
  EXPECT_EQ(b.error().message, open_store("nowhere.tide").error().message);
  EXPECT_FALSE(open_both("nowhere.tide", kSnapshot, keep).first.ok());
}

}  // namespace
}  // namespace tidemark
