// The opcodes that are rare in a snapshot, and the refusal of all others.
#include <fmt/format.h>

#include <bit>
#include <string_view>

#include "import/pytorch_snapshot/pickle/opcodes.h"
#include "import/pytorch_snapshot/pickle/unpickler.h"

namespace tidemark::pytorch {
namespace {

/// No text of a snapshot comes near; a hostile length must not make us hold gigabytes.
constexpr std::uint64_t kMaxText = std::uint64_t{16} << 20;

}  // namespace

bool Unpickler::rare_opcode(std::uint8_t opcode) {
  switch (static_cast<Opcode>(opcode)) {
    case Opcode::bin_put:
      return put(take<std::uint8_t>());
    case Opcode::long_bin_put:
      return put(take<std::uint32_t>());
    case Opcode::none:
      push(PickleValue(Tag::none));
      return true;
    case Opcode::new_true:
      push(PickleValue(Tag::boolean, 1));
      return true;
    case Opcode::new_false:
      push(PickleValue(Tag::boolean, 0));
      return true;
    case Opcode::long1:
      return integer(take<std::uint8_t>());
    case Opcode::long4:
      return integer(take<std::uint32_t>());
    case Opcode::bin_float:
      push(tables_.numbers.real(std::bit_cast<double>(__builtin_bswap64(take<std::uint64_t>()))));
      return true;
    case Opcode::short_bin_unicode:
      return text(take<std::uint8_t>());
    case Opcode::bin_unicode:
      return text(take<std::uint32_t>());
    case Opcode::bin_unicode8:
      return text(take<std::uint64_t>());
    case Opcode::short_bin_bytes:
      return skip_bytes(take<std::uint8_t>());
    case Opcode::bin_bytes:
      return skip_bytes(take<std::uint32_t>());
    case Opcode::bin_bytes8:
    case Opcode::byte_array8:
      return skip_bytes(take<std::uint64_t>());
    case Opcode::empty_tuple:
      push(PickleValue(Tag::skipped));
      return true;
    case Opcode::tuple:
      if (marks_.empty()) return fail("no mark on the stack");
      marks_.pop_back();
      {
        const std::size_t size = above_mark();
        set_floor();
        return make_tuple(size);
      }
    case Opcode::tuple1:
      return need(1) && make_tuple(1);
    case Opcode::tuple2:
      return need(2) && make_tuple(2);
    case Opcode::tuple3:
      return need(3) && make_tuple(3);
    case Opcode::append:
      return need(2) && append(top_ - 2, {top_ - 1, 1});
    case Opcode::set_item:
      return need(3) && set_items(top_ - 3, {top_ - 2, 2});
    case Opcode::frame:
      at_ += sizeof(std::uint64_t);  // the size of a frame, for reading ahead; not needed
      return true;
    case Opcode::proto: {
      const auto version = take<std::uint8_t>();
      if (version >= kLowestProtocol && version <= kHighestProtocol) return true;
      return fail(fmt::format("pickle protocol {} (expected {} to {})", version, kLowestProtocol, kHighestProtocol));
    }
    default:
      return refuse(opcode);
  }
}

bool Unpickler::make_tuple(std::size_t size) {
  top_ -= size;
  IntegerPair pair;
  const bool integers =
      size == 2 && tables_.numbers.get(top_[0], pair.first) && tables_.numbers.get(top_[1], pair.second);
  push(integers ? tables_.pairs.intern(pair) : PickleValue(Tag::skipped));
  return true;
}

bool Unpickler::put(std::size_t index) {
  if (!need(1)) return false;
  if (memo_.is_set(index)) return fail(fmt::format("number {} of the memo is set twice", index));
  // Each number took a byte at least; one that is larger was made up, and would cost memory.
  if (index > input_.offset_of(at_))
    return fail(fmt::format("number {} of the memo is larger than the bytes before it allow", index));
  memo_.make_room(input_.share_read());
  return memo_.put(index, top_[-1]) || fail("a value is memoized twice, or too many are");
}

/// The two's complement of `size` bytes at at_.
bool Unpickler::integer(std::uint64_t size) {
  if (size > 9) return fail(fmt::format("an integer of {} bytes (expected at most 64 bits)", size));
  std::uint64_t bits = 0;
  std::memcpy(&bits, at_, sizeof bits);
  at_ += size;
  if (size == 9) {
    if (at_[-1] != 0) return fail("an integer of 65 bits or more (expected at most 64 bits)");
    push(tables_.numbers.large_integer(bits));
    return true;
  }
  const auto unused = static_cast<unsigned>(64 - 8 * size);
  push(tables_.numbers.integer(size == 0 ? 0 : static_cast<std::int64_t>(bits << unused) >> unused));
  return true;
}

bool Unpickler::text(std::uint64_t size) {
  if (size > kMaxText) return fail(fmt::format("a text of {} bytes (expected at most {})", size, kMaxText));
  if (static_cast<std::uint64_t>(end_ - at_) < size || at_ > end_) {
    if (at_ > end_) return false;
    input_.advance(at_, size);
    opcode_at_ = at_ = input_.begin();
    end_ = input_.end();
    if (static_cast<std::uint64_t>(end_ - at_) < size) {
      at_ = end_ + 1;
      return false;
    }
  }
  push(PickleValue(Tag::text, tables_.texts.intern(at_, size)));
  at_ += size;
  return true;
}

bool Unpickler::skip_bytes(std::uint64_t size) {
  while (static_cast<std::uint64_t>(end_ - at_) < size) {
    if (at_ > end_) return false;
    size -= static_cast<std::uint64_t>(end_ - at_);
    input_.advance(end_, 1);
    opcode_at_ = at_ = input_.begin();
    end_ = input_.end();
    if (at_ == end_) {
      at_ = end_ + 1;
      return false;
    }
  }
  at_ += size;
  push(PickleValue(Tag::skipped));
  return true;
}

bool Unpickler::refuse(std::uint8_t opcode) {
  return fail(refusal(opcode, global_name(opcode)));
}

/// "os.system", for the message; empty if the opcode has no name or it is missing.
std::string Unpickler::global_name(std::uint8_t opcode) {
  constexpr std::size_t kMax = 100;
  std::string name;
  const auto add = [&](std::string_view part) {
    if (!name.empty()) name += '.';
    for (const char each : part.substr(0, kMax)) name += each >= 0x20 && each < 0x7F ? each : '?';
  };
  if (refused_opcode(opcode).name == "STACK_GLOBAL") {
    if (above_mark() < 2 || top_[-1].tag() != Tag::text || top_[-2].tag() != Tag::text) return {};
    add(tables_.texts[top_[-2].id()]);
    add(tables_.texts[top_[-1].id()]);
  } else if (opcode == 'c' || opcode == 'i') {  // two lines
    input_.advance(opcode_at_, 1 + 2 * kMax);
    opcode_at_ = input_.begin();
    at_ = opcode_at_ + 1;
    end_ = input_.end();
    std::string_view rest(reinterpret_cast<const char*>(at_), static_cast<std::size_t>(end_ - at_));
    rest = rest.substr(0, 2 * kMax);
    for (int line = 0; line < 2; ++line) {
      const std::size_t size = rest.find('\n');
      if (size == std::string_view::npos) break;
      add(rest.substr(0, size));
      rest.remove_prefix(size + 1);
    }
  }
  return name;
}

}  // namespace tidemark::pytorch
