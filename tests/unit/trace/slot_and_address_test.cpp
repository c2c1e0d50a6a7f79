// The writer's own containers compared with the standard library's.
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <map>
#include <set>
#include <vector>

#include "trace/address_map.h"
#include "trace/event_codec.h"

namespace tidemark {
namespace {

TEST(SlotPool, HandsOutTheLowestFreeNumber) {
  SlotPool pool;
  std::set<std::uint32_t> free;
  std::vector<std::uint32_t> used;
  std::uint32_t count = 0;
  std::uint64_t random = 1;
  // Enough slots for several words, blocks and groups (64, 4,096 and 262,144 slots).
  for (std::uint32_t n = 0; n < 800'000; ++n) {
    random = random * 6364136223846793005U + 1442695040888963407U;
    const bool filling = n < 300'000;
    if (filling || used.empty() || (random >> 40) % 16 < 7) {
      const std::uint32_t expected = free.empty() ? count++ : *free.begin();
      if (!free.empty()) free.erase(free.begin());
      ASSERT_EQ(pool.take(), expected) << "step " << n;
      used.push_back(expected);
    } else {
      std::swap(used[(random >> 20) % used.size()], used.back());
      pool.give_back(used.back());
      free.insert(used.back());
      used.pop_back();
    }
    ASSERT_EQ(pool.count(), count);
  }
}

TEST(AddressMap, BehavesLikeAStandardMap) {
  EXPECT_TRUE(rc::check([] {
    AddressMap map;
    std::map<std::pair<std::uint64_t, std::uint32_t>, std::uint32_t> expected;
    const auto steps = *rc::gen::inRange(0, 4000);
    std::uint64_t random = *rc::gen::arbitrary<std::uint64_t>();
    for (int n = 0; n < steps; ++n) {
      random = random * 6364136223846793005U + 1442695040888963407U;
      const std::uint64_t address = ((random >> 33) % 1500) * 512;
      const auto device = static_cast<std::uint32_t>(random >> 62);
      const auto known = expected.find({address, device});
      RC_ASSERT(map.find(address, device) == (known == expected.end() ? AddressMap::kAbsent : known->second));
      if (known != expected.end()) {
        RC_ASSERT(map.take(address, device) == known->second);
        expected.erase(known);
      } else {
        RC_ASSERT(map.take(address, device) == AddressMap::kAbsent);
        map.insert(address, device, static_cast<std::uint32_t>(n));
        expected[{address, device}] = static_cast<std::uint32_t>(n);
      }
      RC_ASSERT(map.count() == expected.size());
    }
    for (const auto& [key, slot] : expected) RC_ASSERT(map.find(key.first, key.second) == slot);
  }));
}

}  // namespace
}  // namespace tidemark
