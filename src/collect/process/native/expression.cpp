#include "collect/process/native/expression.h"

#include "collect/process/native/call_frame.h"

namespace tidemark::process {
namespace {

// DW_OP_* (DWARF 5, section 7.7.1).
enum : std::uint8_t {
  kDeref = 0x06,
  kConst1u = 0x08,
  kConst1s = 0x09,
  kConst2u = 0x0A,
  kConst2s = 0x0B,
  kConst4u = 0x0C,
  kConst4s = 0x0D,
  kConst8u = 0x0E,
  kConst8s = 0x0F,
  kConstu = 0x10,
  kConsts = 0x11,
  kAnd = 0x1A,
  kMinus = 0x1C,
  kPlus = 0x22,
  kPlusUconst = 0x23,
  kShl = 0x24,
  kGe = 0x2A,
  kLit0 = 0x30,
  kLit31 = 0x4F,
  kBreg0 = 0x70,
  kBreg31 = 0x8F,
};

constexpr std::size_t kMaxDepth = 8;

using Base = SymbolicValue::Base;

// Offsets come from the file: they wrap rather than overflow.
std::int64_t add(std::int64_t a, std::int64_t b) {
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(a) + static_cast<std::uint64_t>(b));
}

std::int64_t negate(std::int64_t a) {
  return static_cast<std::int64_t>(0 - static_cast<std::uint64_t>(a));
}

class Evaluator {
 public:
  explicit Evaluator(std::uint64_t pc) : pc_(pc) {}

  bool run(ByteReader& reader) {
    while (!reader.at_end()) {
      if (!step(reader.read<std::uint8_t>(), reader) || reader.failed()) return false;
    }
    return depth_ == 1;
  }

  [[nodiscard]] const SymbolicValue& top() const { return stack_[0]; }

 private:
  bool step(std::uint8_t opcode, ByteReader& reader) {
    if (opcode >= kLit0 && opcode <= kLit31) return push_constant(opcode - kLit0);
    if (opcode >= kBreg0 && opcode <= kBreg31) return push_register(opcode - kBreg0, reader.sleb128());
    switch (opcode) {
      case kConst1u:
        return push_constant(reader.read<std::uint8_t>());
      case kConst1s:
        return push_constant(reader.read<std::int8_t>());
      case kConst2u:
        return push_constant(reader.read<std::uint16_t>());
      case kConst2s:
        return push_constant(reader.read<std::int16_t>());
      case kConst4u:
        return push_constant(reader.read<std::uint32_t>());
      case kConst4s:
        return push_constant(reader.read<std::int32_t>());
      case kConst8u:
      case kConst8s:
        return push_constant(reader.read<std::int64_t>());
      case kConstu:
        return push_constant(static_cast<std::int64_t>(reader.uleb128()));
      case kConsts:
        return push_constant(reader.sleb128());
      case kPlusUconst:
        return push_constant(static_cast<std::int64_t>(reader.uleb128())) && binary(kPlus);
      case kDeref:
        return dereference();
      default:
        return binary(opcode);
    }
  }

  bool push(const SymbolicValue& value) {
    if (depth_ == kMaxDepth) return false;
    stack_[depth_++] = value;
    return true;
  }

  bool push_constant(std::int64_t value) { return push({Base::none, false, value}); }

  bool push_register(unsigned reg, std::int64_t offset) {
    switch (reg) {
      case kFramePointerRegister:
        return push({Base::frame_pointer, false, offset});
      case kStackPointerRegister:
        return push({Base::stack_pointer, false, offset});
      case kReturnAddressRegister:
        return push_constant(add(static_cast<std::int64_t>(pc_), offset));
      default:
        return false;
    }
  }

  bool dereference() {
    if (depth_ == 0) return false;
    SymbolicValue& value = stack_[depth_ - 1];
    if (value.base == Base::none || value.dereferenced) return false;
    value.dereferenced = true;
    return true;
  }

  bool binary(std::uint8_t opcode) {
    if (depth_ < 2) return false;
    const SymbolicValue right = stack_[--depth_];
    SymbolicValue& left = stack_[depth_ - 1];
    // One of the two values may depend on a register, and only its sum with a constant keeps the form.
    if (opcode == kPlus && left.base == Base::none) {
      if (right.dereferenced) return false;
      left = {right.base, false, add(left.offset, right.offset)};
      return true;
    }
    if (right.base != Base::none || left.dereferenced) return false;
    if (opcode == kPlus || opcode == kMinus) {
      left.offset = add(left.offset, opcode == kPlus ? right.offset : negate(right.offset));
      return true;
    }
    if (left.base != Base::none) return false;
    switch (opcode) {
      case kAnd:
        left.offset &= right.offset;
        return true;
      case kGe:
        left.offset = left.offset >= right.offset ? 1 : 0;
        return true;
      case kShl:
        if (right.offset < 0 || right.offset > 63) return false;
        left.offset = static_cast<std::int64_t>(static_cast<std::uint64_t>(left.offset) << right.offset);
        return true;
      default:
        return false;
    }
  }

  std::uint64_t pc_;
  std::size_t depth_ = 0;
  SymbolicValue stack_[kMaxDepth];
};

}  // namespace

bool evaluate_expression(const Segment& segment, ByteRange expression, std::uint64_t pc, SymbolicValue* out) noexcept {
  ByteReader reader(segment, expression.begin, expression.end);
  Evaluator evaluator(pc);
  if (reader.failed() || !evaluator.run(reader)) return false;
  *out = evaluator.top();
  return true;
}

}  // namespace tidemark::process
