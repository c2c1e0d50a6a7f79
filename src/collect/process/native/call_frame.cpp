#include "collect/process/native/call_frame.h"

namespace tidemark::process {
namespace {

// DW_CFA_*: three opcodes carry an operand in their low six bits, the others are whole bytes.
enum : std::uint8_t {
  kAdvanceLoc = 0x40,
  kOffset = 0x80,
  kRestore = 0xC0,
  kNop = 0x00,
  kSetLoc = 0x01,
  kAdvanceLoc1 = 0x02,
  kAdvanceLoc2 = 0x03,
  kAdvanceLoc4 = 0x04,
  kOffsetExtended = 0x05,
  kRestoreExtended = 0x06,
  kUndefined = 0x07,
  kSameValue = 0x08,
  kRegister = 0x09,
  kRememberState = 0x0A,
  kRestoreState = 0x0B,
  kDefCfa = 0x0C,
  kDefCfaRegister = 0x0D,
  kDefCfaOffset = 0x0E,
  kDefCfaExpression = 0x0F,
  kExpression = 0x10,
  kOffsetExtendedSf = 0x11,
  kDefCfaSf = 0x12,
  kDefCfaOffsetSf = 0x13,
  kValOffset = 0x14,
  kValOffsetSf = 0x15,
  kValExpression = 0x16,
  kGnuArgsSize = 0x2E,
  kGnuNegativeOffsetExtended = 0x2F,
};

// GCC and clang nest one level; hand-written assembly two.
constexpr std::size_t kMaxRemembered = 8;

// Offsets come from the file: they wrap rather than overflow.
std::int64_t times(std::uint64_t a, std::int64_t b) {
  return static_cast<std::int64_t>(a * static_cast<std::uint64_t>(b));
}

class Interpreter {
 public:
  Interpreter(const Segment& segment, const FrameDescription& frame, std::uint64_t pc)
      : segment_(segment), frame_(frame), pc_(pc), location_(frame.pc_begin) {}

  bool run(FrameRules* out) {
    if (!run(frame_.cie_instructions)) return false;
    initial_ = rules_;
    location_ = frame_.pc_begin;
    passed_ = false;
    if (!run(frame_.fde_instructions)) return false;
    *out = rules_;
    return true;
  }

 private:
  bool run(ByteRange instructions) {
    ByteReader reader(segment_, instructions.begin, instructions.end);
    while (!reader.at_end() && !passed_) {
      const auto opcode = reader.read<std::uint8_t>();
      const auto operand = static_cast<std::uint8_t>(opcode & 0x3F);
      bool known = true;
      switch (opcode & 0xC0) {
        case kAdvanceLoc:
          advance(operand);
          break;
        case kOffset:
          set_offset(operand, times(reader.uleb128(), frame_.data_alignment));
          break;
        case kRestore:
          restore(operand);
          break;
        default:
          known = extended(opcode, reader);
          break;
      }
      if (!known || reader.failed()) return false;
    }
    return !reader.failed();
  }

  bool extended(std::uint8_t opcode, ByteReader& reader) {
    switch (opcode) {
      case kNop:
        return true;
      case kGnuArgsSize:
        reader.uleb128();
        return true;
      case kSetLoc:
        return move_to(reader.pointer(frame_.pointer_encoding, 0));
      case kAdvanceLoc1:
        return advance(reader.read<std::uint8_t>());
      case kAdvanceLoc2:
        return advance(reader.read<std::uint16_t>());
      case kAdvanceLoc4:
        return advance(reader.read<std::uint32_t>());
      case kRememberState:
        return remember();
      case kRestoreState:
        return recall();
      case kDefCfa:
      case kDefCfaSf:
      case kDefCfaRegister:
      case kDefCfaOffset:
      case kDefCfaOffsetSf:
      case kDefCfaExpression:
        return define_cfa(opcode, reader);
      default:
        return define_register(opcode, reader);
    }
  }

