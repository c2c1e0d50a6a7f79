#include "import/pytorch_snapshot/pickle_machine.h"

#include <fmt/format.h>

#include <bit>
#include <cstring>
#include <span>
#include <utility>

#include "import/pytorch_snapshot/pickle_opcodes.h"

namespace tidemark::pytorch {
namespace {

static_assert(std::endian::native == std::endian::little, "the pickle reader needs a little-endian machine");

/// An opcode with its arguments, texts and bytes apart; the longest is LONG4 of nine bytes.
constexpr std::size_t kLongestOpcode = 16;
static_assert(kLongestOpcode <= PickleInput::kPadding);
constexpr std::size_t kMaxStack = std::size_t{1} << 27;
/// No text of a snapshot comes near; a hostile length must not make us hold gigabytes.
constexpr std::uint64_t kMaxText = std::uint64_t{16} << 20;

}  // namespace

PickleMachine::PickleMachine(PickleInput& input, SnapshotBuilder& builder)
    : input_(input), builder_(builder), stack_(1024) {
  top_ = stack_.data();
  floor_ = top_;
  limit_ = top_ + stack_.size();
}

void PickleMachine::grow() {
  const auto used = top_ - stack_.data();
  const auto mark = floor_ - stack_.data();
  stack_.resize(stack_.size() * 2);
  top_ = stack_.data() + used;
  floor_ = stack_.data() + mark;
  limit_ = stack_.data() + stack_.size();
}

bool PickleMachine::fail(std::string why) {
  if (failure_.empty()) failure_ = std::move(why);
  return false;
}

template <typename T>
T PickleMachine::take() {
  T value;
  std::memcpy(&value, at_, sizeof value);
  at_ += sizeof value;
  return value;
}

/// Makes the next opcode whole, where the bytes go on that far.
bool PickleMachine::more_input() {
  if (at_ > end_) return fail("the file is cut off");
  input_.advance(at_, kLongestOpcode);
  at_ = input_.begin();
  end_ = input_.end();
  builder_.share_read = input_.share_read();
  return at_ != end_ || fail("the file is cut off");
}

Result<Word> PickleMachine::run() {
  at_ = input_.begin();
  end_ = input_.end();
  while (true) {
    if (end_ - at_ < static_cast<std::ptrdiff_t>(kLongestOpcode) && !more_input()) break;
    opcode_at_ = at_;
    const std::uint8_t opcode = *at_++;
    if (static_cast<Opcode>(opcode) == Opcode::stop) {
      if (marks_.empty() && above_mark() == 1) return top_[-1];
      fail("the pickle ends with more or less than one value");
      break;
    }
    if (!step(opcode)) break;
  }
  // What was read beyond the end is padding: whatever it seemed to say, the file is cut off.
  const bool cut_off = at_ > end_;
  const std::uint64_t offset =
      opcode_at_ == nullptr ? 0 : input_.offset_of(cut_off ? end_ : std::min(opcode_at_, end_));
  return Error{fmt::format("offset {}: {}", offset, cut_off ? "the file is cut off" : failure_)};
}

bool PickleMachine::step(std::uint8_t opcode) {
  std::span<Word> items;
  switch (static_cast<Opcode>(opcode)) {
    case Opcode::bin_get:
      return get(take<std::uint8_t>());
    case Opcode::long_bin_get:
      return get(take<std::uint32_t>());
    case Opcode::memoize:
      return put(memo_.size());
    case Opcode::bin_put:
      return put(take<std::uint8_t>());
    case Opcode::long_bin_put:
      return put(take<std::uint32_t>());
    case Opcode::mark:
      return mark();
    case Opcode::none:
      push(Word(Tag::none));
      return true;
    case Opcode::new_true:
      push(Word(Tag::boolean, 1));
      return true;
    case Opcode::new_false:
      push(Word(Tag::boolean, 0));
      return true;
    case Opcode::bin_int:
      push(Word::of_integer(take<std::int32_t>()));
      return true;
    case Opcode::bin_int1:
      push(Word::of_integer(take<std::uint8_t>()));
      return true;
    case Opcode::bin_int2:
      push(Word::of_integer(take<std::uint16_t>()));
      return true;
    case Opcode::long1:
      return integer(take<std::uint8_t>());
    case Opcode::long4:
      return integer(take<std::uint32_t>());
    case Opcode::bin_float:
      push(builder_.numbers.real(std::bit_cast<double>(__builtin_bswap64(take<std::uint64_t>()))));
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
    case Opcode::empty_dict:
      push(Word(Tag::empty_dict));
      return true;
    case Opcode::empty_list:
      push(Word(Tag::empty_list));
      return true;
    case Opcode::empty_tuple:
      push(Word(Tag::skipped));
      return true;
    case Opcode::tuple:
      return pop_mark(items) && make_tuple(items.size());
    case Opcode::tuple1:
      return need(1) && make_tuple(1);
    case Opcode::tuple2:
      return need(2) && make_tuple(2);
    case Opcode::tuple3:
      return need(3) && make_tuple(3);
    case Opcode::append:
      return need(2) && append({top_ - 1, 1});
    case Opcode::appends:
      return pop_mark(items) && append(items);
    case Opcode::set_item:
      return need(3) && set_items({top_ - 2, 2});
    case Opcode::set_items:
      return pop_mark(items) && set_items(items);
    case Opcode::frame:
      at_ += sizeof(std::uint64_t);  // says how much to read ahead; we do so anyway
      return true;
    case Opcode::proto: {
      const auto version = take<std::uint8_t>();
      if (version >= kLowestProtocol && version <= kHighestProtocol) return true;
      return fail(
          fmt::format("pickle protocol {}: only {} to {} are read", version, kLowestProtocol, kHighestProtocol));
    }
    default:
      return refuse(opcode);
  }
}

bool PickleMachine::mark() {
  const auto place = static_cast<std::size_t>(top_ - stack_.data());
  if (place > kMaxStack || marks_.size() > kMaxStack) return fail("too much is nested, or in one list");
  marks_.push_back(static_cast<std::uint32_t>(place));
  floor_ = top_;
  return true;
}

bool PickleMachine::pop_mark(std::span<Word>& items) {
  if (marks_.empty()) return fail("there is no mark");
  items = {floor_, top_};
  marks_.pop_back();
  floor_ = stack_.data() + (marks_.empty() ? 0 : marks_.back());
  return true;
}

/// `items` are on top of the stack, and what they go into is below them.
bool PickleMachine::set_items(std::span<const Word> items) {
  if (items.size() % 2 != 0) return fail("a key without a value");
  if (!need(items.size() + 1)) return false;
  Word* place = top_ - items.size() - 1;
  return replace_target(*place, memo_.may_change(*place) ? builder_.set_items(*place, items) : Word(), place);
}

bool PickleMachine::append(std::span<const Word> items) {
  if (!need(items.size() + 1)) return false;
  Word* place = top_ - items.size() - 1;
  return replace_target(*place, memo_.may_change(*place) ? builder_.append(*place, items) : Word(), place);
}

bool PickleMachine::replace_target(Word target, Word changed, Word* place) {
  if (changed.tag() == Tag::unset) {
    return fail(builder_.failure().empty() ? "something contains itself: no snapshot does" : builder_.failure());
  }
  if (!memo_.update(target, changed)) return fail("too many values for this reader");
  *place = changed;
  top_ = place + 1;
  return true;
}

bool PickleMachine::make_tuple(std::size_t size) {
  const Word made = builder_.make_tuple({top_ - size, size});
  top_ -= size;
  push(made);
  return true;
}

bool PickleMachine::put(std::size_t index) {
  if (!need(1)) return false;
  if (memo_.is_set(index)) return fail(fmt::format("number {} of the memo is set twice", index));
  // Each number took a byte at least; one that is larger was made up, and would cost memory.
  if (index > input_.offset_of(at_)) return fail(fmt::format("number {} of the memo comes too early", index));
  memo_.make_room(builder_.share_read);
  return memo_.put(index, top_[-1]) || fail("a value is memoized twice, or there are too many");
}

bool PickleMachine::get(std::size_t index) {
  if (!memo_.is_set(index)) return fail(fmt::format("number {} of the memo is not set", index));
  push(memo_.get(index));
  return true;
}

/// The two's complement of `size` bytes at at_.
bool PickleMachine::integer(std::uint64_t size) {
  if (size > 9) return fail(fmt::format("an integer of {} bytes: at most 64 bits are read", size));
  std::uint64_t bits = 0;
  std::memcpy(&bits, at_, sizeof bits);
  at_ += size;
  if (size == 9) {
    if (at_[-1] != 0) return fail("an integer of more than 64 bits");
    push(builder_.numbers.large_integer(bits));
    return true;
  }
  const auto unused = static_cast<unsigned>(64 - 8 * size);
  push(builder_.numbers.integer(size == 0 ? 0 : static_cast<std::int64_t>(bits << unused) >> unused));
  return true;
}

bool PickleMachine::text(std::uint64_t size) {
  if (size > kMaxText)
    return fail(fmt::format("a text of {} bytes: no snapshot has one of more than {}", size, kMaxText));
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
  push(Word(Tag::text, builder_.texts.intern(at_, size)));
  at_ += size;
  return true;
}

bool PickleMachine::skip_bytes(std::uint64_t size) {
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
  push(Word(Tag::skipped));
  return true;
}

bool PickleMachine::refuse(std::uint8_t opcode) {
  return fail(refusal(opcode, global_name(opcode)));
}

/// "os.system", for the message; empty where the opcode has no name or it is not there.
std::string PickleMachine::global_name(std::uint8_t opcode) {
  constexpr std::size_t kMost = 100;
  std::string name;
  const auto add = [&](std::string_view part) {
    if (!name.empty()) name += '.';
    for (const char each : part.substr(0, kMost)) name += each >= 0x20 && each < 0x7F ? each : '?';
  };
  if (refused_opcode(opcode).name == "STACK_GLOBAL") {
    if (above_mark() < 2 || top_[-1].tag() != Tag::text || top_[-2].tag() != Tag::text) return {};
    add(builder_.texts[top_[-2].id()]);
    add(builder_.texts[top_[-1].id()]);
  } else if (opcode == 'c' || opcode == 'i') {  // two lines
    input_.advance(opcode_at_, 2 * kMost);
    opcode_at_ = input_.begin();
    at_ = opcode_at_ + 1;
    end_ = input_.end();
    std::string_view rest(reinterpret_cast<const char*>(at_), static_cast<std::size_t>(end_ - at_));
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
