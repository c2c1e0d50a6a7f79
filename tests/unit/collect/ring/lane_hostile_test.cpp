// The reading end with memory that this library never writes: it must terminate, stay inside, and report it.
#include <gtest/gtest.h>

#include <cstring>
#include <random>

#include "collect/recorder/lanes/lane_reader.h"
#include "ring_memory.h"

namespace tidemark::testing {
namespace {

constexpr std::uint32_t kCapacity = ring::Chunk::kPayloadBytes;

/// Lane 0 over chunks that a test fills by hand. Chunks are numbered from 1, as in the lane.
class HostileLane : public ::testing::Test {
 protected:
  ring::Chunk& chunk(std::uint32_t number) { return memory.get()->chunks[number - 1]; }
  void set_head(std::uint32_t number) { memory.get()->lanes[0].head.store(number); }
  /// A record of `words` words at word `at` of the chunk, not committed.
  void put(std::uint32_t number, std::size_t at, std::uint8_t words) {
    const ring::RecordHeader header{ring::RecordKind::free, 1, 0, words, static_cast<std::uint32_t>(at)};
    std::memcpy(&chunk(number).payload[at], &header, sizeof(header));
  }
  /// Fills the chunk with records of 2 words and commits them all.
  void fill(std::uint32_t number) {
    for (std::size_t at = 0; at < kCapacity / 8; at += 2) put(number, at, 2);
    chunk(number).committed.store(kCapacity);
  }
  std::size_t read_to_the_end() {
    std::size_t count = 0;
    RingRecord record;
    while (reader.next(record)) ++count;
    return count;
  }

  RingMemory memory;
  LaneReader reader{memory.get(), 0};
};

TEST_F(HostileLane, HeadOutsideThePool) {
  set_head(ring::kChunkCount + 1);
  EXPECT_EQ(read_to_the_end(), 0U);
  EXPECT_TRUE(reader.broken());
}

TEST_F(HostileLane, LastChunkOfThePoolIsInside) {
  set_head(ring::kChunkCount);
  fill(ring::kChunkCount);
  EXPECT_EQ(read_to_the_end(), kCapacity / 16);
  EXPECT_FALSE(reader.broken());
}

TEST_F(HostileLane, LinkOutsideThePool) {
  set_head(1);
  fill(1);
  chunk(1).next.store(0xFFFF'FFFF);
  EXPECT_EQ(read_to_the_end(), kCapacity / 16);
  EXPECT_TRUE(reader.broken());
}

TEST_F(HostileLane, RecordWithoutLength) {
  set_head(1);
  put(1, 0, 3);
  put(1, 3, 0);
  chunk(1).committed.store(10 * 8);
  EXPECT_EQ(read_to_the_end(), 1U);
  EXPECT_TRUE(reader.broken());
  RingRecord record;
  EXPECT_FALSE(reader.next(record)) << "what is broken stays broken";
}

TEST_F(HostileLane, RecordLongerThanCommittedBytes) {
  set_head(1);
  put(1, 0, 11);
  chunk(1).committed.store(10 * 8);
  EXPECT_EQ(read_to_the_end(), 0U);
  EXPECT_TRUE(reader.broken());
}

TEST_F(HostileLane, MoreCommittedThanAChunkHolds) {
  for (const std::uint32_t committed : {kCapacity + 8, 0xFFFF'FFFFU}) {
    LaneReader fresh(memory.get(), 0);
    set_head(ring::kChunkCount);  // nothing is beyond it
    fill(ring::kChunkCount);
    chunk(ring::kChunkCount).committed.store(committed);
    RingRecord record;
    EXPECT_FALSE(fresh.next(record));
    EXPECT_TRUE(fresh.broken());
  }
}

TEST_F(HostileLane, CyclicChainsEnd) {
  set_head(1);
  fill(1);
  chunk(1).next.store(1);
  EXPECT_EQ(read_to_the_end(), kCapacity / 16);
  set_head(1);
  LaneReader fresh(memory.get(), 0);
  for (const std::uint32_t number : {1U, 2U, 3U}) {
    fill(number);
    chunk(number).next.store(number % 3 + 1);
  }
  RingRecord record;
  std::size_t count = 0;
  while (fresh.next(record)) ++count;
  EXPECT_EQ(count, 3 * kCapacity / 16);
}

TEST_F(HostileLane, CommittedBytesThatShrink) {
  set_head(1);
  fill(1);
  RingRecord record;
  for (int count = 0; count < 10; ++count) ASSERT_TRUE(reader.next(record));
  chunk(1).committed.store(8);
  EXPECT_EQ(read_to_the_end(), 0U);
}

// Lane 0 runs into the chunk of lane 1, and gives it back while it is in use: both readers terminate.
TEST_F(HostileLane, ChunkOfAnotherLane) {
  LaneReader other(memory.get(), 1);
  set_head(1);
  memory.get()->lanes[1].head.store(2);
  fill(1);
  fill(2);
  fill(3);
  chunk(1).next.store(2);
  chunk(2).next.store(3);
  RingRecord record;
  for (int count = 0; count < 100; ++count) ASSERT_TRUE(other.next(record));
  EXPECT_EQ(read_to_the_end(), 3 * kCapacity / 16);
  std::size_t count = 0;
  while (other.next(record)) ++count;
  EXPECT_LE(count, 3 * kCapacity / 16);
}

TEST_F(HostileLane, RandomBytes) {
  std::mt19937_64 random(20261121);
  const auto below = [&random](std::uint64_t bound) { return random() % bound; };
  std::size_t records = 0;
  std::size_t broken = 0;
  for (int round = 0; round < 3000; ++round) {
    memory.clear();
    for (std::uint32_t number = 1; number <= 4; ++number) {
      ring::Chunk& target = chunk(number);
      // Lengths mostly small, and the first of each record often right, so that the reader gets some way.
      for (std::size_t at = 0; at < 200;) {
        const auto words = static_cast<std::uint8_t>(below(50) == 0 ? random() : 1 + below(6));
        put(number, at, words);
        for (std::size_t word = 1; word < words && at + word < 400; ++word) target.payload[at + word] = random();
        at += words == 0 ? 1 : words;
      }
      target.committed.store(static_cast<std::uint32_t>(below(20) == 0 ? random() : below(200 * 8)));
      target.next.store(static_cast<std::uint32_t>(below(20) == 0 ? random() : below(6)));
    }
    set_head(static_cast<std::uint32_t>(1 + below(4)));
    LaneReader fresh(memory.get(), 0);
    RingRecord record;
    std::size_t count = 0;
    while (fresh.next(record)) {
      ASSERT_EQ(record.fields().size() + 1, record.header.words);
      ASSERT_LE(++count, 4U * kCapacity / 8) << "more than the four chunks can hold";
    }
    records += count;
    if (fresh.broken()) ++broken;
  }
  EXPECT_GT(records, 30'000U) << "the bytes are too random to get anywhere";
  EXPECT_GT(broken, 500U);
  EXPECT_LT(broken, 2900U);
}

}  // namespace
}  // namespace tidemark::testing
