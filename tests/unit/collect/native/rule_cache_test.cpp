#include "collect/process/native/rule_cache.h"

#include <gtest/gtest.h>

#include <memory>
#include <random>
#include <thread>
#include <vector>

namespace tidemark::process {
namespace {

constexpr std::uint64_t kUserAddresses = std::uint64_t{1} << 47;

/// A rule that is a function of its address, so that a hit with another address's rule is detected.
std::uint32_t rule_of(std::uint64_t pc) {
  return static_cast<std::uint32_t>((pc * 2654435761u >> 7) & ((1u << kRuleBits) - 1)) | 1u;
}

TEST(RuleCache, FindsInsertedRules) {
  const auto cache = std::make_unique<RuleCache>();
  for (const std::uint64_t pc : {std::uint64_t{4096}, std::uint64_t{0x555555555000}, kUserAddresses - 1}) {
    EXPECT_EQ(cache->find(pc), 0u);
    cache->insert(pc, rule_of(pc));
    EXPECT_EQ(cache->find(pc), rule_of(pc));
  }
  cache->clear();
  EXPECT_EQ(cache->find(4096), 0u);
}

TEST(RuleCache, AHitIsNeverFalse) {
  const auto cache = std::make_unique<RuleCache>();
  std::mt19937_64 random(1);
  std::size_t hits = 0;
  std::vector<std::uint64_t> pcs;
  for (int i = 0; i < 200000; ++i) {
    const std::uint64_t pc = random() % kUserAddresses;
    pcs.push_back(pc);
    cache->insert(pc, rule_of(pc));
  }
  for (const std::uint64_t pc : pcs) {
    const std::uint64_t found = cache->find(pc);
    if (found == 0) continue;
    ++hits;
    ASSERT_EQ(found, rule_of(pc));
  }
  for (int i = 0; i < 200000; ++i) {
    const std::uint64_t pc = random() % kUserAddresses;
    const std::uint64_t found = cache->find(pc);
    if (found != 0) {
      ASSERT_EQ(found, rule_of(pc));
    }
  }
  EXPECT_GT(hits, RuleCache::kEntries * 9 / 10);  // the cache is full of the latest
}

TEST(RuleCache, KeepsAProgramsReturnAddresses) {
  const auto cache = std::make_unique<RuleCache>();
  // 2,000 return addresses in a library of 100 MB.
  std::mt19937_64 random(2);
  std::vector<std::uint64_t> pcs;
  for (int i = 0; i < 2000; ++i) pcs.push_back(0x7F1234560000 + random() % 100000000);
  for (const std::uint64_t pc : pcs) cache->insert(pc, rule_of(pc));
  std::size_t lost = 0;
  for (const std::uint64_t pc : pcs) lost += cache->find(pc) == 0 ? 1u : 0u;
  EXPECT_LE(lost, 30u);  // sets of two with 0.24 addresses on average: 2% of the sets would be unlucky beyond belief
}

TEST(RuleCache, RacesLoseRulesButNeverMixThem) {
  const auto cache = std::make_unique<RuleCache>();
  std::vector<std::thread> threads;
  for (unsigned seed = 0; seed < 4; ++seed) {
    threads.emplace_back([&cache, seed] {
      std::mt19937_64 random(seed);
      for (int i = 0; i < 200000; ++i) {
        const std::uint64_t pc = 0x7F0000000000 + random() % 50000;
        const std::uint64_t found = cache->find(pc);
        if (found != 0) {
          ASSERT_EQ(found, rule_of(pc));
        } else {
          cache->insert(pc, rule_of(pc));
        }
      }
    });
  }
  for (auto& thread : threads) thread.join();
}

}  // namespace
}  // namespace tidemark::process
