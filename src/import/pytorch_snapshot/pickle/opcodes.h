// The opcodes of Python's pickles, https://github.com/python/cpython/blob/main/Lib/pickletools.py. Opcodes that a
// snapshot needs are supported; the names of all others are listed for error messages.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace tidemark::pytorch {

/// Supported opcodes: those Python's picklers write for None, bool, int, float, str, bytes, tuple, list and dict with
/// protocols 2 to 5, and PyTorch's own pickler with protocol 2.
enum class Opcode : std::uint8_t {
  proto = 0x80,
  frame = 0x95,
  stop = '.',
  mark = '(',
  none = 'N',
  new_true = 0x88,
  new_false = 0x89,
  bin_int = 'J',
  bin_int1 = 'K',
  bin_int2 = 'M',
  long1 = 0x8A,
  long4 = 0x8B,
  bin_float = 'G',
  short_bin_unicode = 0x8C,
  bin_unicode = 'X',
  bin_unicode8 = 0x8D,
  short_bin_bytes = 'C',
  bin_bytes = 'B',
  bin_bytes8 = 0x8E,
  byte_array8 = 0x96,
  empty_dict = '}',
  empty_list = ']',
  empty_tuple = ')',
  tuple = 't',
  tuple1 = 0x85,
  tuple2 = 0x86,
  tuple3 = 0x87,
  append = 'a',
  appends = 'e',
  set_item = 's',
  set_items = 'u',
  bin_put = 'q',
  long_bin_put = 'r',
  memoize = 0x94,
  bin_get = 'h',
  long_bin_get = 'j',
};

inline constexpr std::uint8_t kLowestProtocol = 2;
inline constexpr std::uint8_t kHighestProtocol = 5;

/// An unsupported opcode.
struct RefusedOpcode {
  enum class Why : std::uint8_t {
    runs_code,  ///< imports, calls or builds something when unpickled with Python
    outside,    ///< refers to an object outside of the file
    not_used,   ///< harmless, but in no snapshot
    protocol0,  ///< of the text protocols
    unknown,    ///< no opcode
  };
  Why why = Why::unknown;
  std::string_view name;
};

[[nodiscard]] RefusedOpcode refused_opcode(std::uint8_t opcode);

/// "refused: REDUCE would run code …": a sentence for people. `global`: the name it refers to, or empty.
[[nodiscard]] std::string refusal(std::uint8_t opcode, std::string_view global);

}  // namespace tidemark::pytorch
