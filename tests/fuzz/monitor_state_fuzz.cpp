// Fuzz target of the state messages of monitors: for any bytes, decoding ends with an error or with a bounded state
// that can be encoded again.
//
// The input is a sequence of messages: two bytes with the length, little-endian, and the message without its checksum,
// which no mutation would get right.
#include <algorithm>
#include <cstdint>
#include <span>
#include <string>

#include "base/crc32c.h"
#include "fuzz/require.h"
#include "monitor/state_codec.h"

namespace {

using namespace tidemark;
using tidemark::testing::require;

std::string with_checksum(std::span<const std::uint8_t> bytes) {
  std::string message(bytes.begin(), bytes.end());
  const std::uint32_t sum = crc32c(std::as_bytes(bytes));
  for (unsigned byte = 0; byte < 4; ++byte) message += static_cast<char>(sum >> (8 * byte));
  return message;
}

void check(const MonitorSnapshot& state) {
  for (const WatchedProcess& process : state.state.processes) {
    for (const ProcessOnDevice& on : process.devices) {
      require(on.device < state.state.devices.size(), "processes are on devices of the state");
    }
  }
  const std::string message = StateEncoder().full(state);
  StateDecoder other;
  require(other.take(message).ok(), "what was taken can be sent on");
  require(StateEncoder().full(other.state()) == message, "what was sent on is the same");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  StateDecoder decoder;
  std::span<const std::uint8_t> rest(data, size);
  while (rest.size() > 2) {
    const std::size_t length = std::min<std::size_t>(rest[0] + std::size_t{256} * rest[1], rest.size() - 2);
    const auto taken = decoder.take(with_checksum(rest.subspan(2, length)));
    rest = rest.subspan(2 + length);
    if (taken) {
      check(decoder.state());
    } else {
      require(taken.error().message.find("state") != std::string::npos, "an error says what is wrong");
    }
  }
  return 0;
}
