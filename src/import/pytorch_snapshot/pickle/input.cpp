#include "import/pytorch_snapshot/pickle/input.h"

#include <algorithm>
#include <cstring>
#include <span>

namespace tidemark::pytorch {
namespace {

constexpr std::size_t kFirstReadBytes = std::size_t{1} << 12;  // a small file is read at once
constexpr std::size_t kReadBytes = std::size_t{1} << 18;       // stays in the second-level cache

}  // namespace

void PickleInput::advance(const std::uint8_t* at, std::size_t size) {
  offset_ = offset_of(at);
  begin_ = static_cast<std::size_t>(at - bytes_.data());
  if (at_end_ || end_ - begin_ >= size) return;
  std::memmove(bytes_.data(), at, end_ - begin_);
  end_ -= begin_;
  begin_ = 0;
  while (end_ < size && !at_end_) {
    // A claimed size may be wrong: the buffer at most doubles the size that was really read.
    const std::size_t bytes = offset_ == 0 ? kFirstReadBytes : kReadBytes;
    const std::size_t room = std::max(bytes, std::min(size, 2 * end_));
    if (bytes_.size() < room + kPadding) bytes_.resize(room + kPadding);
    const auto got = stream_.read(std::as_writable_bytes(std::span(bytes_)).subspan(end_, room - end_));
    if (!got.ok()) failure_ = got.error().message;
    at_end_ = !got.ok() || *got == 0;
    if (got.ok()) end_ += *got;
  }
  std::memset(bytes_.data() + end_, 0, kPadding);
  const std::uint64_t done = stream_.stored_offset();
  const std::uint64_t in_all = stream_.stored_size();
  if (in_all != 0) share_read_ = static_cast<double>(done) / static_cast<double>(in_all);
  if (progress_) progress_(done, in_all);
}

}  // namespace tidemark::pytorch
