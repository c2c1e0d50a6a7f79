// Encodes an engine's state, which the machines of a cluster send every second to the program that shows all of them.
//
// A message is a full state, or the changes since the message before. In a changed struct one bit for each member shows
// whether it has changed; numbers are differences as varints, times are differences to the elapsed time, doubles have
// the precision of a float. A history of use is sent as its new samples if that gives the same history.
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

/// The part of a state that is sent: everything, with at most kSentPoints points of each history, and its latest
/// sample. The distributions in WatchedDevice::used_distribution are complete, and can be merged with those of other
/// machines.
inline constexpr std::size_t kSentPoints = 32;
[[nodiscard]] MonitorSnapshot condensed(const MonitorSnapshot& state);

/// One thread at a time. Keeps the state that was sent last.
class StateEncoder {
 public:
  /// For a receiver that has no state yet, or has missed a message.
  [[nodiscard]] std::string full(const MonitorSnapshot& state);
  /// For a receiver that has all messages since the latest full one. A full state if there is none.
  [[nodiscard]] std::string changes(const MonitorSnapshot& state);

 private:
  [[nodiscard]] std::string encode(const MonitorSnapshot& state, std::uint64_t base);

  MonitorSnapshot sent_;
  std::uint64_t sequence_ = 0;
};

/// One thread at a time. Messages are hostile input: a state takes at most kMaxStateBytes, lists have at most
/// kMaxListed elements.
class StateDecoder {
 public:
  static constexpr std::size_t kMaxMessageBytes = std::size_t{16} << 20;
  static constexpr std::size_t kMaxStateBytes = std::size_t{64} << 20;
  static constexpr std::size_t kMaxListed = 65'536;

  /// Takes the next message. An error for a message that is damaged, of another version, or not the next one: then the
  /// state is unchanged, or, if a message with a right checksum is invalid, discarded. Recover with a full state.
  Result<void> take(std::string_view message);
  /// The state sent last, as condensed() returns it, except for the precision of doubles.
  [[nodiscard]] const MonitorSnapshot& state() const { return state_; }
  [[nodiscard]] bool has_state() const { return sequence_ != 0; }

 private:
  MonitorSnapshot state_;
  std::uint64_t sequence_ = 0;  ///< 0: none was taken
};

}  // namespace tidemark
