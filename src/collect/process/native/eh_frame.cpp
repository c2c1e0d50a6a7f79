#include "collect/process/native/eh_frame.h"

namespace tidemark::process {
namespace {

// The one form of search table that linkers write: pairs of 32-bit offsets from .eh_frame_hdr, sorted.
constexpr std::uint8_t kSearchTableEncoding = 0x3B;  // DW_EH_PE_datarel | DW_EH_PE_sdata4
constexpr std::size_t kSearchTableEntrySize = 8;

/// The length field of a CIE or FDE: the rest of the entry as a reader; failed for the terminator.
ByteReader entry_at(const Segment& segment, std::uint64_t address, bool* wide) {
  ByteReader reader(segment, static_cast<std::size_t>(address - segment.address), segment.size);
  std::uint64_t length = reader.read<std::uint32_t>();
  *wide = length == 0xFFFFFFFF;
  if (*wide) length = reader.read<std::uint64_t>();
  const std::size_t begin = reader.position();
  if (length == 0 || length > reader.remaining()) reader.fail();
  if (reader.failed()) return reader;
  return ByteReader(segment, begin, begin + static_cast<std::size_t>(length));
}

/// Reads the augmentation data described by the letters of a CIE's string. False for a letter of unknown size before
/// the encoding is known.
bool read_augmentation(const Segment& segment, ByteRange letters, ByteReader& reader, FrameDescription* out) {
  for (std::size_t at = letters.begin; at < letters.end; ++at) {
    switch (static_cast<char>(segment.bytes[at])) {
      case 'R':
        out->pointer_encoding = reader.read<std::uint8_t>();
        break;
      case 'L':
        reader.read<std::uint8_t>();
        break;
      case 'P': {
        const auto encoding = reader.read<std::uint8_t>();
        reader.pointer(encoding, 0);
        break;
      }
      case 'S':
        out->signal_frame = true;
        break;
      case 'B':
      case 'G':
        break;  // AArch64: signed return addresses, tagged memory. No data.
      default:
        return false;
    }
  }
  return !reader.failed();
}

bool read_cie(const Segment& segment, std::uint64_t address, FrameDescription* out) {
  if (!segment.contains(address)) return false;
  bool wide = false;
  ByteReader reader = entry_at(segment, address, &wide);
  const std::size_t end = reader.position() + reader.remaining();
  const std::uint64_t id = wide ? reader.read<std::uint64_t>() : reader.read<std::uint32_t>();
  const auto version = reader.read<std::uint8_t>();
  if (id != 0 || (version != 1 && version != 3)) return false;

  ByteRange letters{reader.position(), reader.position()};
  while (!reader.failed() && reader.read<char>() != '\0') ++letters.end;
  if (reader.failed()) return false;
  out->code_alignment = reader.uleb128();
  out->data_alignment = reader.sleb128();
  out->return_address_register = version == 1 ? reader.read<std::uint8_t>() : reader.uleb128();
  if (letters.begin < letters.end) {
    if (static_cast<char>(segment.bytes[letters.begin]) != 'z') return false;
    out->has_augmentation_data = true;
    const std::uint64_t size = reader.uleb128();
    if (reader.failed() || size > reader.remaining()) return false;
    const std::size_t instructions = reader.position() + static_cast<std::size_t>(size);
    ByteReader data(segment, reader.position(), instructions);
    if (!read_augmentation(segment, {letters.begin + 1, letters.end}, data, out)) return false;
    reader.skip(size);
  }
  if (reader.failed()) return false;
  out->cie_instructions = {reader.position(), end};
  return true;
}

bool read_fde(const Segment& segment, std::uint64_t address, FrameDescription* out) {
  if (!segment.contains(address)) return false;
  bool wide = false;
  ByteReader reader = entry_at(segment, address, &wide);
  const std::size_t end = reader.position() + reader.remaining();
  const std::uint64_t cie_field = reader.address();
  const std::uint64_t distance = wide ? reader.read<std::uint64_t>() : reader.read<std::uint32_t>();
  if (reader.failed() || distance == 0 || !read_cie(segment, cie_field - distance, out)) return false;

  out->pc_begin = reader.pointer(out->pointer_encoding, 0);
  out->pc_end = out->pc_begin + reader.pointer(out->pointer_encoding & ByteReader::kFormatMask, 0);
  if (out->has_augmentation_data) reader.skip(reader.uleb128());
  if (reader.failed()) return false;
  out->fde_instructions = {reader.position(), end};
  return true;
}

/// The address in the table of the FDE of the last function that starts at or before `pc`; 0 for none.
std::uint64_t search(const Segment& segment, std::uint64_t header_address, std::uint64_t pc) {
  if (!segment.contains(header_address)) return 0;
  ByteReader reader(segment, static_cast<std::size_t>(header_address - segment.address), segment.size);
  const auto version = reader.read<std::uint8_t>();
  const auto eh_frame_encoding = reader.read<std::uint8_t>();
  const auto count_encoding = reader.read<std::uint8_t>();
  const auto table_encoding = reader.read<std::uint8_t>();
  reader.pointer(eh_frame_encoding, header_address);
  const std::uint64_t count = reader.pointer(count_encoding, header_address);
  if (reader.failed() || version != 1 || table_encoding != kSearchTableEncoding) return 0;
  if (count == 0 || count > reader.remaining() / kSearchTableEntrySize) return 0;

  const auto offset_at = [&](std::uint64_t index, std::size_t half) {
    std::int32_t offset = 0;
    std::memcpy(&offset, segment.bytes + reader.position() + index * kSearchTableEntrySize + half, sizeof offset);
    return static_cast<std::int64_t>(offset);
  };
  const auto target = static_cast<std::int64_t>(pc - header_address);
  if (offset_at(0, 0) > target) return 0;
  std::uint64_t low = 0;  // starts at or before pc
  std::uint64_t high = count;
  while (high - low > 1) {
    const std::uint64_t middle = low + (high - low) / 2;
    (offset_at(middle, 0) <= target ? low : high) = middle;
  }
  return header_address + static_cast<std::uint64_t>(offset_at(low, 4));
}

}  // namespace

bool find_frame_description(const Segment& segment, std::uint64_t header_address, std::uint64_t pc,
                            FrameDescription* out) noexcept {
  const std::uint64_t fde = search(segment, header_address, pc);
  if (fde == 0 || !read_fde(segment, fde, out)) return false;
  return out->pc_begin <= pc && pc < out->pc_end;
}

}  // namespace tidemark::process
