#include "collect/process/native/eh_frame.h"

#include <gtest/gtest.h>

#include "bytes.h"

namespace tidemark::process {
namespace {

// .eh_frame_hdr with two functions, then .eh_frame with one CIE ("zR", pcrel | sdata4) and their two FDEs. Laid out by
// hand from LSB Core 5.0, 10.6.
//   0x10000  header: version 1, encodings 1B 03 3B, .eh_frame at +0x1C, 2 entries
//   0x1001C  CIE, 0x14 bytes
//   0x10034  FDE of [0x20000, 0x20010)
//   0x1004C  FDE of [0x20040, 0x20048)
constexpr std::uint64_t kBase = 0x10000;
constexpr std::uint64_t kFirstFde = 0x10034;
constexpr std::uint64_t kSecondFde = 0x1004C;

Bytes section() {
  Bytes bytes = {1, 0x1B, 0x03, 0x3B};
  bytes.append32(0x1C - 4).append32(2);
  bytes.append32(0x20000 - kBase).append32(kFirstFde - kBase);
  bytes.append32(0x20040 - kBase).append32(kSecondFde - kBase);
  EXPECT_EQ(bytes.end(), 0x1001Cu);
  // length, id, version, "zR", code alignment 1, data alignment -8, return address 16, augmentation size 1, encoding,
  // DW_CFA_def_cfa rsp+8, DW_CFA_offset ra at cfa-8, padding
  bytes.append32(0x14).append32(0).append({1, 'z', 'R', 0, 1, 0x78, 16, 1, 0x1B, 0x0C, 7, 8, 0x90, 1, 0, 0});
  EXPECT_EQ(bytes.end(), kFirstFde);
  bytes.append32(0x14).append32(kFirstFde + 4 - 0x1001C);
  bytes.append32(0x20000 - bytes.end()).append32(0x10).append({0, 0x41, 0x0E, 16, 0, 0, 0, 0});
  EXPECT_EQ(bytes.end(), kSecondFde);
  bytes.append32(0x14).append32(kSecondFde + 4 - 0x1001C);
  bytes.append32(0x20040 - bytes.end()).append32(0x08).append({0, 0, 0, 0, 0, 0, 0, 0});
  return bytes;
}

bool find(const Bytes& bytes, std::uint64_t pc, FrameDescription* out) {
  return find_frame_description(bytes.segment(), kBase, pc, out);
}

TEST(EhFrame, FindsTheFunctionThatCoversAnAddress) {
  const Bytes bytes = section();
  FrameDescription frame;
  for (const std::uint64_t pc : {0x20000u, 0x20001u, 0x2000Fu}) {
    ASSERT_TRUE(find(bytes, pc, &frame));
    EXPECT_EQ(frame.pc_begin, 0x20000u);
    EXPECT_EQ(frame.pc_end, 0x20010u);
  }
  EXPECT_EQ(frame.code_alignment, 1u);
  EXPECT_EQ(frame.data_alignment, -8);
  EXPECT_EQ(frame.return_address_register, 16u);
  EXPECT_FALSE(frame.signal_frame);
  EXPECT_EQ(kBase + frame.cie_instructions.begin, 0x1002Du);
  EXPECT_EQ(kBase + frame.cie_instructions.end, kFirstFde);
  EXPECT_EQ(kBase + frame.fde_instructions.begin, kFirstFde + 0x11);
  EXPECT_EQ(kBase + frame.fde_instructions.end, kSecondFde);
  FrameDescription second;
  ASSERT_TRUE(find(bytes, 0x20047, &second));
  EXPECT_EQ(second.pc_begin, 0x20040u);
}

TEST(EhFrame, GapsBetweenFunctionsHaveNoDescription) {
  const Bytes bytes = section();
  for (const std::uint64_t pc : {0x1FFFFu, 0x20010u, 0x2003Fu, 0x20048u, 0u}) {
    FrameDescription frame;
    EXPECT_FALSE(find(bytes, pc, &frame)) << std::hex << pc;
  }
}

TEST(EhFrame, KnowsSignalFramesAndSkipsPersonalities) {
  Bytes bytes = {1, 0x1B, 0x03, 0x3B};
  bytes.append32(0x14 - 4).append32(1).append32(0x20000 - kBase).append32(0x38 - 0);
  ASSERT_EQ(bytes.end(), 0x10014u);
  // "zPLRS": personality sdata4 (4 bytes), LSDA encoding, pointer encoding udata4
  bytes.append32(0x20).append32(0).append(
      {1, 'z', 'P', 'L', 'R', 'S', 0, 1, 0x78, 16, 7, 0x9B, 1, 2, 3, 4, 0x1B, 0x03});
  bytes.append({0, 0, 0, 0, 0, 0, 0, 0, 0, 0});
  ASSERT_EQ(bytes.end(), 0x10038u);
  bytes.append32(0x14).append32(0x3C - 0x14).append32(0x20000).append32(0x10).append({4, 9, 9, 9, 9, 0, 0, 0});
  FrameDescription frame;
  ASSERT_TRUE(find(bytes, 0x20005, &frame));
  EXPECT_TRUE(frame.signal_frame);
  EXPECT_EQ(frame.pointer_encoding, 0x03);
  EXPECT_EQ(kBase + frame.fde_instructions.begin, 0x1004Du);  // after the 4 bytes of the LSDA pointer
}

TEST(EhFrame, TruncatedSectionsAreRefused) {
  const Bytes bytes = section();
  for (std::size_t size = 0; size < bytes.data.size(); ++size) {
    // A separate copy, so that a sanitizer sees a read past the end.
    const Bytes cut = [&] {
      Bytes copy;
      copy.data.assign(bytes.data.begin(), bytes.data.begin() + static_cast<std::ptrdiff_t>(size));
      copy.data.shrink_to_fit();
      return copy;
    }();
    FrameDescription frame;
    EXPECT_FALSE(find(cut, 0x20047, &frame)) << size;
  }
}

TEST(EhFrame, RefusesUnknownFormats) {
  const auto changed = [](std::size_t at, int value) {
    Bytes bytes = section();
    bytes.data[at] = static_cast<std::byte>(value);
    return bytes;
  };
  FrameDescription frame;
  EXPECT_FALSE(find(changed(0, 2), 0x20000, &frame));        // header version
  EXPECT_FALSE(find(changed(3, 0xFF), 0x20000, &frame));     // no table
  EXPECT_FALSE(find(changed(8, 3), 0x2FFFF, &frame));        // beyond the functions
  EXPECT_FALSE(find(changed(11, 0x7F), 0x20000, &frame));    // more entries than bytes
  EXPECT_FALSE(find(changed(0x24, 7), 0x20000, &frame));     // CIE version
  EXPECT_FALSE(find(changed(0x25, 'e'), 0x20000, &frame));   // augmentation without size
  EXPECT_FALSE(find(changed(0x26, '?'), 0x20000, &frame));   // unknown augmentation
  EXPECT_FALSE(find(changed(0x38, 0), 0x20000, &frame));     // FDE that is a CIE
  EXPECT_FALSE(find(changed(0x3A, 0x7F), 0x20000, &frame));  // CIE outside the section
}

}  // namespace
}  // namespace tidemark::process
