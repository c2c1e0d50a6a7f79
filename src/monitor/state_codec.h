// What an engine knows, as bytes that are sent every second: from the machines of a cluster to who looks at all of
// them.
//
// Bytes are a full state, or the changes since the bytes before. In a changed struct one bit for each member says
// whether that has changed; numbers are differences as varints, times are differences to the time that has passed,
// doubles have the precision of a float. A history of use is sent as its new samples where that gives the same history.
//
//   message  = version (1), sequence, base, elapsed_ns, state, CRC32C of all before (4 bytes, little-endian)
//   base     = 0: full; else the sequence of the message that the changes are relative to
//
// Numbers without a size are varints (trace/varint.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"
#include "monitor/engine.h"

namespace tidemark {

/// What is sent of a state: all of it, with kSentPoints points of each history at most, and its latest sample. The
/// distributions of WatchedDevice::used_distribution are whole, and can be merged with those of other machines.
inline constexpr std::size_t kSentPoints = 32;
[[nodiscard]] MonitorSnapshot condensed(const MonitorSnapshot& state);

/// One thread at a time. Keeps the state that was sent last.
class StateEncoder {
 public:
  /// For who has nothing yet, or has missed something.
  [[nodiscard]] std::string full(const MonitorSnapshot& state);
  /// For who has taken all messages since the latest full one. Full where there is none.
  [[nodiscard]] std::string changes(const MonitorSnapshot& state);

 private:
  [[nodiscard]] std::string encode(const MonitorSnapshot& state, std::uint64_t base);

  MonitorSnapshot sent_;
  std::uint64_t sequence_ = 0;
};

/// One thread at a time. Messages are hostile input: a state takes kMaxStateBytes at most, lists have kMaxListed
/// elements at most.
class StateDecoder {
 public:
  static constexpr std::size_t kMaxMessageBytes = std::size_t{16} << 20;
  static constexpr std::size_t kMaxStateBytes = std::size_t{64} << 20;
  static constexpr std::size_t kMaxListed = 65'536;

  /// Takes the next message. An error for what is damaged, of another version, or not the next one: then the state
  /// stays as it is, or, where a message with a right checksum makes no sense, is forgotten. A full state helps.
  Result<void> take(std::string_view message);
  /// What condensed() gives of the state that was sent last, but for the precision of doubles.
  [[nodiscard]] const MonitorSnapshot& state() const { return state_; }
  [[nodiscard]] bool has_state() const { return sequence_ != 0; }

 private:
  MonitorSnapshot state_;
  std::uint64_t sequence_ = 0;  ///< 0: nothing was taken
};

}  // namespace tidemark
