#include "import/unpack.h"

#include <fmt/format.h>
#include <lzma.h>
#include <zlib.h>
#include <zstd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>
#include <vector>

namespace tidemark {
namespace {

constexpr std::size_t kPieceBytes = std::size_t{1} << 17;
constexpr std::uint64_t kLzmaMemory = std::uint64_t{128} << 20;  // xz -9 needs 65 MiB

constexpr std::size_t kMagicBytes = 6;
constexpr std::array<std::uint8_t, 2> kGzip = {0x1F, 0x8B};
constexpr std::array<std::uint8_t, 6> kXz = {0xFD, '7', 'z', 'X', 'Z', 0x00};
constexpr std::array<std::uint8_t, 4> kZstd = {0x28, 0xB5, 0x2F, 0xFD};

bool begins_with(std::span<const std::byte> bytes, std::span<const std::uint8_t> magic) {
  return bytes.size() >= magic.size() && std::memcmp(bytes.data(), magic.data(), magic.size()) == 0;
}

/// Returns the bytes that were read to detect the format again.
class PeekedStream final : public ByteStream {
 public:
  PeekedStream(std::unique_ptr<ByteStream> rest, std::vector<std::byte> first)
      : rest_(std::move(rest)), first_(std::move(first)) {}

  Result<std::size_t> read(std::span<std::byte> out) override {
    if (used_ == first_.size()) return rest_->read(out);
    const std::size_t count = std::min(out.size(), first_.size() - used_);
    std::copy_n(first_.begin() + static_cast<std::ptrdiff_t>(used_), count, out.begin());
    used_ += count;
    if (count == out.size()) return count;
    // Continue reading: libzstd 1.5.4 may mistake bytes after half a header for a separate frame.
    const auto more = rest_->read(out.subspan(count));
    if (!more.ok()) return more.error();
    return count + *more;
  }

  [[nodiscard]] std::uint64_t stored_offset() const override {
    return rest_->stored_offset() - (first_.size() - used_);
  }
  [[nodiscard]] std::uint64_t stored_size() const override { return rest_->stored_size(); }
  [[nodiscard]] std::string_view packing() const override { return {}; }
  [[nodiscard]] const std::string& name() const override { return rest_->name(); }

 private:
  std::unique_ptr<ByteStream> rest_;
  std::vector<std::byte> first_;
  std::size_t used_ = 0;
};

/// Result of one call of a library.
struct Step {
  std::size_t used = 0;    ///< bytes of the input
  std::size_t made = 0;    ///< bytes of the output
  bool part_done = false;  ///< a packed part ended here
  const char* wrong = nullptr;
};

using Bytes = std::span<const std::byte>;

class Inflater {
 public:
  static constexpr std::string_view kName = "gzip";
  Inflater() : usable_(::inflateInit2(&stream_, 15 + 16) == Z_OK) {}
  ~Inflater() { ::inflateEnd(&stream_); }
  Inflater(const Inflater&) = delete;
  Inflater& operator=(const Inflater&) = delete;

  Step step(Bytes in, std::span<std::byte> out, bool /*last*/) {
    if (!usable_) return {.wrong = "zlib cannot start"};
    const auto made_room = static_cast<uInt>(std::min<std::size_t>(out.size(), kPieceBytes));
    // zlib's interface has no const; it does not write there.
    stream_.next_in = const_cast<Bytef*>(reinterpret_cast<const Bytef*>(in.data()));
    stream_.avail_in = static_cast<uInt>(in.size());
    stream_.next_out = reinterpret_cast<Bytef*>(out.data());
    stream_.avail_out = made_room;
    const int code = ::inflate(&stream_, Z_NO_FLUSH);
    Step done{.used = in.size() - stream_.avail_in, .made = made_room - stream_.avail_out};
    if (code == Z_STREAM_END) {
      done.part_done = true;
      ::inflateReset(&stream_);
    } else if (code != Z_OK && code != Z_BUF_ERROR) {
      done.wrong = stream_.msg != nullptr ? stream_.msg : "damaged";
    }
    return done;
  }

 private:
  ::z_stream stream_ = {};
  bool usable_;
};

class LzmaUnpacker {
 public:
  static constexpr std::string_view kName = "xz";
  LzmaUnpacker() : usable_(::lzma_stream_decoder(&stream_, kLzmaMemory, LZMA_CONCATENATED) == LZMA_OK) {}
  ~LzmaUnpacker() { ::lzma_end(&stream_); }
  LzmaUnpacker(const LzmaUnpacker&) = delete;
  LzmaUnpacker& operator=(const LzmaUnpacker&) = delete;

  Step step(Bytes in, std::span<std::byte> out, bool last) {
    if (!usable_) return {.wrong = "liblzma cannot start"};
    stream_.next_in = reinterpret_cast<const std::uint8_t*>(in.data());
    stream_.avail_in = in.size();
    stream_.next_out = reinterpret_cast<std::uint8_t*>(out.data());
    stream_.avail_out = out.size();
    const ::lzma_ret code = ::lzma_code(&stream_, last ? LZMA_FINISH : LZMA_RUN);
    Step done{.used = in.size() - stream_.avail_in, .made = out.size() - stream_.avail_out};
    if (code == LZMA_STREAM_END) {
      done.part_done = true;
    } else if (code == LZMA_MEMLIMIT_ERROR) {
      done.wrong = "needs more than 128 MiB to unpack: unpack it with xz -d first";
    } else if (code != LZMA_OK && code != LZMA_BUF_ERROR) {
      done.wrong = "damaged";
    }
    return done;
  }

