#include "follow/frame_scan.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <span>
#include <utility>
#include <vector>

#include "base/crc32c.h"
#include "trace/format.h"
#include "trace/frames.h"
#include "trace/varint.h"

namespace tidemark {
namespace {

// A frame of totals has a few numbers for each device. A larger one comes from another writer.
constexpr std::uint32_t kMaxTotalsBytes = 64 * 1024;
constexpr std::size_t kReadAhead = 512;  // a header, and all of most frames of totals

std::uint64_t size_of(int fd) {
  struct ::stat facts {};
  return ::fstat(fd, &facts) == 0 ? static_cast<std::uint64_t>(facts.st_size) : 0;
}

/// The payload is never compressed, because it is short. std::nullopt if it is.
std::optional<RunningTotals> totals_in(int fd, std::uint64_t offset, std::uint32_t stored_length,
                                       std::span<const std::byte> have) {
  std::vector<std::byte> frame(format::kFrameHeaderBytes + stored_length + Frame::kPadding);
  const std::size_t size = format::kFrameHeaderBytes + stored_length;
  if (have.size() >= size) {
    std::copy_n(have.begin(), size, frame.begin());
  } else if (::pread(fd, frame.data(), size, static_cast<::off_t>(offset)) != static_cast<::ssize_t>(size)) {
    return std::nullopt;
  }
  const std::span<const std::byte> stored = std::span(frame).subspan(format::kFrameHeaderBytes, stored_length);
  const std::uint32_t checksum = crc32c(stored, crc32c(std::span(frame).first(12)));
  if (load_le<std::uint32_t>(frame.data() + 12) != checksum) return std::nullopt;
  return decode_totals({reinterpret_cast<const std::uint8_t*>(stored.data()), stored.size()});
}

}  // namespace

void ScannedPart::add(const RunningTotals& next) {
  if (!totals) {
    totals = next;
    return;
  }
  const RunningTotals before = std::exchange(*totals, next);
  totals->events += before.events;
  totals->time_ns = std::max(totals->time_ns, before.time_ns);
  for (const DeviceRunningTotals& was : before.devices) {
    const auto same = std::ranges::find(totals->devices, was.device, &DeviceRunningTotals::device);
    if (same == totals->devices.end()) {
      totals->devices.push_back(was);
      continue;
    }
    same->peak_live = std::max(same->peak_live, was.peak_live);
    same->peak_allocated = std::max(same->peak_allocated, was.peak_allocated);
    same->peak_reserved = std::max(same->peak_reserved, was.peak_reserved);
  }
}

bool FrameScan::advance(int fd, ScannedPart& part) {
  const std::uint64_t size = size_of(fd);
  std::array<std::byte, kReadAhead> bytes;
  for (std::size_t frame = 0; frame < kMaxFrames; ++frame) {
    const ::ssize_t got = ::pread(fd, bytes.data(), bytes.size(), static_cast<::off_t>(offset_));
    if (got < static_cast<::ssize_t>(format::kFrameHeaderBytes)) return true;
    const std::byte* header = bytes.data();
    const auto type = static_cast<format::FrameType>(load_le<std::uint8_t>(header));
    const bool is_known_version = load_le<std::uint8_t>(header + 1) == format::kFrameVersion;
    const bool is_plain = load_le<std::uint16_t>(header + 2) == 0;
    const auto stored_length = load_le<std::uint32_t>(header + 4);
    const std::uint64_t end = offset_ + format::kFrameHeaderBytes + stored_length;
    if (stored_length > format::kMaxPayloadBytes || end > size) return true;
    if (is_known_version && type == format::FrameType::state) part.state_offset = offset_;
    if (is_known_version && is_plain && type == format::FrameType::totals && stored_length <= kMaxTotalsBytes) {
      const auto totals = totals_in(fd, offset_, stored_length, std::span(bytes).first(static_cast<std::size_t>(got)));
      if (!totals) return true;
      part.add(*totals);
    }
    offset_ = end;
  }
  return false;
}

}  // namespace tidemark
