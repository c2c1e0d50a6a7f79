#include "trace/running_totals.h"

#include <utility>

#include "trace/record_fields.h"

namespace tidemark {
namespace {

constexpr std::uint64_t kTotalsOfAllocator = 1;
// Two signed bytes name a device.
constexpr std::uint64_t kMaxTotalsDevices = 1 << 16;

}  // namespace

// Payload of a totals frame, varints all:
//
//   events | time | devices | for each: length of its body, and
//   body: z type | z index | flags | live | peak live | [flag 1: allocated | peak allocated | reserved | peak reserved]
std::vector<std::uint8_t> encode_totals(const RunningTotals& totals) {
  std::vector<std::uint8_t> payload;
  FieldWriter out(payload);
  out.number(totals.events).number(totals.time_ns).number(totals.devices.size());
  std::vector<std::uint8_t> bytes;
  for (const DeviceRunningTotals& of : totals.devices) {
    FieldWriter body(bytes);
    body.integer(static_cast<std::int8_t>(of.device.type)).integer(of.device.index);
    body.number(of.has_totals ? kTotalsOfAllocator : 0).number(of.live).number(of.peak_live);
    if (of.has_totals) {
      body.number(of.allocated).number(of.peak_allocated).number(of.reserved).number(of.peak_reserved);
    }
    out.number(bytes.size());
    payload.insert(payload.end(), bytes.begin(), bytes.end());
  }
  return payload;
}

std::optional<RunningTotals> decode_totals(std::span<const std::uint8_t> payload) {
  FieldReader in(payload);
  RunningTotals totals;
  totals.events = in.number();
  totals.time_ns = in.number();
  const std::uint64_t devices = in.number();
  if (devices > kMaxTotalsDevices) return std::nullopt;
  for (std::uint64_t n = 0; n < devices && in.ok(); ++n) {
    FieldReader body(in.bytes());
    DeviceRunningTotals& of = totals.devices.emplace_back();
    of.device.type = static_cast<DeviceType>(body.integer());
    of.device.index = static_cast<std::int8_t>(body.integer());
    of.has_totals = (body.number() & kTotalsOfAllocator) != 0;
    of.live = body.number();
    of.peak_live = body.number();
    if (of.has_totals) {
      of.allocated = body.number();
      of.peak_allocated = body.number();
      of.reserved = body.number();
      of.peak_reserved = body.number();
    }
    in.require(body.ok());
  }
  return in.ok() ? std::optional(std::move(totals)) : std::nullopt;
}

}  // namespace tidemark
