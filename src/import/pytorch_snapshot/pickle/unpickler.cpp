#include "import/pytorch_snapshot/pickle/unpickler.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "import/pytorch_snapshot/pickle/opcodes.h"

namespace tidemark::pytorch {
namespace {

static_assert(std::endian::native == std::endian::little, "the pickle reader needs a little-endian machine");

/// An opcode with its arguments, texts and bytes apart; the longest is LONG4 of nine bytes.
constexpr std::ptrdiff_t kLongestOpcode = 16;
static_assert(kLongestOpcode <= PickleInput::kPadding);
/// PyTorch's own pickler puts a whole trace onto the stack before it becomes a list.
constexpr std::size_t kMaxStack = std::size_t{1} << 27;

template <typename T>
T load(const std::uint8_t* at) {
  T value;
  std::memcpy(&value, at, sizeof value);
  return value;
}

}  // namespace

Unpickler::Unpickler(PickleInput& input, PickleTables& tables, ContainerBuilder& builder)
    : input_(input), tables_(tables), builder_(builder), stack_(1024) {
  top_ = stack_.data();
  floor_ = top_;
  limit_ = top_ + stack_.size();
}

Result<PickleValue> Unpickler::run() {
  at_ = input_.begin();
  end_ = input_.end();
  if (run_opcodes()) return top_[-1];
  // Bytes read beyond the end are padding: the file is truncated, whatever error the padding caused.
  const bool cut_off = at_ > end_;
  const std::uint8_t* where = cut_off || opcode_at_ == nullptr ? end_ : std::min(opcode_at_, end_);
  return Error{fmt::format("offset {}: {}", input_.offset_of(where), cut_off ? "the file is cut off" : failure_)};
}

/// Moves the window so that it holds the next opcode whole. False, and at_ behind the end, at the end of the bytes.
bool Unpickler::more_input() {
  if (at_ > end_) return false;
  input_.advance(at_, static_cast<std::size_t>(kLongestOpcode));
  at_ = input_.begin();
  end_ = input_.end();
  if (at_ == end_) ++at_;
  return at_ <= end_;
}

bool Unpickler::grow() {
  if (stack_.size() >= kMaxStack) return fail("too many values are nested or in one list");
  const auto used = top_ - stack_.data();
  stack_.resize(stack_.size() * 2);
  top_ = stack_.data() + used;
  limit_ = stack_.data() + stack_.size();
  set_floor();
  return true;
}

/// The read position and the top of the stack are kept in local variables, and are stored to members only for calls
/// that need them.
bool Unpickler::run_opcodes() {
  const std::uint8_t* at = at_;
  const std::uint8_t* end = end_;
  PickleValue* top = top_;
  const auto save = [&] {
    at_ = at;
    top_ = top;
  };
  const auto restore = [&] {
    at = at_;
    end = end_;
    top = top_;
  };
  while (true) {
    if (end - at < kLongestOpcode) {
      save();
      if (!more_input()) return false;
      restore();
    }
    if (top == limit_) {
      save();
      if (!grow()) return false;
      restore();
    }
    opcode_at_ = at;
    const std::uint8_t opcode = *at++;
    switch (static_cast<Opcode>(opcode)) {
      case Opcode::long_bin_get:
      case Opcode::bin_get: {
        const bool is_long = opcode == static_cast<std::uint8_t>(Opcode::long_bin_get);
        const std::size_t index = is_long ? load<std::uint32_t>(at) : *at;
        at += is_long ? sizeof(std::uint32_t) : 1;
        if (!memo_.is_set(index)) {
          save();
          return fail(fmt::format("number {} of the memo is not set", index));
        }
        *top++ = memo_.get(index);
        continue;
      }
      case Opcode::memoize:
        if (top != floor_) {
          memo_.make_room(input_.share_read());
          if (memo_.put(memo_.size(), top[-1])) continue;
        }
        save();
        return need(1) && fail("a value is memoized twice, or too many are");
      case Opcode::mark: {
        if (marks_.size() >= kMaxStack) {
          save();
          return fail("nested too deeply");
        }
        marks_.push_back(static_cast<std::uint32_t>(top - stack_.data()));
        floor_ = top;
        continue;
      }
      case Opcode::bin_int:
        *top++ = PickleValue::of_integer(load<std::int32_t>(at));
        at += sizeof(std::int32_t);
        continue;
      case Opcode::bin_int1:
        *top++ = PickleValue::of_integer(*at++);
        continue;
      case Opcode::bin_int2:
        *top++ = PickleValue::of_integer(load<std::uint16_t>(at));
        at += sizeof(std::uint16_t);
        continue;
      case Opcode::long1: {
        const unsigned size = *at;
        if (size - 1 > 7) break;  // 1 to 8 bytes
        const unsigned unused = 64 - 8 * size;
        *top++ = tables_.numbers.integer(static_cast<std::int64_t>(load<std::uint64_t>(at + 1) << unused) >> unused);
        at += 1 + size;
        continue;
      }
      case Opcode::short_bin_unicode: {
        const std::size_t size = *at;
        if (end - at <= static_cast<std::ptrdiff_t>(size)) break;
        *top++ = PickleValue(Tag::text, tables_.texts.intern(at + 1, size));
        at += 1 + size;
        continue;
      }
      case Opcode::empty_dict:
        *top++ = PickleValue(Tag::empty_dict);
        continue;
      case Opcode::empty_list:
        *top++ = PickleValue(Tag::empty_list);
        continue;
      case Opcode::appends:
      case Opcode::set_items: {
        PickleValue* const items = floor_;
        const auto count = static_cast<std::size_t>(top - items);
        save();
        if (marks_.empty()) return fail("no mark on the stack");
        marks_.pop_back();
        set_floor();
        if (items == floor_) return fail("the stack has too few values");
        const bool is_dict = opcode == static_cast<std::uint8_t>(Opcode::set_items);
        if (!(is_dict ? set_items(items - 1, {items, count}) : append(items - 1, {items, count}))) return false;
        top = items;
        continue;
      }
      case Opcode::stop:
        save();
        return (marks_.empty() && above_mark() == 1) ||
               fail("the pickle ends with more or less than one value on the stack");
      default:
        break;
    }
    save();
    if (!rare_opcode(opcode)) return false;
    restore();
  }
}

bool Unpickler::set_items(PickleValue* target, std::span<const PickleValue> items) {
  if (items.size() % 2 != 0) return fail("a key without a value");
  return replace(target, memo_.may_change(*target) ? builder_.set_items(*target, items) : PickleValue());
}

bool Unpickler::append(PickleValue* target, std::span<const PickleValue> items) {
  return replace(target, memo_.may_change(*target) ? builder_.append(*target, items) : PickleValue());
}

bool Unpickler::replace(PickleValue* target, PickleValue changed) {
  if (changed.tag() == Tag::unset) {
    return fail(builder_.failure().empty() ? "a list or dict contains itself" : builder_.failure());
  }
  if (!memo_.update(*target, changed)) return fail("too many values for this reader");
  *target = changed;
  top_ = target + 1;
  return true;
}

}  // namespace tidemark::pytorch
