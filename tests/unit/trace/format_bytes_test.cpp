// Bytes worked out by hand, in docs/format.md and here.
#include <fstream>
#include <sstream>

#include "base/crc32c.h"
#include "trace_test_support.h"

namespace tidemark::testing {
namespace {

Bytes from_hex(const std::string& text) {
  Bytes bytes;
  std::istringstream words(text);
  for (std::string word; words >> word;) bytes.push_back(static_cast<std::byte>(std::stoi(word, nullptr, 16)));
  return bytes;
}

/// The last code block of docs/format.md; on each line, bytes as far as the first two spaces in a row.
Bytes documented_file() {
  std::ifstream page(TIDEMARK_FORMAT_PAGE);
  EXPECT_TRUE(page.is_open());
  std::string hex;
  bool in_block = false;
  for (std::string line; std::getline(page, line);) {
    if (line.starts_with("```")) {
      in_block = !in_block;
      if (in_block) hex.clear();
    } else if (in_block) {
      hex += line.substr(0, line.find("  ")) + ' ';
    }
  }
  return from_hex(hex);
}

TEST(FormatBytes, TheWriterMakesTheFileThatThePageShows) {
  Bytes bytes;
  ProcessInfo process;
  process.pid = 7;
  const auto writer = write_to(&bytes, process);
  const ThreadId thread = writer->thread({7, "t"});
  ASSERT_TRUE(writer->flush().ok());
  Event event = allocate(1000, 0x1000, 512);
  event.thread = thread;
  ASSERT_TRUE(writer->event(event).ok());
  event = free_at(1500, 0x1000);
  event.thread = thread;
  ASSERT_TRUE(writer->event(event).ok());
  ASSERT_TRUE(writer->finish({1500, true}).ok());
  EXPECT_EQ(bytes, documented_file());
}

TEST(FormatBytes, TheReaderUnderstandsTheFileThatThePageShows) {
  const Recording read = read_all(documented_file());
  EXPECT_EQ(read.error, "");
  ASSERT_EQ(read.events.size(), 2U);
  EXPECT_EQ(describe(read.events[0]), "kind 0 t 1000 thread 0 cpu address 1000 size 512 slot 0 stack -");
  EXPECT_EQ(describe(read.events[1]), "kind 1 t 1500 thread 0 cpu address 1000 size 512 slot 0 stack -");
  EXPECT_EQ(read.definitions.process.pid, 7);
  EXPECT_EQ(read.definitions.process.rank, std::nullopt);
  ASSERT_EQ(read.definitions.threads.size(), 1U);
  EXPECT_EQ(read.definitions.threads[0].name, "t");
  ASSERT_TRUE(read.definitions.end.has_value());
  EXPECT_EQ(read.definitions.end->time_ns, 1500U);
  EXPECT_TRUE(read.definitions.end->process_exited);
  EXPECT_TRUE(read.definitions.losses.empty());
}

TEST(FormatBytes, ColumnsOfTwoDevicesWithTotals) {
  Bytes bytes;
  const auto writer = write_to(&bytes);
  const std::size_t before = bytes.size();
  const Device gpu = {DeviceType::cuda, 1};
  Event first = allocate(10, 0x200, 3, gpu);
  first.has_totals = true;
  first.total_allocated = 3;  // as expected: 0 + 3
  first.total_reserved = 64;  // not as expected
  Event second = free_at(9, 0x200, gpu);
  second.has_totals = true;
  second.total_allocated = 1;  // expected: 3 - 3
  second.total_reserved = 64;
  Event third = allocate(9, 0x208, 3);
  Event fourth = free_at(9, 0x5);
  for (const Event& event : {first, second, third, fourth}) ASSERT_TRUE(writer->event(event).ok());
  ASSERT_TRUE(writer->flush().ok());

  const std::string payload =
      "04 0a "                          // four events, ten columns
      "04 04 04 00 04 06 02 02 01 03 "  // lengths of the columns
      "b0 61 10 02 "                    // allocate + device, totals, reserved; free + totals, allocated; …
      "14 01 00 00 "                    // time low: +10, -1, 0, 0
      "00 00 00 00 "                    // time high
      "01 01 00 00 "                    // devices: CUDA 1, then CPU
      "01 80 08 01 10 05 "              // address: new, +0x200 from 0; new, +8 from there; 5 itself
      "03 03 "                          // sizes
      "00 00 "                          // stacks: none
      "00 "                             // slot 0
      "80 01 02 ";                      // reserved +64; allocated +1
  Bytes frame = from_hex("02 01 00 00 2a 00 00 00 2a 00 00 00");
  const Bytes body = from_hex(payload);
  const std::uint32_t checksum = crc32c(body, crc32c(frame));
  for (unsigned shift = 0; shift < 32; shift += 8) frame.push_back(static_cast<std::byte>((checksum >> shift) & 0xFF));
  frame.insert(frame.end(), body.begin(), body.end());
  EXPECT_EQ(Bytes(bytes.begin() + static_cast<std::ptrdiff_t>(before), bytes.end()), frame);
}

}  // namespace
}  // namespace tidemark::testing
