#include "export/gzip.h"

#include <zlib.h>

#include <algorithm>
#include <array>
#include <limits>
#include <new>

namespace tidemark {

std::string gzip(std::string_view bytes) {
  constexpr int kGzip = 16;  // added to the size of the window: a gzip header instead of zlib's
  z_stream stream{};
  if (deflateInit2(&stream, Z_DEFAULT_COMPRESSION, Z_DEFLATED, MAX_WBITS + kGzip, 8, Z_DEFAULT_STRATEGY) != Z_OK) {
    throw std::bad_alloc();  // the only reason: the arguments are right
  }
  std::string packed;
  std::array<char, std::size_t{1} << 16> piece{};
  int state = Z_OK;
  do {
    const std::size_t taken = std::min<std::size_t>(bytes.size(), std::numeric_limits<uInt>::max());
    stream.next_in = const_cast<Bytef*>(reinterpret_cast<const Bytef*>(bytes.data()));  // zlib only reads them
    stream.avail_in = static_cast<uInt>(taken);
    bytes.remove_prefix(taken);
    do {
      stream.next_out = reinterpret_cast<Bytef*>(piece.data());
      stream.avail_out = static_cast<uInt>(piece.size());
      state = deflate(&stream, bytes.empty() ? Z_FINISH : Z_NO_FLUSH);
      packed.append(piece.data(), piece.size() - stream.avail_out);
    } while (stream.avail_out == 0);
  } while (state != Z_STREAM_END);
  deflateEnd(&stream);
  return packed;
}

}  // namespace tidemark