  bool define_cfa(std::uint8_t opcode, ByteReader& reader) {
    if (opcode == kDefCfaExpression) {
      rules_.cfa_is_expression = true;
      rules_.cfa_expression = block(reader);
      return true;
    }
    const bool sets_register = opcode == kDefCfa || opcode == kDefCfaSf || opcode == kDefCfaRegister;
    // An offset or register alone changes one half of a register rule, so the current rule must be one.
    if (rules_.cfa_is_expression && opcode != kDefCfa && opcode != kDefCfaSf) return false;
    rules_.cfa_is_expression = false;
    if (sets_register) rules_.cfa_register = reader.uleb128();
    if (opcode == kDefCfa || opcode == kDefCfaOffset) {
      rules_.cfa_offset = static_cast<std::int64_t>(reader.uleb128());
    } else if (opcode == kDefCfaSf || opcode == kDefCfaOffsetSf) {
      rules_.cfa_offset = times(static_cast<std::uint64_t>(reader.sleb128()), frame_.data_alignment);
    }
    return true;
  }

  bool define_register(std::uint8_t opcode, ByteReader& reader) {
    const std::uint64_t reg = reader.uleb128();
    switch (opcode) {
      case kOffsetExtended:
        set_offset(reg, times(reader.uleb128(), frame_.data_alignment));
        return true;
      case kOffsetExtendedSf:
        set_offset(reg, times(static_cast<std::uint64_t>(reader.sleb128()), frame_.data_alignment));
        return true;
      case kGnuNegativeOffsetExtended:
        set_offset(reg, times(0 - reader.uleb128(), frame_.data_alignment));
        return true;
      case kRestoreExtended:
        restore(reg);
        return true;
      case kUndefined:
        set(reg, {RegisterRule::Kind::undefined, 0, {}});
        return true;
      case kSameValue:
        set(reg, {RegisterRule::Kind::same, 0, {}});
        return true;
      case kExpression:
        set(reg, {RegisterRule::Kind::at_expression, 0, block(reader)});
        return true;
      case kRegister:
      case kValOffset:
        reader.uleb128();
        break;
      case kValOffsetSf:
        reader.sleb128();
        break;
      case kValExpression:
        block(reader);
        break;
      default:
        return false;
    }
    set(reg, {RegisterRule::Kind::other, 0, {}});
    return true;
  }

  static ByteRange block(ByteReader& reader) {
    const std::uint64_t size = reader.uleb128();
    const std::size_t begin = reader.position();
    reader.skip(size);
    return {begin, reader.position()};
  }

  bool advance(std::uint64_t delta) { return move_to(location_ + delta * frame_.code_alignment); }

  bool move_to(std::uint64_t location) {
    location_ = location;
    passed_ = location_ > pc_;
    return true;
  }

  bool remember() {
    if (depth_ == kMaxRemembered) return false;
    remembered_[depth_++] = rules_;
    return true;
  }

  bool recall() {
    if (depth_ == 0) return false;
    rules_ = remembered_[--depth_];
    return true;
  }

  RegisterRule* tracked(FrameRules& rules, std::uint64_t reg) const {
    if (reg == frame_.return_address_register) return &rules.return_address;
    if (reg == kFramePointerRegister) return &rules.frame_pointer;
    if (reg == kStackPointerRegister) return &rules.stack_pointer;
    return nullptr;
  }

  void set(std::uint64_t reg, const RegisterRule& rule) {
    if (RegisterRule* target = tracked(rules_, reg)) *target = rule;
  }

  void set_offset(std::uint64_t reg, std::int64_t offset) { set(reg, {RegisterRule::Kind::at_cfa, offset, {}}); }

  void restore(std::uint64_t reg) {
    if (const RegisterRule* rule = tracked(initial_, reg)) set(reg, *rule);
  }

  const Segment& segment_;
  const FrameDescription& frame_;
  std::uint64_t pc_;
  std::uint64_t location_;
  bool passed_ = false;
  std::size_t depth_ = 0;
  FrameRules rules_;
  FrameRules initial_;
  FrameRules remembered_[kMaxRemembered];
};

}  // namespace

bool frame_rules_at(const Segment& segment, const FrameDescription& frame, std::uint64_t pc, FrameRules* out) noexcept {
  return Interpreter(segment, frame, pc).run(out);
}

}  // namespace tidemark::process
