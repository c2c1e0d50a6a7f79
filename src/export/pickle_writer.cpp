#include "export/pickle_writer.h"

#include <array>
#include <bit>
#include <limits>

namespace tidemark {
namespace {

constexpr char kProtocol2[] = "\x80\x02";
constexpr char kMark = '(';
constexpr char kAppends = 'e';
constexpr char kBinPut = 'q';
constexpr char kLongBinPut = 'r';
constexpr char kBinGet = 'h';
constexpr char kLongBinGet = 'j';
constexpr char kBinInt = 'J';
constexpr char kBinInt1 = 'K';
constexpr char kBinInt2 = 'M';
constexpr char kLong1 = '\x8a';
constexpr char kBinFloat = 'G';
constexpr char kBinUnicode = 'X';
constexpr char kStop = '.';

}  // namespace

PickleWriter::PickleWriter(std::span<const std::string_view> words, const ByteOutput& output)
    : words_(words), output_(output), written_words_(words.size()) {
  put(kProtocol2);
}

void PickleWriter::begin_list() {
  put(']');
  batches_.push_back(0);
}

void PickleWriter::next_item() {
  if (bytes_.size() >= kOutputPiece) flush();
  std::uint32_t& items = batches_.back();
  if (items == kBatch) {
    put(kAppends);
    items = 0;
  }
  if (items++ == 0) put(kMark);
}

void PickleWriter::end_list() {
  if (batches_.back() != 0) put(kAppends);
  batches_.pop_back();
}

void PickleWriter::word(std::size_t index) {
  std::optional<PickleMemo>& written = written_words_[index];
  if (written) return again(*written);
  put_text(words_[index]);
  written = remember();
}

void PickleWriter::text(std::string_view utf8) {
  const auto [entry, is_new] = texts_.try_emplace(std::string(utf8), next_memo_);
  if (!is_new) return again(entry->second);
  put_text(utf8);
  remember();
}

void PickleWriter::integer(std::uint64_t value) {
  if (value <= std::numeric_limits<std::uint8_t>::max()) {
    put(kBinInt1);
    put_little_endian(value, 1);
  } else if (value <= std::numeric_limits<std::uint16_t>::max()) {
    put(kBinInt2);
    put_little_endian(value, 2);
  } else if (value <= std::numeric_limits<std::int32_t>::max()) {
    put(kBinInt);
    put_little_endian(value, 4);
  } else {
    // Two's complement: the highest bit is the sign.
    put(kLong1);
    const std::size_t bytes = static_cast<std::size_t>(std::bit_width(value)) / 8 + 1;
    put_little_endian(bytes, 1);
    put_little_endian(value, bytes);
  }
}

void PickleWriter::signed_integer(std::int64_t value) {
  if (value >= 0) return integer(static_cast<std::uint64_t>(value));
  put(kLong1);
  put_little_endian(8, 1);
  put_little_endian(static_cast<std::uint64_t>(value), 8);
}

void PickleWriter::real(double value) {
  put(kBinFloat);
  const auto bits = std::bit_cast<std::uint64_t>(value);
  for (int shift = 56; shift >= 0; shift -= 8) put(static_cast<char>(bits >> shift & 0xFFU));
}

PickleMemo PickleWriter::remember() {
  put_number(next_memo_ <= 0xFF ? kBinPut : kLongBinPut, next_memo_);
  return next_memo_++;
}

void PickleWriter::again(PickleMemo memo) {
  put_number(memo <= 0xFF ? kBinGet : kLongBinGet, memo);
}

Result<void> PickleWriter::finish() {
  put(kStop);
  flush();
  return written_;
}

void PickleWriter::put_number(char opcode, std::uint32_t number) {
  put(opcode);
  put_little_endian(number, number <= 0xFF ? 1 : 4);
}

void PickleWriter::put_little_endian(std::uint64_t value, std::size_t bytes) {
  std::array<char, 9> little_endian{};  // with a byte for the sign
  for (std::size_t index = 0; index < sizeof(value); ++index) {
    little_endian[index] = static_cast<char>(value >> (8 * index) & 0xFFU);
  }
  put(std::string_view(little_endian.data(), bytes));
}

void PickleWriter::put_text(std::string_view utf8) {
  put(kBinUnicode);
  put_little_endian(utf8.size(), 4);
  put(utf8);
}

void PickleWriter::flush() {
  if (written_.ok()) written_ = output_(bytes_);
  bytes_.clear();
}

}  // namespace tidemark
