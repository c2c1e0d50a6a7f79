// Bounds-checked reading of the encodings of .eh_frame (DWARF 5, section 7; LSB Core 5.0, chapter 10.5).
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace tidemark::process {

/// A readable range of memory, and the base address for pc-relative values inside it (its own address, except in
/// tests).
struct Segment {
  const std::byte* bytes = nullptr;
  std::size_t size = 0;
  std::uint64_t address = 0;

  [[nodiscard]] bool contains(std::uint64_t target) const { return target - address < size; }
};

/// A cursor over [begin, end) of a segment, as offsets. A read past the end returns 0, and so do all later reads.
class ByteReader {
 public:
  /// Pointer encodings, DW_EH_PE_*.
  static constexpr std::uint8_t kOmit = 0xFF;
  static constexpr std::uint8_t kFormatMask = 0x0F;

  ByteReader(const Segment& segment, std::size_t begin, std::size_t end) : segment_(segment) {
    end_ = end < segment.size ? end : segment.size;
    position_ = begin < end_ ? begin : end_;
    failed_ = begin > end_ || end > segment.size;
  }

  [[nodiscard]] bool failed() const { return failed_; }
  [[nodiscard]] bool at_end() const { return position_ == end_; }
  [[nodiscard]] std::size_t position() const { return position_; }
  [[nodiscard]] std::size_t remaining() const { return end_ - position_; }
  [[nodiscard]] std::uint64_t address() const { return segment_.address + position_; }

  template <typename T>
  T read() {
    T value{};
    if (remaining() < sizeof(T)) {
      fail();
      return value;
    }
    std::memcpy(&value, segment_.bytes + position_, sizeof(T));
    position_ += sizeof(T);
    return value;
  }

  void skip(std::uint64_t count) {
    if (count > remaining()) {
      fail();
    } else {
      position_ += static_cast<std::size_t>(count);
    }
  }

  /// Bits beyond the 64th are dropped.
  std::uint64_t uleb128() {
    std::uint64_t value = 0;
    for (unsigned shift = 0;; shift += 7) {
      const auto byte = read<std::uint8_t>();
      if (shift < 64) value |= static_cast<std::uint64_t>(byte & 0x7F) << shift;
      if ((byte & 0x80) == 0) return value;
    }
  }

  std::int64_t sleb128() {
    std::uint64_t value = 0;
    for (unsigned shift = 0;;) {
      const auto byte = read<std::uint8_t>();
      if (shift < 64) value |= static_cast<std::uint64_t>(byte & 0x7F) << shift;
      shift += 7;
      if ((byte & 0x80) != 0) continue;
      if (shift < 64 && (byte & 0x40) != 0) value |= ~std::uint64_t{0} << shift;
      return static_cast<std::int64_t>(value);
    }
  }

  /// A pointer with an encoding DW_EH_PE_*; `data_base` is the base for "datarel". Indirect pointers return the address
  /// of the pointer: the unwinder needs none of them.
  std::uint64_t pointer(std::uint8_t encoding, std::uint64_t data_base) {
    if (encoding == kOmit) return 0;
    const std::uint64_t origin = address();
    std::uint64_t value = 0;
    switch (encoding & kFormatMask) {
      case 0x00:
      case 0x04:
      case 0x0C:
        value = read<std::uint64_t>();
        break;
      case 0x01:
        value = uleb128();
        break;
      case 0x02:
        value = read<std::uint16_t>();
        break;
      case 0x03:
        value = read<std::uint32_t>();
        break;
      case 0x09:
        value = static_cast<std::uint64_t>(sleb128());
        break;
      case 0x0A:
        value = static_cast<std::uint64_t>(std::int64_t{read<std::int16_t>()});
        break;
      case 0x0B:
        value = static_cast<std::uint64_t>(std::int64_t{read<std::int32_t>()});
        break;
      default:
        fail();
        return 0;
    }
    switch (encoding & 0x70) {
      case 0x00:
        return value;
      case 0x10:
        return value + origin;
      case 0x30:
        return value + data_base;
      default:
        fail();
        return 0;
    }
  }

  void fail() {
    failed_ = true;
    position_ = end_;
  }

 private:
  Segment segment_;
  std::size_t position_ = 0;
  std::size_t end_ = 0;
  bool failed_ = false;
};

}  // namespace tidemark::process
