#include "model/safetensors.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "base/byte_stream.h"
#include "model/header_json.h"

namespace tidemark {
namespace {

/// Offsets as the header has them, beside its tensor.
struct Extent {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
  const StoredTensor* tensor = nullptr;
};

Result<void> fill(std::span<std::byte> out, ByteStream& stream) {
  while (!out.empty()) {
    const auto got = stream.read(out);
    if (!got) return got.error();
    if (*got == 0) return Error{stream.name() + ": became shorter while it was read"};
    out = out.subspan(*got);
  }
  return {};
}

/// Every byte of the data belongs to one tensor.
Result<void> check_extents(std::vector<Extent> extents, std::uint64_t data_bytes, const std::string& file) {
  std::sort(extents.begin(), extents.end(), [](const Extent& left, const Extent& right) {
    return left.begin != right.begin ? left.begin < right.begin : left.end < right.end;
  });
  std::uint64_t reached = 0;
  for (const Extent& extent : extents) {
    if (extent.begin < reached) {
      return Error{fmt::format("{}: {} begins at byte {} of the data, in the tensor before it, which ends at {}", file,
                               extent.tensor->name, extent.begin, reached)};
    }
    if (extent.begin > reached) {
      return Error{fmt::format("{}: bytes {} to {} of the data belong to no tensor (before {})", file, reached,
                               extent.begin, extent.tensor->name)};
    }
    reached = extent.end;
    if (reached > data_bytes) {
      return Error{
          fmt::format("{}: {} ends at byte {} of the data, of which there are {}; the file may not have been "
                      "downloaded or copied whole",
                      file, extent.tensor->name, reached, data_bytes)};
    }
  }
  if (reached < data_bytes) {
    return Error{fmt::format("{}: {} bytes after the last tensor belong to none", file, data_bytes - reached)};
  }
  return {};
}

}  // namespace

Result<SafetensorsHeader> parse_safetensors_header(std::span<const std::byte> header, std::uint64_t data_bytes,
                                                   const std::string& file) {
  Result<HeaderEntries> entries = parse_header_json(header, file);
  if (!entries) return entries.error();
  SafetensorsHeader result;
  result.metadata = std::move(entries->metadata);
  result.tensors.reserve(entries->tensors.size());  // extents point into it
  std::vector<Extent> extents;
  extents.reserve(entries->tensors.size());
  for (HeaderEntry& entry : entries->tensors) {
    Result<StoredTensor> tensor = stored_tensor(entry, file);
    if (!tensor) return tensor.error();
    result.tensors.push_back(std::move(*tensor));
    extents.push_back({entry.begin, entry.end, &result.tensors.back()});
  }
  const Result<void> status = check_extents(std::move(extents), data_bytes, file);
  if (!status) return status.error();
  return result;
}

Result<std::uint64_t> safetensors_header_bytes(std::span<const std::byte> start, std::uint64_t file_bytes,
                                               const std::string& file) {
  const std::string_view text(reinterpret_cast<const char*>(start.data()), start.size());
  if (text.starts_with("version ")) {
    return Error{file + ": a pointer of Git LFS instead of the file (`git lfs pull` fetches it)"};
  }
  constexpr std::size_t kPrefix = 8;
  if (start.size() < kPrefix || file_bytes < kPrefix + 2) {
    return Error{fmt::format("{}: not a safetensors file: {} bytes are too few for a header", file, file_bytes)};
  }
  std::uint64_t length = 0;
  for (std::size_t byte = kPrefix; byte-- > 0;) length = length << 8U | std::to_integer<std::uint64_t>(start[byte]);
  if (length > kMaxHeaderBytes && (text.starts_with("PK\x03\x04") || text.starts_with("\x80"))) {
    return Error{file +
                 ": a checkpoint that torch.save wrote, not a safetensors file (tidemark.analyze_model takes what "
                 "torch.load returns)"};
  }
  if (length > kMaxHeaderBytes) {
    return Error{
        fmt::format("{}: not a safetensors file: its first 8 bytes say that its header has {} bytes, and {} "
                    "are the most",
                    file, length, kMaxHeaderBytes)};
  }
  if (length > file_bytes - kPrefix) {
    return Error{
        fmt::format("{}: ends in its header, which should have {} bytes; the file may not have been "
                    "downloaded or copied whole",
                    file, length)};
  }
  return length;
}

Result<SafetensorsHeader> read_safetensors(const std::string& path) {
  auto stream = open_byte_stream(path);
  if (!stream) return stream.error();
  const std::uint64_t file_bytes = (*stream)->stored_size();
  std::vector<std::byte> bytes(static_cast<std::size_t>(std::min<std::uint64_t>(8, file_bytes)));
  if (auto filled = fill(bytes, **stream); !filled) return filled.error();
  const auto length = safetensors_header_bytes(bytes, file_bytes, path);
  if (!length) return length.error();
  bytes.resize(static_cast<std::size_t>(*length));
  if (auto filled = fill(bytes, **stream); !filled) return filled.error();
  return parse_safetensors_header(bytes, file_bytes - 8 - *length, path);
}

}  // namespace tidemark
