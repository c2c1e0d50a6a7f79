#include "trace/frame_reader.h"

#include <fmt/format.h>
#include <zstd.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/crc32c.h"
#include "trace/varint.h"

namespace tidemark {
namespace {

using format::FrameType;

constexpr std::size_t kReadStep = std::size_t{1} << 20;

/// Why these bytes are no file header that this code can use; empty when they are.
std::string header_problem(std::span<const std::byte> header) {
  if (header.empty()) return "is empty: nothing was recorded into it";
  const std::size_t magic_bytes = std::min(header.size(), format::kMagic.size());
  if (std::memcmp(header.data(), format::kMagic.data(), magic_bytes) != 0) {
    std::string found;
    for (const std::byte byte : header.first(magic_bytes)) found += fmt::format(" {:02x}", static_cast<unsigned>(byte));
    return fmt::format("is not a tidemark recording (it begins with{})", found);
  }
  if (header.size() < format::kFileHeaderBytes) {
    return fmt::format("is cut off at offset {}, inside its header of {} bytes: nothing can be read from it",
                       header.size(), format::kFileHeaderBytes);
  }
  if (load_le<std::uint32_t>(header.data() + 12) != crc32c(header.first(12))) {
    return "has a damaged header (the checksum at offset 12 is wrong): it cannot be read";
  }
  const auto version = load_le<std::uint16_t>(header.data() + 8);
  const auto minimum_reader = load_le<std::uint16_t>(header.data() + 10);
  if (minimum_reader > format::kVersion) {
    return fmt::format(
        "has format version {} and needs a reader of version {} or later; this tidemark reads version {}: update "
        "tidemark",
        version, minimum_reader, format::kVersion);
  }
  return {};
}

}  // namespace

void FrameReader::FreeContext::operator()(ZSTD_DCtx_s* context) const {
  ZSTD_freeDCtx(context);
}

FrameReader::FrameReader(std::unique_ptr<ByteStream> stream, FileEnd end)
    : stream_(std::move(stream)), context_(ZSTD_createDCtx()), end_(end) {}

FrameReader::~FrameReader() = default;

Result<std::unique_ptr<FrameReader>> FrameReader::open(std::unique_ptr<ByteStream> stream, FileEnd end) {
  std::unique_ptr<FrameReader> reader(new FrameReader(std::move(stream), end));
  const std::string& name = reader->stream_->name();
  if (!reader->context_) return Error{name + ": no memory for the decompressor"};
  const auto header = reader->take(format::kFileHeaderBytes);
  if (!header.ok()) return header.error();
  if (const std::string problem = header_problem(*header); !problem.empty()) {
    return Error{fmt::format("{} {}", name, problem)};
  }
  reader->format_version_ = load_le<std::uint16_t>(header->data() + 8);
  reader->have_ = 0;
  return reader;
}

Result<std::span<const std::byte>> FrameReader::take(std::size_t size) {
  while (have_ < size) {
    const std::size_t step = std::min(size - have_, kReadStep);
    if (stored_.size() < have_ + step) stored_.resize(have_ + step);
    const auto got = stream_->read(std::span(stored_).subspan(have_, step));
    if (!got.ok()) return got.error();
    if (*got == 0) break;
    have_ += *got;
    offset_ += *got;
  }
  return std::span<const std::byte>(stored_.data(), std::min(have_, size));
}

void FrameReader::reject(const Frame& frame, const std::string& why) {
  damage_ = Damage{frame.offset, std::max(size(), offset_) - frame.offset,
                   fmt::format("from offset {} on: {}", frame.offset, why)};
}

Result<bool> FrameReader::next(Frame& frame, const std::function<bool(const Frame&)>& wanted) {
  if (damage_) return false;
  frame = Frame{};
  frame.offset = offset_ - have_;
  const auto refuse = [&](const char* why) {
    reject(frame, why);
    return false;
  };
  const auto ends_inside = [&](const char* what) { return end_ == FileEnd::torn && refuse(what); };
  const auto header_read = take(format::kFrameHeaderBytes);
  if (!header_read.ok()) return header_read.error();
  if (header_read->empty()) return false;
  if (header_read->size() < format::kFrameHeaderBytes) return ends_inside("the file ends inside a frame header");

  const std::byte* header = header_read->data();
  frame.type = load_le<std::uint8_t>(header);
  frame.version = load_le<std::uint8_t>(header + 1);
  frame.flags = load_le<std::uint16_t>(header + 2);
  frame.stored_length = load_le<std::uint32_t>(header + 4);
  frame.raw_length = load_le<std::uint32_t>(header + 8);
  if (frame.stored_length > format::kMaxPayloadBytes || frame.raw_length > format::kMaxPayloadBytes) {
    return refuse("a frame claims more bytes than any frame may have");
  }
  const std::size_t bytes = format::kFrameHeaderBytes + frame.stored_length;
  const bool is_wanted = wanted(frame);
  if (!is_wanted && have_ == format::kFrameHeaderBytes && stream_->skip(frame.stored_length)) {
    offset_ += frame.stored_length;
    have_ = 0;
    return true;
  }
  const auto whole = take(bytes);
  if (!whole.ok()) return whole.error();
  if (whole->size() < bytes) return ends_inside("the file ends inside a frame");
  have_ = 0;  // the next call begins with the next frame
  if (!is_wanted) return true;
  const std::span<const std::byte> stored = whole->subspan(format::kFrameHeaderBytes);
  const std::uint32_t checksum = crc32c(stored, crc32c(whole->first(12)));
  if (load_le<std::uint32_t>(whole->data() + 12) != checksum) return refuse("a frame's checksum is wrong");

  const bool known_type = frame.type >= static_cast<std::uint8_t>(FrameType::definitions) &&
                          frame.type <= static_cast<std::uint8_t>(format::kLastFrameType);
  frame.known = known_type && frame.version == format::kFrameVersion && (frame.flags & ~format::kFlagZstd) == 0;
  if (frame.known && !unpack(frame, stored)) return refuse("a frame does not decompress to the length it claims");
  return true;
}

bool FrameReader::unpack(Frame& frame, std::span<const std::byte> stored) {
  if (payload_.size() < frame.raw_length + Frame::kPadding) payload_.resize(frame.raw_length + Frame::kPadding);
  if ((frame.flags & format::kFlagZstd) != 0) {
    const std::size_t size =
        ZSTD_decompressDCtx(context_.get(), payload_.data(), frame.raw_length, stored.data(), stored.size());
    if (ZSTD_isError(size) != 0 || size != frame.raw_length) return false;
  } else {
    if (stored.size() != frame.raw_length) return false;
    if (!stored.empty()) std::memcpy(payload_.data(), stored.data(), stored.size());
  }
  frame.payload = {payload_.data(), frame.raw_length};
  return true;
}

}  // namespace tidemark