 private:
  ::lzma_stream stream_ = LZMA_STREAM_INIT;
  bool usable_;
};

class ZstdUnpacker {
 public:
  static constexpr std::string_view kName = "zstd";

  Step step(Bytes in, std::span<std::byte> out, bool /*last*/) {
    ::ZSTD_inBuffer source = {in.data(), in.size(), 0};
    ::ZSTD_outBuffer target = {out.data(), out.size(), 0};
    const std::size_t code = ::ZSTD_decompressStream(stream_.get(), &target, &source);
    Step done{.used = source.pos, .made = target.pos};
    if (::ZSTD_isError(code) != 0) {
      done.wrong = ::ZSTD_getErrorName(code);
      return done;
    }
    const auto room = static_cast<std::ptrdiff_t>(std::min(kMaxHeaderBytes - header_.size(), done.used));
    header_.insert(header_.end(), in.begin(), in.begin() + room);
    made_ += done.made;
    done.part_done = code == 0;
    if (done.part_done && !as_large_as_stated()) done.wrong = "damaged";
    return done;
  }

 private:
  static constexpr std::size_t kMaxHeaderBytes = 18;  // ZSTD_FRAMEHEADERSIZE_MAX

  /// At the end of a frame; begins the next. libzstd compares the sizes only if the last block is not empty, or if the
  /// whole frame is in one piece.
  bool as_large_as_stated() {
    const unsigned long long stated = ::ZSTD_getFrameContentSize(header_.data(), header_.size());
    const bool fits = stated == ZSTD_CONTENTSIZE_UNKNOWN || stated == ZSTD_CONTENTSIZE_ERROR || stated == made_;
    header_.clear();
    made_ = 0;
    return fits;
  }

  struct Free {
    void operator()(::ZSTD_DCtx* context) const { ::ZSTD_freeDCtx(context); }
  };
  std::unique_ptr<::ZSTD_DCtx, Free> stream_{::ZSTD_createDCtx()};
  std::vector<std::byte> header_;  // the first bytes of the frame
  std::uint64_t made_ = 0;         // of the frame
};

template <typename Unpacker>
class UnpackedStream final : public ByteStream {
 public:
  explicit UnpackedStream(std::unique_ptr<ByteStream> stored) : stored_(std::move(stored)), piece_(kPieceBytes) {}

  Result<std::size_t> read(std::span<std::byte> out) override {
    while (true) {
      if (used_ == have_ && !at_end_) {
        const auto got = stored_->read(piece_);
        if (!got.ok()) return got.error();
        used_ = 0;
        have_ = *got;
        at_end_ = have_ == 0;
      }
      if (wrong_ != nullptr) {
        return Error{fmt::format("{}: unpacking ({}) failed at offset {} of the packed file: {}", name(), packing(),
                                 stored_offset(), wrong_)};
      }
      if (at_end_ && used_ == have_ && between_parts_) return std::size_t{0};
      const Step done = unpacker_.step(Bytes(piece_).subspan(used_, have_ - used_), out, at_end_);
      used_ += done.used;
      if (done.used > 0) between_parts_ = false;
      if (done.part_done) between_parts_ = true;
      wrong_ = done.wrong;
      if (done.made > 0) return done.made;  // valid bytes before the damage
      if (wrong_ != nullptr) continue;
      if (done.part_done && at_end_) return std::size_t{0};
      if (done.used == 0 && at_end_) {
        return Error{
            fmt::format("{}: the packed file ({}) is cut off at offset {}", name(), packing(), stored_offset())};
      }
    }
  }

  [[nodiscard]] std::uint64_t stored_offset() const override { return stored_->stored_offset() - (have_ - used_); }
  [[nodiscard]] std::uint64_t stored_size() const override { return stored_->stored_size(); }
  [[nodiscard]] std::string_view packing() const override { return Unpacker::kName; }
  [[nodiscard]] const std::string& name() const override { return stored_->name(); }

 private:
  std::unique_ptr<ByteStream> stored_;
  Unpacker unpacker_;
  std::vector<std::byte> piece_;
  std::size_t used_ = 0;
  std::size_t have_ = 0;
  bool at_end_ = false;
  bool between_parts_ = false;
  const char* wrong_ = nullptr;
};

}  // namespace

bool looks_packed(std::span<const std::byte> prefix) {
  return begins_with(prefix, kGzip) || begins_with(prefix, kXz) || begins_with(prefix, kZstd);
}

Result<std::unique_ptr<ByteStream>> unpack(std::unique_ptr<ByteStream> stored) {
  std::vector<std::byte> first(kMagicBytes);
  std::size_t have = 0;
  while (have < first.size()) {
    const auto got = stored->read(std::span(first).subspan(have));
    if (!got.ok()) return got.error();
    if (*got == 0) break;
    have += *got;
  }
  first.resize(have);
  const Bytes prefix(first);
  const bool gzip = begins_with(prefix, kGzip);
  const bool xz = begins_with(prefix, kXz);
  const bool zstd = begins_with(prefix, kZstd);
  std::unique_ptr<ByteStream> whole = std::make_unique<PeekedStream>(std::move(stored), std::move(first));
  if (gzip) whole = std::make_unique<UnpackedStream<Inflater>>(std::move(whole));
  if (xz) whole = std::make_unique<UnpackedStream<LzmaUnpacker>>(std::move(whole));
  if (zstd) whole = std::make_unique<UnpackedStream<ZstdUnpacker>>(std::move(whole));
  return whole;
}

}  // namespace tidemark
