// The recorded process's hash table compared with std::unordered_map.
#include "collect/process/key_table.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <memory>
#include <random>
#include <unordered_map>

namespace tidemark::process {
namespace {

using Table = KeyTable<4096>;
constexpr std::size_t kFirstRoom = 256;  // half of the 512 entries that a table begins with
constexpr std::size_t kMaxRoom = 2048;   // half of 4096

/// As in the process: zero-filled memory, no constructor.
struct ZeroedTable {
  ZeroedTable() : memory(new std::byte[sizeof(Table)]()) {}
  Table& operator*() const { return *reinterpret_cast<Table*>(memory.get()); }
  Table* operator->() const { return &**this; }

  std::unique_ptr<std::byte[]> memory;
};

std::size_t fill(Table& table, std::uint64_t first_key) {
  std::size_t count = 0;
  while (table.has_room()) table.insert(first_key + count++, 1);
  return count;
}

TEST(KeyTable, IsEmptyInZeroedMemory) {
  const ZeroedTable table;
  EXPECT_TRUE(table->has_room());
  for (const std::uint64_t key : {std::uint64_t{1}, std::uint64_t{512}, ~std::uint64_t{0}}) {
    EXPECT_EQ(table->find(key), Table::kMissing);
  }
}

TEST(KeyTable, DoublesUpToItsMaximumAndForgets) {
  const ZeroedTable table;
  std::size_t room = kFirstRoom;
  std::size_t entry_bytes = 16;
  while (true) {
    EXPECT_EQ(fill(*table, 1), room);
    EXPECT_EQ(table->find(room), 1U);
    EXPECT_EQ(table->growth(), room < kMaxRoom ? 2 * room * entry_bytes : 0);
    table->clear(true);
    EXPECT_EQ(table->find(room), Table::kMissing);
    if (room == kMaxRoom) break;
    room *= 2;
  }
  EXPECT_EQ(fill(*table, 7), kMaxRoom) << "a full-grown table is cleared and stays as large";
}

TEST(KeyTable, ClearsWithoutGrowing) {
  const ZeroedTable table;
  fill(*table, 1);
  table->clear(false);
  EXPECT_EQ(table->find(1), Table::kMissing);
  EXPECT_EQ(fill(*table, 1), kFirstRoom);
}

TEST(KeyTable, WrapsAroundItsEnd) {
  const ZeroedTable table;
  // All of them hash to the last entry: the chain continues at the beginning.
  for (std::uint64_t n = 1; n <= 100; ++n) table->insert(n * 512 - 1, static_cast<std::uint32_t>(n));
  for (std::uint64_t n = 1; n <= 100; ++n) EXPECT_EQ(table->find(n * 512 - 1), n);
  EXPECT_EQ(table->find(101 * 512 - 1), Table::kMissing);
}

TEST(KeyTable, AgreesWithAStandardMap) {
  const bool ok = rc::check([] {
    const ZeroedTable table;
    std::unordered_map<std::uint64_t, std::uint32_t> model;
    // Few bits, so that keys collide and repeat; or many.
    const auto bits = *rc::gen::element(std::uint64_t{0x3FF}, std::uint64_t{0x3F'FE00}, ~std::uint64_t{0});
    std::mt19937_64 random(*rc::gen::arbitrary<std::uint64_t>());
    for (std::uint32_t step = 0; step < 6000; ++step) {
      const std::uint64_t key = random() & bits;
      if (key == 0) continue;
      const auto known = model.find(key);
      RC_ASSERT(table->find(key) == (known != model.end() ? known->second : Table::kMissing));
      if (known != model.end()) continue;
      if (!table->has_room() || step % 1999 == 0) {
        table->clear(random() % 2 == 0);
        model.clear();
      }
      table->insert(key, step);
      model[key] = step;
    }
    for (const auto& [key, value] : model) RC_ASSERT(table->find(key) == value);
  });
  EXPECT_TRUE(ok);
}

// The table uses the low bits of a key unchanged: mix() must spread keys that differ anywhere.
TEST(KeyTable, MixChangesHalfOfTheBits) {
  std::size_t changed = 0;
  std::size_t pairs = 0;
  for (std::uint64_t base = 1; base < 2000; base += 37) {
    for (unsigned bit = 0; bit < 64; ++bit, ++pairs) {
      const std::uint64_t flipped = mix(base * 0x1'0001'0001, base) ^ mix((base * 0x1'0001'0001) ^ (1ULL << bit), base);
      changed += static_cast<std::size_t>(__builtin_popcountll(flipped));
      EXPECT_NE(flipped, 0U);
    }
  }
  EXPECT_NEAR(static_cast<double>(changed) / static_cast<double>(pairs), 32.0, 3.0);
}

}  // namespace
}  // namespace tidemark::process
