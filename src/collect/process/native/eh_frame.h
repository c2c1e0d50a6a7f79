// Finds the frame description (FDE) of an address in a module's .eh_frame by the search table of .eh_frame_hdr.
#pragma once

#include <cstddef>
#include <cstdint>

#include "collect/process/native/byte_reader.h"

namespace tidemark::process {

/// Offsets into a segment.
struct ByteRange {
  std::size_t begin = 0;
  std::size_t end = 0;
};

/// The content of a CIE and one FDE that refers to it. The call frame instructions are not copied.
struct FrameDescription {
  std::uint64_t pc_begin = 0;
  std::uint64_t pc_end = 0;
  std::uint64_t code_alignment = 1;
  std::int64_t data_alignment = 1;
  std::uint64_t return_address_register = 0;
  std::uint8_t pointer_encoding = 0;
  bool has_augmentation_data = false;
  bool signal_frame = false;  ///< augmentation 'S': the caller was interrupted, its pc is no return address
  ByteRange cie_instructions;
  ByteRange fde_instructions;
};

/// The description that covers `pc`. `segment` holds both .eh_frame_hdr (at `header_address`) and .eh_frame. False if
/// there is none, or it is malformed or of an unknown kind. Reads nothing outside `segment`.
bool find_frame_description(const Segment& segment, std::uint64_t header_address, std::uint64_t pc,
                            FrameDescription* out) noexcept;

}  // namespace tidemark::process
