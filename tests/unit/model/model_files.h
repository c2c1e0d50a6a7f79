// Safetensors files made by hand.
#pragma once

#include <cstdint>
#include <fstream>
#include <span>
#include <string>

#include "model/safetensors.h"

namespace tidemark::testing {

/// A whole file: length, header, and so many bytes of data.
inline std::string safetensors_bytes(const std::string& header, std::size_t data_bytes) {
  std::string bytes;
  for (unsigned shift = 0; shift < 64; shift += 8) bytes += static_cast<char>(header.size() >> shift & 0xFFU);
  return bytes + header + std::string(data_bytes, '\0');
}

inline void write_file(const std::string& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary) << bytes;
}

inline Result<SafetensorsHeader> parse_header(const std::string& header, std::uint64_t data_bytes) {
  return parse_safetensors_header(std::as_bytes(std::span(header)), data_bytes, "model.safetensors");
}

}  // namespace tidemark::testing
