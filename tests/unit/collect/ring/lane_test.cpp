// The ring, from the writing end to the reading end: committed records come out, whole, in order, once.
#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <optional>
#include <thread>
#include <vector>

#include "collect/process/lane_writer.h"
#include "collect/recorder/lanes/lane_reader.h"
#include "ring_memory.h"

namespace tidemark::testing {
namespace {

using process::LaneWriter;

constexpr std::size_t kChunkWords = ring::Chunk::kPayloadBytes / 8;

std::uint64_t content(std::uint64_t number, std::size_t word) {
  return (number * 0x9E37'79B9'7F4A'7C15U + word) ^ (number << 7);
}

/// Writes the record with this number, `words` long; false when there is no room.
bool put(LaneWriter& writer, std::uint64_t number, std::size_t words) {
  std::uint64_t* record = writer.reserve(words);
  if (record == nullptr) return false;
  const ring::RecordHeader header{ring::RecordKind::allocate, 1, 0, static_cast<std::uint8_t>(words),
                                  static_cast<std::uint32_t>(number)};
  std::memcpy(record, &header, sizeof(header));
  for (std::size_t word = 1; word < words; ++word) record[word] = content(number, word);
  writer.commit(words);
  return true;
}

/// Whether `record` was written by put().
bool is(const RingRecord& record, std::uint64_t number, std::size_t words) {
  if (record.header.words != words || record.header.stack != static_cast<std::uint32_t>(number)) return false;
  if (record.fields().size() != words - 1) return false;
  for (std::size_t word = 1; word < words; ++word) {
    if (record.fields()[word - 1] != content(number, word)) return false;
  }
  return true;
}

std::size_t words_of(std::uint64_t number) {
  return 1 + (number * number + number / 255) % 255;
}

TEST(Lane, CarriesRecordsOfEverySizeThroughRecycledChunks) {
  const RingMemory memory;
  LaneWriter writer;
  writer.open(memory.get(), &memory.get()->lanes[3]);
  LaneReader reader(memory.get(), 3);
  RingRecord record;
  EXPECT_FALSE(reader.next(record));
  std::uint64_t written = 0;
  std::uint64_t read = 0;
  std::size_t words = 0;
  while (words < 4 * ring::kChunkCount * kChunkWords) {  // four times the pool's size
    const std::uint64_t until = written + 1 + written % 97;
    for (; written < until; ++written) {
      ASSERT_TRUE(put(writer, written, words_of(written)));
      words += words_of(written);
    }
    for (; reader.next(record); ++read) ASSERT_TRUE(is(record, read, words_of(read))) << "record " << read;
    ASSERT_EQ(read, written);
  }
  EXPECT_FALSE(reader.broken());
  EXPECT_EQ(memory.free_chunks(), ring::kChunkCount - 1) << "all but the one being written";
}

TEST(Lane, ARecordIsNotSeenBeforeItIsCommitted) {
  const RingMemory memory;
  LaneWriter writer;
  writer.open(memory.get(), &memory.get()->lanes[0]);
  LaneReader reader(memory.get(), 0);
  RingRecord record;
  std::uint64_t* room = writer.reserve(2);
  ASSERT_NE(room, nullptr);
  const ring::RecordHeader header{ring::RecordKind::pause, 0, 0, 2, 0};
  std::memcpy(room, &header, sizeof(header));
  room[1] = 77;
  EXPECT_FALSE(reader.next(record));
  writer.commit(2);
  ASSERT_TRUE(reader.next(record));
  EXPECT_EQ(record.fields()[0], 77U);
}

TEST(Lane, FillsChunksToTheLastWord) {
  const RingMemory memory;
  LaneWriter writer;
  writer.open(memory.get(), &memory.get()->lanes[0]);
  // 2046 words to a chunk: 6 divides it, so nothing is left over.
  static_assert(kChunkWords == 2046 && kChunkWords % 6 == 0);
  for (std::uint64_t number = 0; number < 2 * kChunkWords / 6; ++number) ASSERT_TRUE(put(writer, number, 6));
  EXPECT_EQ(memory.free_chunks(), ring::kChunkCount - 2);
  LaneReader reader(memory.get(), 0);
  RingRecord record;
  std::uint64_t read = 0;
  for (; reader.next(record); ++read) ASSERT_TRUE(is(record, read, 6));
  EXPECT_EQ(read, 2 * kChunkWords / 6);
}

TEST(Lane, RefusesWhenThePoolIsExhaustedAndRecovers) {
  const RingMemory memory;
  LaneWriter one;
  LaneWriter other;
  one.open(memory.get(), &memory.get()->lanes[0]);
  other.open(memory.get(), &memory.get()->lanes[1]);
  LaneReader reader(memory.get(), 0);
  RingRecord record;
  std::uint64_t written = 0;
  std::uint64_t read = 0;
  for (int round = 0; round < 3; ++round) {
    while (put(one, written, 255)) ++written;
    EXPECT_EQ(memory.free_chunks(), 0U);
    EXPECT_EQ(one.reserve(255), nullptr);
    if (round == 0) {
      EXPECT_EQ(other.reserve(2), nullptr) << "a lane that holds no chunk yet gets none";
      EXPECT_EQ(memory.get()->lanes[1].head.load(), 0U);
    }
    for (; reader.next(record); ++read) ASSERT_TRUE(is(record, read, 255)) << "record " << read;
    EXPECT_EQ(read, written) << "what found no room left no trace";
    ASSERT_TRUE(put(other, static_cast<std::uint64_t>(round), 4));
  }
  // 8 records to a chunk. From the second round on, each of the two lanes holds a chunk already.
  EXPECT_EQ(written, 8 * (ring::kChunkCount + 2 * (ring::kChunkCount - 2)));
  LaneReader other_reader(memory.get(), 1);
  for (std::uint64_t number = 0; number < 3; ++number) {
    ASSERT_TRUE(other_reader.next(record));
    EXPECT_TRUE(is(record, number, 4));
  }
  EXPECT_FALSE(other_reader.next(record));
}

// A thread's state stays with the lane: the next thread continues where the one before stopped.
TEST(Lane, IsContinuedByItsNextOwner) {
  const RingMemory memory;
  LaneWriter writer;
  LaneReader reader(memory.get(), 9);
  RingRecord record;
  std::uint64_t written = 0;
  std::uint64_t read = 0;
  for (int owner = 0; owner < 50; ++owner) {
    std::thread([&] {
      writer.open(memory.get(), &memory.get()->lanes[9]);
      for (int count = 0; count < 31; ++count) put(writer, written++, 100);
    }).join();
    if (owner % 3 == 0) {
      for (; reader.next(record); ++read) ASSERT_TRUE(is(record, read, 100)) << "record " << read;
    }
  }
  for (; reader.next(record); ++read) ASSERT_TRUE(is(record, read, 100)) << "record " << read;
  EXPECT_EQ(read, 50U * 31U);
  EXPECT_EQ(memory.free_chunks(), ring::kChunkCount - 1);
}

// Several threads write as fast as they can, one reads: the pool runs out, threads take each other's recycled chunks.
TEST(Lane, ThreadsShareThePool) {
  constexpr std::uint32_t kThreads = 3;
  constexpr std::uint64_t kRecords = 60'000;  // 7.7 million words for each: the pool holds 2.1 million
  const RingMemory memory;
  std::atomic<std::uint32_t> running = kThreads;
  std::atomic<std::uint64_t> refused = 0;
  std::vector<std::thread> threads;
  for (std::uint32_t lane = 0; lane < kThreads; ++lane) {
    threads.emplace_back([&, lane] {
      LaneWriter writer;
      writer.open(memory.get(), &memory.get()->lanes[lane]);
      for (std::uint64_t number = 0; number < kRecords;) {
        if (put(writer, number, words_of(number))) {
          ++number;
        } else {
          refused.fetch_add(1, std::memory_order_relaxed);
          std::this_thread::yield();
        }
      }
      running.fetch_sub(1, std::memory_order_release);
    });
  }
  std::vector<LaneReader> readers;
  for (std::uint32_t lane = 0; lane < kThreads; ++lane) readers.emplace_back(memory.get(), lane);
  std::uint64_t read[kThreads] = {};
  std::uint64_t wrong = 0;
  RingRecord record;
  for (bool last = false; !last;) {
    last = running.load(std::memory_order_acquire) == 0;
    for (std::uint32_t lane = 0; lane < kThreads; ++lane) {
      for (int burst = 0; burst < 2000 && readers[lane].next(record); ++burst, ++read[lane]) {
        if (!is(record, read[lane], words_of(read[lane]))) ++wrong;
        last = false;
      }
    }
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0U);
  for (std::uint32_t lane = 0; lane < kThreads; ++lane) {
    EXPECT_EQ(read[lane], kRecords);
    EXPECT_FALSE(readers[lane].broken());
  }
  EXPECT_EQ(memory.free_chunks(), ring::kChunkCount - kThreads);
  RecordProperty("refused", std::to_string(refused.load()));
}

}  // namespace
}  // namespace tidemark::testing
