// Hand-made sections for the tests of the .eh_frame readers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <vector>

#include "collect/process/native/byte_reader.h"

namespace tidemark::process {

/// Bytes at a given address.
struct Bytes {
  std::vector<std::byte> data;
  std::uint64_t address = 0x10000;

  Bytes() = default;
  Bytes(std::initializer_list<int> values) { append(values); }

  Bytes& append(std::initializer_list<int> values) {
    for (const int value : values) data.push_back(static_cast<std::byte>(value));
    return *this;
  }

  Bytes& append32(std::uint64_t value) {
    for (unsigned shift = 0; shift < 32; shift += 8) data.push_back(static_cast<std::byte>(value >> shift));
    return *this;
  }

  [[nodiscard]] Segment segment() const { return {data.data(), data.size(), address}; }
  [[nodiscard]] std::uint64_t end() const { return address + data.size(); }
};

}  // namespace tidemark::process
