// Fuzz target of unpacking .gz, .xz and .zst: for any bytes, it must terminate, read only the input, and different ways
// of reading must agree on whether a file is damaged.
#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/byte_stream.h"
#include "fuzz/require.h"
#include "import/unpack.h"

namespace {

using namespace tidemark;
using tidemark::testing::require;

constexpr std::size_t kEnough = std::size_t{1} << 22;  // a few bytes can expand to gigabytes

/// The unpacked content, read in pieces of up to this size; std::nullopt if it is damaged or too large.
std::optional<std::vector<std::byte>> unpacked(std::span<const std::byte> bytes, std::size_t piece) {
  auto stream = unpack(make_memory_stream(bytes, "input"));
  require(stream.ok(), "reading memory does not fail");
  std::vector<std::byte> all;
  while (all.size() < kEnough) {
    const std::size_t before = all.size();
    all.resize(before + piece);
    const auto got = (*stream)->read(std::span(all).subspan(before));
    require((*stream)->stored_offset() <= bytes.size(), "no more is used than there is");
    if (!got.ok()) {
      require(got.error().message.starts_with("input"), "an error names the file");
      return std::nullopt;
    }
    require(*got <= piece, "no more is given than there is room for");
    all.resize(before + *got);
    if (*got == 0) return all;
  }
  return std::nullopt;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto bytes = std::as_bytes(std::span(data, size));
  const auto large = unpacked(bytes, std::size_t{1} << 16);
  const auto small = unpacked(bytes, 61);
  require(large.has_value() == small.has_value(), "it is whole or damaged however it is read");
  require(large == small, "the bytes are the same however they are read");
  if (!looks_packed(bytes)) require(large && std::ranges::equal(*large, bytes), "other files are read as they are");
  return 0;
}
